"""Word and sentence boundaries."""

# ruff: noqa: RUF001 - texts in many scripts

from __future__ import annotations

import re
import sys
import unicodedata
from pathlib import Path

import pytest

import agentcore
from agentcore.limits import MAX_MARK_RUN
from agentcore.memory.language.text import (
    MAX_WORD_CHARS,
    NormalForm,
    collapse,
    fold,
    is_code,
    normal_form,
    normalize,
    sentences,
    tokens,
    unspaced,
    words,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat, the hat.", ["the", "cat", "the", "hat"]),
        ("Café ÉCOLE naïve Straße Łódź Ørsted", ["cafe", "ecole", "naive", "strasse", "lodz", "orsted"]),
        ("ﬁle ＡＢＣ１２", ["file", "abc12", "abc", "12"]),
        ("ERR_CONN_42", ["err_conn_42", "err", "conn", "42"]),
        ("getUserName HTTPServer", ["getusername", "get", "user", "name", "httpserver", "http", "server"]),
        ("check-up", ["check-up", "check", "up"]),
        ("a.b+c@mail.org", ["a.b+c@mail.org", "a", "b", "c", "mail", "org"]),
        ("https://ex.com/a_b?q=1", ["https://ex.com/a_b", "https", "ex", "com", "a", "b", "q", "1"]),
        ("v2.4.1", ["2.4.1", "v", "2", "4", "1"]),
        ("2026-03-14 10:30", ["2026-03-14", "2026", "03", "14", "10:30", "10", "30"]),
        ("$1,200 and 12,345,678", ["1200", "and", "12345678"]),
        ("in 2025,300 people", ["in", "2025,300", "2025", "300", "people"]),
        (
            "Anna's we're don't O\u2019Brien l'amour",
            ["anna", "we", "dont", "obrien", "o", "brien", "lamour", "l", "amour"],
        ),
        ("C++, C# and R&D", ["c++", "c", "c#", "c", "and", "r&d", "r", "d"]),
        ("__init__ _", ["init"]),
        ("9f86d081884c7d65", ["9f86d081884c7d65"]),
        ("我住在柏林 好", ["我住", "住在", "在柏", "柏林", "好"]),
        ("Python入門", ["python", "入門"]),
        ("안녕하세요", ["안녕", "녕하", "하세", "세요"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("infor\u00admation", ["information"]),
        ("👍🏽 … !!!", []),
        ("\ud800x", ["x"]),
        ("", []),
    ],
)
def test_words_are_folded_and_compounds_come_whole_and_in_parts(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_a_word_has_a_longest_length_whatever_it_is_made_of() -> None:
    assert words("x" * 5_000) == ["x" * MAX_WORD_CHARS]
    assert words("é" * 5_000) == ["e" * MAX_WORD_CHARS]
    assert words("alpha/" * 100) == ["alpha"] * 100
    assert words("好" * 300) == ["好好"] * 299


def test_words_of_a_number_range_and_of_joined_parts_stay_apart() -> None:
    assert words("x" * 60 + "." + "y" * 39) == ["x" * 60 + "." + "y" * 39, "x" * 60, "y" * 39]
    assert words("x" * 101 + "." + "y") == ["x" * MAX_WORD_CHARS, "y"]


def test_tokens_keep_their_form() -> None:
    assert tokens("Ask O'Brien about ERR_42, v1.2!") == ["Ask", "O'Brien", "about", "ERR_42", "v1.2"]


def test_fold_takes_case_and_accents_off() -> None:
    assert fold("İSTANBUL Ærø") == "istanbul aero"


def test_collapse_leaves_one_blank_between_words() -> None:
    assert collapse(" a\t b\n\nc ") == "a b c"


@pytest.mark.parametrize(
    ("one", "other"),
    [("Hello  World", "hello world"), ("STRASSE", "straße"), ("ﬁne\u00a0day", "Fine day"), (" Ａ１ ", "a1")],
)
def test_texts_that_differ_only_in_case_space_or_form_are_normally_equal(one: str, other: str) -> None:
    assert normal_form(one) == normal_form(other)


def test_accents_make_another_normal_form() -> None:
    assert normal_form("resume") != normal_form("résumé")


def test_scripts_without_spaces_are_known_by_their_first_character() -> None:
    assert unspaced("柏林") and unspaced("ไทย")
    assert not unspaced("Berlin") and not unspaced("Ünal") and not unspaced("")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Dr. Chen said e.g. this. Fine.", ["Dr. Chen said e.g. this.", "Fine."]),
        ("J. K. Rowling wrote it. So did I. Yes.", ["J. K. Rowling wrote it.", "So did I.", "Yes."]),
        ("It costs 3.5 euros. Really", ["It costs 3.5 euros.", "Really"]),
        ('"Really?" she asked. Yes.', ['"Really?" she asked.', "Yes."]),
        ("Hi! how are you", ["Hi!", "how are you"]),
        ("Wait... no. Wait... No.", ["Wait... no.", "Wait...", "No."]),
        ("你好。我住在柏林！好吗？好", ["你好。", "我住在柏林！", "好吗？", "好"]),
        ("# Plan\n- one\n* two. three\n2) four\n> five", ["Plan", "one", "two. three", "four", "five"]),
        ("first line\nsecond line", ["first line", "second line"]),
        ("----\n***\n...", []),
        ("", []),
    ],
)
def test_sentences_come_verbatim_and_in_order(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize("sentence", [
    "Der Vertrag läuft bis zum 31. Dezember weiter.", "Wir wohnen in der Hafenstr. 9 in Kiel.",
    "Sie feiert im Mai ihren 40. Geburtstag.", "Das Büro liegt im 4. Stock links.",
    "Die Feier ist am 1. Advent.",
    "Ich mag Obst, z. B. Birnen und Quitten.", "Wir zahlen brutto, d. h. Steuern kommen dazu.",
    "Ruf bitte Dr. Weber unter Nr. 17 an.", "Es kostet ca. 80 Euro inkl. Versand.",
    "Am 3. Dez. Abends wird gefeiert.",
    "Frau Prof. Dr. Ada Lovelace kommt.", "Er brachte Brot, Wein usw. Freitag mit.",
    "Am 2. Spieltag gewann Kiel.",
])  # fmt: skip
@pytest.mark.shows("B17")
def test_a_german_ordinal_or_abbreviation_ends_no_sentence(sentence: str) -> None:
    assert sentences(sentence) == [sentence]


@pytest.mark.parametrize("parts", [
    ["Wir treffen uns am 31.", "Danach essen wir."], ["Es waren 12.", "Keiner blieb."],
    ["Solve it for x.", "Then check the sign."], ["It was 31.", "Nobody came."],
    ["We need 20.", "Ten are here."],
    ["She is on the 5th.", "He is not."], ["Das ist sehr strikt.", "Neun blieben."],
    ["The dog was old.", "March was cold."], ["I asked Max.", "He agreed."], ["We sold 12.", "Stock is low."],
    ["It is in room 9.", "Ask for Tom."],
])  # fmt: skip
@pytest.mark.shows("B17")
def test_a_number_or_letter_at_the_end_still_ends_a_sentence(parts: list[str]) -> None:
    assert sentences(" ".join(parts)) == parts


def test_lines_cut_by_a_fixed_width_are_one_sentence() -> None:
    text = "This line goes on for as long as the width allows and\ncontinues here.\n\nnext one"
    assert sentences(text) == [text.splitlines()[0] + "\ncontinues here.", "next one"]


def test_a_fenced_block_is_one_piece_of_code() -> None:
    pieces = sentences("Run this. Now:\n```py\nx = 1. y\n\nz = 2\n```\nDone.")
    assert pieces == ["Run this.", "Now:", "```py\nx = 1. y\n\nz = 2\n```", "Done."]
    assert [is_code(piece) for piece in pieces] == [False, False, True, False]


def test_code_without_an_end_is_still_code() -> None:
    assert [is_code(piece) for piece in sentences("See ```x = 1\ny = 2")] == [False, True]


@pytest.mark.parametrize("form", ["NFC", "NFKC", "NFKD"])
@pytest.mark.parametrize("text", [
    "Cafe\u0301 \uff21\uff22 \u1e9b\u0323 \u00bd", "\u1100\u1161\u11a8" * 4_000, "a\u0323\u0301" * 5_000,
    "\u304b\u3099" * 5_000, "\u09c7\u09be" * 5_000, "\u4e00" * 9_000, "\u0344\u0f73" * 10,
])  # fmt: skip
@pytest.mark.shows("A1")
def test_a_text_normalized_in_slices_has_its_unicode_normal_form(form: NormalForm, text: str) -> None:
    assert normalize(form, text) == unicodedata.normalize(form, text)


@pytest.mark.shows("A1")
def test_a_run_of_combining_marks_is_broken_before_it_is_normalized() -> None:
    run = "\u0301\u0323\u0327" * 1_000
    found = normalize("NFKD", f"a{run}")
    runs = re.findall("[\u0301\u0323\u0327]+", found)
    assert max(map(len, runs)) == MAX_MARK_RUN and found.replace("\u034f", "")[0] == "a"
    assert sum(map(len, runs)) == len(run)


@pytest.mark.shows("A1")
def test_every_non_starter_of_unicode_counts_to_a_run() -> None:
    codes = (chr(code) for code in range(sys.maxunicode + 1))
    marks = [mark for mark in codes if unicodedata.combining(unicodedata.normalize("NFKD", mark)[0])]
    whole = [mark for mark in marks if "\u034f" not in normalize("NFC", mark * (MAX_MARK_RUN + 1))]
    assert whole == []


@pytest.mark.shows("A14-U+FDFA")
def test_normalization_never_multiplies_a_text_by_more_than_four() -> None:
    codes = map(chr, range(sys.maxunicode + 1))
    long = [char for char in codes if len(unicodedata.normalize("NFKC", char)) > 4]
    assert long and [normalize("NFKC", char) for char in long] == long
    assert normalize("NFKC", "\u337f\ufdf2") == "株式会社الله"


@pytest.mark.shows("A1")
def test_one_place_normalizes_texts() -> None:
    package = Path(agentcore.__file__).parent
    callers = [path.name for path in package.rglob("*.py") if "unicodedata.normalize(" in path.read_text()]
    assert callers == ["text.py"]
