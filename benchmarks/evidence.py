"""Checks whether a context contains the labeled evidence of a question, word for word. Pure.

A labeled memory is contained only if all of its numbers and names and at least 90 % of its content words
occur
anywhere in the context. Content words exclude stop words; names are capitalized words that begin no sentence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass, field

from agentcore.memory.language.text import STOP_WORDS, fold, sentences, tokens, unspaced, words
from agentcore.memory.lexical import idf, terms

LEAST_WORDS = 0.9
K1, B = 1.2, 0.75


@dataclass(frozen=True)
class Evidence:
    """The words of a labeled memory that a context must contain: all of some, and most of the others."""

    memory_id: str
    indispensable: Set[str]
    content_words: Set[str]

    def stands_in(self, said: Collection[str]) -> bool:
        """Checks whether a text of these words contains it."""
        if not all(word in said for word in self.indispensable):
            return False
        there = sum(word in said for word in self.content_words)
        return there >= LEAST_WORDS * len(self.content_words)


def wholes(text: str) -> list[str]:
    """Returns folded words in order, compounds in one piece; unspaced scripts give pairs of characters."""
    return [form for token in tokens(text) for form in (words(token) if unspaced(token) else words(token)[:1])]


def evidence(memory_id: str, text: str) -> Evidence:
    content = {word for word in wholes(text) if word not in STOP_WORDS}
    return Evidence(memory_id, {*_numbers(content), *_names(text)}, content)


def _numbers(content: Collection[str]) -> set[str]:
    return {word for word in content if any(sign.isdigit() for sign in word)}


def _names(text: str) -> set[str]:
    later = (token for piece in sentences(text) for token in tokens(piece)[1:] if token[:1].isupper())
    return {form for token in later for form in words(token)[:1] if fold(form) not in STOP_WORDS}


def words_of(context: str) -> set[str]:
    """Returns the words of a context, compounds both whole and split."""
    return set(words(context))


@dataclass(frozen=True)
class Given:
    """A context: its words, its tokens, and the ids of memories contained in full."""

    said: Set[str]
    tokens: int
    in_full: Set[str] = field(default_factory=frozenset)


def share_contained(labelled: Sequence[Evidence], given: Given) -> float:
    """Returns the share of a question's labeled memories that the context contains."""
    return sum(each.stands_in(given.said) for each in labelled) / len(labelled)


def share_in_full(labelled: Sequence[Evidence], given: Given) -> float:
    """Returns the share of labeled memories that the context contains in full, as single memories."""
    return sum(each.memory_id in given.in_full for each in labelled) / len(labelled)


class WordIndex:
    """Okapi BM25 over texts (k1 = 1.2, b = 0.75), without stop words and with English stemming."""

    def __init__(self, texts: Sequence[str]) -> None:
        counts = [Counter(terms(text)) for text in texts]
        self._lengths = [sum(each.values()) for each in counts]
        self._mean = max(1.0, sum(self._lengths) / max(1, len(texts)))
        self._postings: dict[str, list[tuple[int, int]]] = {}
        for place, count in enumerate(counts):
            for term, often in count.items():
                self._postings.setdefault(term, []).append((place, often))

    def ranked(self, query: str) -> list[int]:
        """Returns the indexes of the texts that share a word with the query, best first."""
        scores: dict[int, float] = {}
        for term in set(terms(query)):
            held = self._postings.get(term, ())
            rarity = idf(len(held), len(self._lengths))
            for place, often in held:
                length = 1 - B + B * self._lengths[place] / self._mean
                scores[place] = scores.get(place, 0.0) + rarity * often * (K1 + 1) / (often + K1 * length)
        return sorted(scores, key=lambda place: (-scores[place], place))
