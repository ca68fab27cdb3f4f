"""Prepares text for a language model and cleans its output: truncates it, removes reasoning."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from agentcore.memory.language.text import sentences

# Maximum of memories in one request, and of one memory.
REQUEST_BYTES, MEMORY_BYTES = 16_384, 8_192

_TAG = "(?:think|thinking|thought|reasoning|scratchpad|reflection|analysis)"
# A tag in code, or inside a sentence, is quoted text.
_CODE = re.compile(r"```(?s:.*?)```|`[^`\n]+`")
_SENTENCE_END = re.compile(r"(?:\A|[\n.!?>\]\u25b7\u2026\u3002\uff01\uff1f])[^\S\n]*\Z")
_LOOK_BACK_CHARS = 100
# <think>, <think effort="low">, [THINK] (Magistral), \u25c1think\u25b7 (Kimi).
_MARK = re.compile(
    rf"(?:[<\u25c1]|\[(?=/?think\]))(?P<closes>/?)(?P<tag>{_TAG})(?:\s[^<>]{{0,200}})?[>\u25b7\]]",
    re.IGNORECASE | re.ASCII,
)
# OpenAI's harmony format: channels of a message, of which `analysis` is reasoning.
_HARMONY_STARTS = ("<|channel|>", "<|start|>")
_HARMONY_ANALYSIS = re.compile(r"<\|channel\|>analysis<\|message\|>(?s:.*?)(?:<\|end\|>|(?=<\|channel\|>)|\Z)")
_HARMONY_FRAME = re.compile(r"<\|start\|>assistant|<\|channel\|>\w{1,20}|<\|(?:message|end|return)\|>")


def strip_all_reasoning(text: str) -> str:
    """Removes closed reasoning blocks anywhere, and unclosed ones at the start and end."""
    text = _without_analysis(text)
    said = _without(text, _closed_blocks(text))
    return _strip_cut_off(said, has_reasoning=said != text).strip()


def strip_leading_reasoning(text: str, *, cut_off: bool = False) -> str:
    """Removes reasoning blocks that start the text, a line or a sentence; tags in code stay.

    `cut_off`: also removes unclosed blocks at the start and end, for text written by a model.
    """
    text = _without_analysis(text)
    blocks = _closed_blocks(text, _marks_of_blocks(text))
    places = [(start, _past_blanks(text, end)) for start, end in blocks]
    said = _without(text, places).strip() if places else text
    return _strip_cut_off(said, has_reasoning=bool(places)) if cut_off else said


def _strip_cut_off(text: str, *, has_reasoning: bool) -> str:
    """Removes the text before a closing tag that was never opened, and after an opening tag that is never closed.

    The closing tag must start or end a line, or follow a sentence: JSON and code may quote it. The opening tag must
    start a line, or a sentence if the text `has_reasoning`.
    """
    marks, start = _marks_of_blocks(text), 0
    if marks and marks[0]["closes"]:
        start, has_reasoning = _past_blanks(text, marks[0].end()), True
    for mark in marks:
        line = text[max(0, mark.start() - _LOOK_BACK_CHARS) : mark.start()].rstrip(" \t")
        if mark.start() >= start and not mark["closes"] and (has_reasoning or line[-1:] in ("", "\n")):
            return text[start : mark.start()].rstrip()
    return text[start:]


def _without_analysis(text: str) -> str:
    if not text.lstrip().startswith(_HARMONY_STARTS):
        return text
    return _HARMONY_FRAME.sub("", _HARMONY_ANALYSIS.sub("", text)).strip()


def _marks_of_blocks(text: str) -> list[re.Match[str]]:
    found: list[re.Match[str]] = []
    opened: dict[str, bool] = {}
    for mark, code_start, is_quoted in _marks_in_context(text):
        tag, start, closes = mark["tag"].lower(), mark.start(), bool(mark["closes"])
        ends_block = closes and opened.get(tag)
        if code_start is not None and not (ends_block and text.startswith("```", code_start)):
            continue
        before, after = text[max(0, start - _LOOK_BACK_CHARS) : start], text[mark.end() : mark.end() + 1]
        begins = _SENTENCE_END.search(before) is not None
        if closes:
            is_delimiter = opened.pop(tag, (begins and not is_quoted) or after in ("", "\n", "\r"))
        else:
            is_delimiter = opened[tag] = begins
        if is_delimiter:
            found.append(mark)
    return found


def _marks_in_context(text: str) -> Iterator[tuple[re.Match[str], int | None, bool]]:
    """Yields each tag, the start of the code around it, and whether it is quoted."""
    code = [found.span() for found in _CODE.finditer(text)] if "`" in text else []
    at = past = quotes = 0
    for mark in _MARK.finditer(text):
        start = mark.start()
        while at < len(code) and code[at][1] <= start:
            at += 1
        between, past = text[past:start], mark.end()
        line = between.rpartition("\n")[2]
        # Odd inside a quotation, which ends at the latest with its line.
        quotes = line.count('"') - line.count('\\"') + (0 if "\n" in between else quotes)
        in_code = at < len(code) and code[at][0] < start
        yield mark, code[at][0] if in_code else None, quotes % 2 == 1


def _closed_blocks(text: str, marks: Sequence[re.Match[str]] | None = None) -> Iterator[tuple[int, int]]:
    """Yields the bounds of closed reasoning blocks in order, in linear time."""
    ends: dict[str, int] = {}
    closed: list[tuple[int, int]] = []
    for mark in reversed([*_MARK.finditer(text)] if marks is None else marks):
        tag = mark["tag"].lower()
        if mark["closes"]:
            ends[tag] = mark.end()
        elif tag in ends:
            closed.append((mark.start(), ends[tag]))
    past = 0
    for start, end in reversed(closed):
        if start >= past:
            yield start, end
            past = end


def _without(text: str, places: Iterable[tuple[int, int]]) -> str:
    kept, past = [], 0
    for start, end in places:
        kept.append(text[past:start])
        past = end
    return "".join([*kept, text[past:]])


def _past_blanks(text: str, at: int) -> int:
    while text[at : at + 1].isspace():
        at += 1
    return at


def truncate_bytes(text: str, max_bytes: int = MEMORY_BYTES) -> str:
    """Truncates at a character boundary."""
    return text.encode("utf-8", "replace")[:max_bytes].decode("utf-8", "ignore")


def size_bytes(text: str) -> int:
    """Returns the length of the text in UTF-8 bytes."""
    return len(text.encode("utf-8", "replace"))


def truncate_sentences(text: str, max_tokens: int, count: Callable[[str], int]) -> str:
    """Returns the first sentences that fit, or the longest prefix of the first."""
    kept = ""
    for sentence in sentences(text):
        longer = f"{kept} {sentence}".strip()
        if count(longer) > max_tokens:
            break
        kept = longer
    return kept or truncate_tokens(text, max_tokens, count)


def truncate_tokens(text: str, max_tokens: int, count: Callable[[str], int]) -> str:
    fits, too_long = 0, len(text) + 1
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if count(text[:middle]) <= max_tokens:
            fits = middle
        else:
            too_long = middle
    return text[:fits].rstrip()
