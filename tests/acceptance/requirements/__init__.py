"""The requirements of every source."""

from tests.acceptance.requirements.form import Requirement
from tests.acceptance.requirements.frameworks import FRAMED
from tests.acceptance.requirements.lifecycle import LIVED
from tests.acceptance.requirements.retrieval import UNDERSTOOD
from tests.acceptance.requirements.service import BUILT, SHOWN
from tests.acceptance.requirements.specification import FUNCTIONAL, QUALITIES

__all__ = ["REQUIREMENTS", "Requirement"]

REQUIREMENTS: tuple[Requirement, ...] = (
    *FUNCTIONAL, *QUALITIES, *BUILT, *SHOWN, *UNDERSTOOD, *LIVED, *FRAMED)
