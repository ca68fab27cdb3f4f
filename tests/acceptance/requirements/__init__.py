"""The requirements of every source."""

from tests.acceptance.requirements.agents import AGENTS
from tests.acceptance.requirements.connections import CONNECTED
from tests.acceptance.requirements.context import COMPOSED
from tests.acceptance.requirements.documents import DOCUMENTED
from tests.acceptance.requirements.form import Requirement
from tests.acceptance.requirements.frameworks import FRAMED
from tests.acceptance.requirements.language import WRITTEN
from tests.acceptance.requirements.lifecycle import LIVED
from tests.acceptance.requirements.retrieval import UNDERSTOOD
from tests.acceptance.requirements.service import BUILT, SHOWN
from tests.acceptance.requirements.session_memory import HELD
from tests.acceptance.requirements.specification import FUNCTIONAL, QUALITIES

__all__ = ["REQUIREMENTS", "Requirement"]

REQUIREMENTS: tuple[Requirement, ...] = (
    *FUNCTIONAL, *QUALITIES, *BUILT, *SHOWN, *UNDERSTOOD, *LIVED, *WRITTEN, *COMPOSED, *AGENTS, *CONNECTED,
    *HELD, *FRAMED, *DOCUMENTED,
)
