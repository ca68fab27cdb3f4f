"""An error as a lasting outcome: its kind and the beginning of its words, without what looks secret. Pure."""

from __future__ import annotations

import re

MOST_ERROR_CHARS = 500
HIDDEN = "(hidden)"

# An address keeps its host and path: who signs in and what is asked there may hold keys.
_ADDRESS = re.compile(
    r"""\b([a-z][a-z0-9+.-]{0,30}://)(?:[^\s/@'"]*@)?([^\s?\#'"<>]*)([?\#][^\s'"<>]*)?""", re.I)
_BEARER = re.compile(r"\b(bearer|basic)\s+[\w+/=.~-]+", re.I)
_NAMED = re.compile(
    r"""((?:key|token|secret|pass(?:word|wd|phrase)?|pwd|authorization|credentials?|signature|cookie)s?
    ['"]?\s*(?:[:=]|\bis\b)\s*)(?:"[^"]*"|'[^']*'|[^\s,;&)]+)""", re.I | re.X)
# Letters and digits without a space, too long for a word; a file's path from the root is none.
_OPAQUE = re.compile(r"(?<![\w+/=.-])(?!/)(?=[\w+/=.-]*[a-z])(?=[\w+/=.-]*\d)[\w+/=.-]{20,}", re.I)


def error_words(error: BaseException, *, whole: bool = False) -> str:
    """The outcome of a turn that failed; `whole`: all that the error says, within the same length."""
    said = str(error)
    return f"failed: {type(error).__name__}: {said if whole else discreet(said)}"[:MOST_ERROR_CHARS]


def discreet(said: str) -> str:
    """The words without queries of addresses, names that sign in, keys, tokens and passwords."""
    said = _ADDRESS.sub(_address, said)
    said = _BEARER.sub(rf"\1 {HIDDEN}", said)
    said = _NAMED.sub(rf"\1{HIDDEN}", said)
    words = (word if "://" in word else _OPAQUE.sub(HIDDEN, word) for word in re.split(r"(\s+)", said))
    return "".join(words)


def _address(found: re.Match[str]) -> str:
    return f"{found[1]}{found[2]}{f'?{HIDDEN}' if found[3] else ''}"
