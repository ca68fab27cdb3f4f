"""Turns times in a text ("last week", "in May 2023", "between the 3rd and Friday") into spans. English; pure.

Ambiguous forms are ignored: 7/5/2023 (two days), 1.2.2023 (a version), a bare "may" or "march".
A month or weekday without a year or week is the latest begun; in a sentence about the future, the next. A
day of a month without a year is the nearer one, unless the sentence is about the past. A weekday in a
statement is the next one, unless the sentence is about the past.
"""

from agentcore.memory.language.moments.calendar_words import Grain
from agentcore.memory.language.moments.reading import EARLIEST, LATEST, Window, mentioned, windows

__all__ = [
    "EARLIEST",
    "LATEST",
    "Grain",
    "Window",
    "mentioned",
    "windows",
]
