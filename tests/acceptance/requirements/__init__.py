"""All requirements, collected from every source."""

from tests.acceptance.requirements.agents import AGENTS
from tests.acceptance.requirements.connections import CONNECTED
from tests.acceptance.requirements.context import COMPOSED
from tests.acceptance.requirements.documents import DOCUMENTED
from tests.acceptance.requirements.findings_attestation import FINDINGS_ATTESTATION
from tests.acceptance.requirements.findings_backup import FINDINGS_BACKUP
from tests.acceptance.requirements.findings_cli import FINDINGS_CLI
from tests.acceptance.requirements.findings_core import FINDINGS_CORE
from tests.acceptance.requirements.findings_edge import FINDINGS_EDGE
from tests.acceptance.requirements.findings_faults import FINDINGS_FAULTS
from tests.acceptance.requirements.findings_image import FINDINGS_IMAGE
from tests.acceptance.requirements.findings_packaging import FINDINGS_PACKAGING
from tests.acceptance.requirements.findings_tenancy import FINDINGS_TENANCY
from tests.acceptance.requirements.findings_text import FINDINGS_TEXT
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
    *FINDINGS_ATTESTATION,
    *FINDINGS_BACKUP,
    *FINDINGS_CLI,
    *FINDINGS_CORE,
    *FINDINGS_EDGE,
    *FINDINGS_FAULTS,
    *FINDINGS_IMAGE,
    *FINDINGS_PACKAGING,
    *FINDINGS_TENANCY,
    *FINDINGS_TEXT,
)
