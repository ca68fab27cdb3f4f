"""An error as a lasting outcome: its kind and the beginning of its words, without what looks secret. Pure."""

from __future__ import annotations

import re

from agentcore.agents.recordable import MOST_RECORDED_CHARS, said

MOST_ERROR_CHARS = 500
HIDDEN = "(hidden)"

# An address keeps its host and path: who signs in and what is asked there may hold keys. A password may hold
# any sign but a blank and a quotation mark, so that who signs in ends at the last @ before those.
_ADDRESS = re.compile(
    r"""\b([a-z][a-z0-9+.-]{0,30}://)([^\s/:@'"]{0,999}:(?!\d+/)[^\s'"]{0,999}@|[^\s/@'"]{0,999}@)?([^\s?\#'"<>]*)([?\#][^\s'"<>]*)?""",
    re.I)
_BEARER = re.compile(r"\b(bearer|basic)\s+[\w+/=.~-]+", re.I)
_QUOTED = r"""\\*"[^"]*(?:"|$)|\\*'[^']*(?:'|$)"""
_NAMED = re.compile(
    r"""((?:key|token|secret|pass(?:word|wd|phrase)?|pwd|authorization|credentials?|signature|cookie)s?
    (?:\s+(?:provided|given|supplied|sent|received|used|value))?
    (?:\\*['"])?\s*(?:[:=]|\bis\b)\s*)(?:""" + _QUOTED + r"""|[^\s,;&)]+)""", re.I | re.X)
# Without a sign between name and value: what is quoted, or is no mere word.
_BESIDE = re.compile(
    r"""((?:\bpass(?:word|wd|phrase)?|\bpwd|secret|token|(?:api|access|private)[ _-]?key)\s+)
    (?:""" + _QUOTED + r"""|(?=[^\s,;&)]*\d)[^\s,;&)]+)""", re.I | re.X)
# As those who give keys out begin them.
_MARKED = re.compile(r"\b(?:sk|pk|rk|gh[pousr]|github_pat|xox[abeprs]|glpat|hf)[-_][\w-]{4,}|\bAKIA\w{8,}")
# Letters and digits without a space, too long for a word; a file's path from the root is none.
_OPAQUE = re.compile(r"(?<![\w+/=.-])(?!/)(?=[\w+/=.-]*[a-z])(?=[\w+/=.-]*\d)[\w+/=.-]{20,}", re.I)
# The same in an address, between its slashes and colons.
_OPAQUE_SEGMENT = re.compile(r"(?<=[/:])(?=[\w+=.~-]*[a-z])(?=[\w+=.~-]*\d)[\w+=.~-]{20,}(?=[/:]|$)", re.I)


def error_words(error: BaseException, *, whole: bool = False) -> str:
    """The outcome of a turn that failed; `whole`: all that the error says, within the same length."""
    words = said(error)[:MOST_RECORDED_CHARS]
    return f"failed: {type(error).__name__}: {words if whole else discreet(words)}"[:MOST_ERROR_CHARS]


def discreet(text: str) -> str:
    """The words without queries of addresses, names that sign in, keys, tokens and passwords."""
    text = _ADDRESS.sub(_address, text)
    text = _BEARER.sub(rf"\1 {HIDDEN}", text)
    text = _NAMED.sub(rf"\1{HIDDEN}", text)
    text = _MARKED.sub(HIDDEN, _BESIDE.sub(rf"\1{HIDDEN}", text))
    words = (word if "://" in word else _OPAQUE.sub(HIDDEN, word) for word in re.split(r"(\s+)", text))
    return "".join(words)


def _address(found: re.Match[str]) -> str:
    scheme, signs_in, where, asked = found.groups()
    host, slash, path = where.partition("/")
    shown = _OPAQUE_SEGMENT.sub(HIDDEN, slash + path)
    return f"{scheme}{f'{HIDDEN}@' if signs_in else ''}{host}{shown}{f'?{HIDDEN}' if asked else ''}"
