"""Whether a text puts right what its speaker said a moment ago: "no, I meant the 14th". Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta

from agentcore.memory import statement_words as known
from agentcore.memory.differences import comparable, difference
from agentcore.memory.statements import Told, plain, same_speaker
from agentcore.memory.text import sentences
from agentcore.memory.values import TYPED, Token, content, kinds, read_tokens

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
    recent = new.timestamp - old.timestamp <= CORRECTION_WINDOW
    same = old.session_id is not None and old.session_id == new.session_id and same_speaker(old, new)
    if not recent or not same or not corrects(new.content) or len(sentences(old.content)) > 1:
        return ""
    if old.content.rstrip().endswith("?"):
        return ""
    was = read_tokens(plain(old.content))
    rest = new.content.strip()
    while (opener := _OPENER.match(rest)) and opener.end() and opener.end() < len(rest):
        rest = rest[opener.end() :].strip(" ,.:!;-\u2013\u2014")
    pieces = [piece for piece in _FRAGMENT.split(plain(rest)) if piece.strip()]
    dropped = [read_tokens(piece[4:]) for piece in pieces if piece.lower().startswith("not ")]
    said = [read_tokens(piece) for piece in pieces if not piece.lower().startswith("not ")]
    return "correction" if any(_puts_right(was, each, dropped) for each in said) else ""


def _puts_right(was: Sequence[Token], said: Sequence[Token], dropped: Sequence[Sequence[Token]]) -> bool:
    """The old words with one value in the place of another, or such a value alone."""
    said = [token for token in said if token.canon not in known.FILLERS]
    was = [token for token in was if token.canon not in known.FILLERS]
    if said and said[0].canon in known.UNKNOWN_SUBJECTS:
        said = said[1:]
        same_verb = [at for at, token in enumerate(was) if said and token.canon == said[0].canon]
        was = was[same_verb[0] :] if same_verb else was
    apart = difference(was, said)
    if apart is not None:
        gone, come, shared = apart
        typed = bool((kinds(come) | kinds(gone)) & (TYPED | {"date"}))
        enough = len(content(shared)) >= 1 + (not typed) and _is_no_subject(was, gone)
        if enough and (comparable(gone, come) if typed else True):
            return True
    return _is_value_of(was, said, dropped)


def _is_no_subject(was: Sequence[Token], gone: Sequence[Token]) -> bool:
    """What went stands behind the verb, or where none stands at the end."""
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
