"""The doctor: looks at each part, says what it found, and how to mend what is wrong. It changes nothing."""

from agentcore.doctor.examination import examine, model_file
from agentcore.doctor.verdicts import Check

__all__ = ["Check", "examine", "model_file"]
