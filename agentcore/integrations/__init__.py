"""Memory in other people's frameworks: each module needs the extra of its name, none is needed by the service."""
