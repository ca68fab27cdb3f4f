"""Whether a text puts right what its speaker said a moment ago: "no, I meant the 14th". Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta

from agentcore.memory.language.text import sentences
from agentcore.memory.statements import statement_words as known
from agentcore.memory.statements.differences import Difference, comparable, difference
from agentcore.memory.statements.statements import Told, plain, same_speaker
from agentcore.memory.statements.values import TYPED, Token, content, is_typed, read_tokens

# How long ago what is put right may have been said.
CORRECTION_WINDOW = timedelta(minutes=30)
CORRECTION_CHARS = 300
_OPENER = re.compile(known.CORRECTION, re.IGNORECASE)
_FRAGMENT = re.compile(r"[.:;!\u2013\u2014]\s+|,\s+(?=not\b)|\s+(?=not \S+$)")


def corrects(text: str) -> bool:
    """Whether it begins as one begins who puts right what was just said."""
    return (
        len(text) <= CORRECTION_CHARS
        and _OPENER.match(text.strip()) is not None
        and not text.rstrip().endswith("?")
    )


def correction(old: Told, new: Told) -> str:
    """An explicit correction of what the same speaker said in the same session a moment ago."""
    if not _said_a_moment_ago(old, new) or not corrects(new.content) or not _is_one_statement(old.content):
        return ""
    was = read_tokens(plain(old.content))
    pieces = [piece for piece in _FRAGMENT.split(plain(_without_opener(new.content))) if piece.strip()]
    dropped = [read_tokens(piece[4:]) for piece in pieces if _drops(piece)]
    said = [read_tokens(piece) for piece in pieces if not _drops(piece)]
    return "correction" if any(_puts_right(was, each, dropped) for each in said) else ""


def _said_a_moment_ago(old: Told, new: Told) -> bool:
    recent = new.timestamp - old.timestamp <= CORRECTION_WINDOW
    in_one_session = old.session_id is not None and old.session_id == new.session_id
    return recent and in_one_session and same_speaker(old, new)


def _is_one_statement(text: str) -> bool:
    return len(sentences(text)) <= 1 and not text.rstrip().endswith("?")


def _without_opener(text: str) -> str:
    rest = text.strip()
    while (opener := _OPENER.match(rest)) and opener.end() and opener.end() < len(rest):
        rest = rest[opener.end() :].strip(" ,.:!;-\u2013\u2014")
    return rest


def _drops(piece: str) -> bool:
    return piece.lower().startswith("not ")


def _puts_right(was: Sequence[Token], said: Sequence[Token], dropped: Sequence[Sequence[Token]]) -> bool:
    said = [token for token in said if token.canon not in known.FILLERS]
    was = [token for token in was if token.canon not in known.FILLERS]
    if said and said[0].canon in known.UNKNOWN_SUBJECTS:
        said = said[1:]
        was = _from_the_same_verb(was, said)
    apart = difference(was, said)
    if apart is not None and _is_other_value(was, apart):
        return True
    return _is_value_of(was, said, dropped)


def _from_the_same_verb(was: Sequence[Token], said: Sequence[Token]) -> Sequence[Token]:
    first = next((at for at, token in enumerate(was) if said and token.canon == said[0].canon), 0)
    return was[first:]


def _is_other_value(was: Sequence[Token], apart: Difference) -> bool:
    typed = is_typed((*apart.come, *apart.gone))
    if len(content(apart.shared)) < (1 if typed else 2) or not _is_no_subject(was, apart.gone):
        return False
    return comparable(apart.gone, apart.come) if typed else True


def _is_no_subject(was: Sequence[Token], gone: Sequence[Token]) -> bool:
    verbs = [at for at, token in enumerate(was) if token.canon in known.VERBS]
    place = next((at for at, token in enumerate(was) if token is gone[0]), 0)
    return place > (verbs[0] if verbs else 0)


def _is_value_of(was: Sequence[Token], said: Sequence[Token], dropped: Sequence[Sequence[Token]]) -> bool:
    values = [token for token in said if token.kind in TYPED]
    if len(values) != 1 or not content(said) - {values[0].canon} <= content(was):
        return False
    held = [token for token in was if token.kind == values[0].kind]
    if any(token.canon == values[0].canon for token in held):
        return False
    if dropped:
        return any(content(each) <= {token.canon for token in held} for each in dropped)
    return len(held) == 1
