"""Whether a context holds what a question needs: the labelled evidence, word for word. Pure.

A labelled memory is contained only if all of its numbers and names and at least 90 % of its content words
stand in the context, wherever in it. Content words are those that are no stop words; names the capitalised
ones that begin no sentence.
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
    """A labelled memory as it must appear: what of it must all be there, and what for the greater part."""

    memory_id: str
    indispensable: Set[str]
    content_words: Set[str]

    def stands_in(self, said: Collection[str]) -> bool:
        """Whether a text of these words contains it."""
        if not all(word in said for word in self.indispensable):
            return False
        there = sum(word in said for word in self.content_words)
        return there >= LEAST_WORDS * len(self.content_words)


def wholes(text: str) -> list[str]:
    """Returns folded words in order, compounds in one piece; unspaced scripts give pairs of characters."""
    return [
        form for token in tokens(text) for form in (words(token) if unspaced(token) else words(token)[:1])
    ]


def evidence(memory_id: str, text: str) -> Evidence:
    """What of this text must appear."""
    content = {word for word in wholes(text) if word not in STOP_WORDS}
    return Evidence(memory_id, {*_numbers(content), *_names(text)}, content)


def _numbers(content: Collection[str]) -> set[str]:
    return {word for word in content if any(sign.isdigit() for sign in word)}


def _names(text: str) -> set[str]:
    later = (token for piece in sentences(text) for token in tokens(piece)[1:] if token[:1].isupper())
    return {form for token in later for form in words(token)[:1] if fold(form) not in STOP_WORDS}


def words_of(context: str) -> set[str]:
    """The words that a context says, compounds whole and in their parts."""
    return set(words(context))


@dataclass(frozen=True)
class Given:
    """A context that was given: its words, its tokens, and the ids of the memories that stand in full."""

    said: Set[str]
    tokens: int
    in_full: Set[str] = field(default_factory=frozenset)


def share_contained(labelled: Sequence[Evidence], given: Given) -> float:
    """The share of a question's labelled memories that the context contains."""
    return sum(each.stands_in(given.said) for each in labelled) / len(labelled)


def share_in_full(labelled: Sequence[Evidence], given: Given) -> float:
    """The share of them that stand there themselves, in full: no words of others help."""
    return sum(each.memory_id in given.in_full for each in labelled) / len(labelled)


class WordIndex:
    """Okapi BM25 over texts (k1 = 1.2, b = 0.75), stop words out and English words stemmed."""

    def __init__(self, texts: Sequence[str]) -> None:
        counts = [Counter(terms(text)) for text in texts]
        self._lengths = [sum(each.values()) for each in counts]
        self._mean = max(1.0, sum(self._lengths) / max(1, len(texts)))
        self._postings: dict[str, list[tuple[int, int]]] = {}
        for place, count in enumerate(counts):
            for term, often in count.items():
                self._postings.setdefault(term, []).append((place, often))

    def ranked(self, query: str) -> list[int]:
        """The places of the texts that share a word with the query, best first."""
        scores: dict[int, float] = {}
        for term in set(terms(query)):
            held = self._postings.get(term, ())
            rarity = idf(len(held), len(self._lengths))
            for place, often in held:
                length = 1 - B + B * self._lengths[place] / self._mean
                scores[place] = scores.get(place, 0.0) + rarity * often * (K1 + 1) / (often + K1 * length)
        return sorted(scores, key=lambda place: (-scores[place], place))
