"""The time a text speaks of: "last week", "in May 2023", "between the 3rd and Friday" become spans of time.

English, pure, linear in the text's length. What could as well mean something else is no time: 7/5/2023 (two
days), 1.2.2023 (a version), "may" and "march" without a preposition, "in 3 days" where nothing is to come.
A month or weekday without a year or week is the latest begun; in a sentence of what is to come, the next.
"""

from agentcore.memory.language.moments.anchors import Anchor, anchors, told_times
from agentcore.memory.language.moments.periods import Grain
from agentcore.memory.language.moments.reading import EARLIEST, LATEST, Window, mentioned, windows

__all__ = [
    "EARLIEST",
    "LATEST",
    "Anchor",
    "Grain",
    "Window",
    "anchors",
    "mentioned",
    "told_times",
    "windows",
]
