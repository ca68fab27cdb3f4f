"""Renders a context as markdown, plain text or JSON. Pure; `fencing.py` has quoted the texts before."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agentcore.memory.contexts.fencing import CLOSING, NOTICE, OPENING


@dataclass(frozen=True)
class Said:
    """One memory: its number in the context, who says it, what, and its validity if it is superseded.

    `newer`: the number of a memory that probably changes it; 0 if that is not in the context.
    """

    number: int
    speaker: str
    text: str
    valid: str = ""
    newer: int | None = None


@dataclass(frozen=True)
class Stretch:
    """Memories said together, and when they begin."""

    time: str
    memories: Sequence[Said]


@dataclass(frozen=True)
class Section:
    """A part of the context."""

    title: str
    stretches: Sequence[Stretch]


class Form(Protocol):
    """How a context is written: the whole, the pieces that its parts cost, and one without a memory."""

    @property
    def frame(self) -> str: ...

    @property
    def nothing(self) -> str: ...

    def heading(self, title: str) -> str: ...

    def time(self, time: str) -> str: ...

    def memory(self, said: Said) -> str: ...

    def whole(self, sections: Sequence[Section]) -> str: ...


@dataclass(frozen=True)
class Lines:
    """A heading for each section, a line for each time and each memory, inside the fence."""

    before_title: str
    behind_title: str
    frame: str = f"{OPENING}\n{NOTICE}\n{CLOSING}\n"
    nothing: str = ""

    def heading(self, title: str) -> str:
        return f"\n{self.before_title}{title}{self.behind_title}\n"

    def time(self, time: str) -> str:
        return f"{time}\n"

    def memory(self, said: Said) -> str:
        return f"{said.number}. {_mark(said)}{said.speaker}{': ' if said.speaker else ''}{said.text}\n"

    def whole(self, sections: Sequence[Section]) -> str:
        lines = [f"{OPENING}\n{NOTICE}\n"]
        for section in sections:
            lines.append(self.heading(section.title))
            for stretch in section.stretches:
                lines += [self.time(stretch.time), *(self.memory(each) for each in stretch.memories)]
        return "".join([*lines, f"{CLOSING}\n"])


def _mark(said: Said) -> str:
    if said.valid:
        return f"[valid {said.valid}] "
    if said.newer is None:
        return ""
    return f"[earlier, see {said.newer}] " if said.newer else "[earlier] "


class Json:
    """One object: the notice, then the sections that hold something; strings are the fence."""

    frame = json.dumps({"notice": NOTICE})
    nothing = json.dumps({"notice": NOTICE}, separators=(",", ":"))

    def heading(self, title: str) -> str:
        return _compact({title: []})

    def time(self, time: str) -> str:
        return _compact({"time": time, "memories": []}) + ","

    def memory(self, said: Said) -> str:
        return _compact(_fields(said)) + ","

    def whole(self, sections: Sequence[Section]) -> str:
        told: dict[str, Any] = {"notice": NOTICE}
        for section in sections:
            told[section.title] = [
                {"time": stretch.time, "memories": [_fields(each) for each in stretch.memories]}
                for stretch in section.stretches
            ]
        return _compact(told)


def _fields(said: Said) -> dict[str, Any]:
    speaker = {"speaker": said.speaker} if said.speaker else {}
    valid: dict[str, Any] = {"valid": said.valid} if said.valid else {}
    if said.newer is not None:
        valid["outdated_by"] = said.newer or None
    return {"n": said.number, **speaker, **valid, "text": said.text}


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


FORMS: dict[str, Form] = {"markdown": Lines("## ", ""), "text": Lines("", ":"), "json": Json()}
