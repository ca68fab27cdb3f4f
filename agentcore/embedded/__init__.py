"""A local PostgreSQL and Redis in the data directory."""

from agentcore.embedded.home import Home, default_home
from agentcore.embedded.parts import EmbeddedParts, EmbeddedUrls, attach, runs_on
from agentcore.embedded.postgres import service_url_of

__all__ = ["EmbeddedParts", "EmbeddedUrls", "Home", "attach", "default_home", "runs_on", "service_url_of"]
