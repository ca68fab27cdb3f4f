"""The gate: texts not worth a memory, and above all texts that are."""

# ruff: noqa: RUF001 - texts in many scripts

from __future__ import annotations

import pytest

from agentcore.memory.language.rejection import EMPTY, GREETING, REFUSAL, rejection


@pytest.mark.parametrize("content", ["", "  \n\t", "👍🎉", "!!! ???", "___", "-- * --"])
def test_a_text_without_words_is_empty(content: str) -> None:
    assert rejection(content) == EMPTY


@pytest.mark.parametrize(
    "content",
    [
        "hi",
        "Hello there!",
        "Good morning everyone, how's it going?",
        "thanks!",
        "Thank you so much for your help, have a great day! 🙏",
        "ok",
        "OK, bye. See you later!",
        "User: hi\nAgent: Hello! How can I help you today?",
        "assistant: You're welcome! Is there anything else I can help with?",
        "I'm so sorry",
        "Guten Morgen!",
        "Merci beaucoup",
        "¡Hola! ¿Qué tal?",
        "Grazie mille",
        "Olá, bom dia",
        "Dziękuję",
        "Привет! Спасибо",
        "Ευχαριστώ",
        "Merhaba, teşekkürler",
        "你好！",
        "こんにちは",
        "안녕하세요",
        "مرحبا",
        "नमस्ते",
    ],
)
def test_small_talk_is_a_greeting(content: str) -> None:
    assert rejection(content) == GREETING


@pytest.mark.parametrize(
    "content",
    [
        "As an AI, I can't help with that.",
        "As an AI language model, I don't have personal opinions.",
        "I'm sorry, but I can't assist with that request.",
        "I\u2019m unable to help with that.",
        "Unfortunately, I cannot provide that information at this time.",
        "I don't know.",
        "Sorry, I'm not sure about that.",
        "I don't have access to that information.",
        "I'm sorry, this violates our content policy.",
        "Hi! I can't help you with this.",
        "Das kann ich leider nicht tun.",
        "Désolé, je ne peux pas vous aider.",
        "Lo siento, no puedo ayudarte con eso.",
        "User: Tell me a joke about cats\nAgent: I'm sorry, but I can't help with that.",
    ],
)
def test_a_bare_refusal_is_one(content: str) -> None:
    assert rejection(content) == REFUSAL


@pytest.mark.parametrize(
    "content",
    [
        "Hi, I'm Anna",
        "Hi Anna",
        "yes",
        "no",
        "7",
        "OK, see you at 6",
        "Thanks, the code was 4471",
        "I can't eat gluten.",
        "I'm sorry, I can't come on Friday.",
        "I can't help with the move because my back hurts.",
        "As an AI, I can't browse, but Paris is the capital of France.",
        "I don't know Maria.",
        "Never call me before nine",
        "User: My PIN is 4411\nAgent: I can't help with that.",
        "User: Is Anna allergic?\nAgent: I don't know.",
        "User: how do I reset my router?\nAgent: I can't help with that.",
        "User: moonlight\nAgent: I can't help with that.",
        "User: !!\nAgent: Oslo has 700000 people.",
        "Tell me a joke",
        "hello " * 200,
        "我对花生过敏",
    ],
)
def test_whatever_may_hold_a_fact_is_kept(content: str) -> None:
    assert rejection(content) is None


def test_an_empty_turn_beside_a_refusal_changes_nothing() -> None:
    assert rejection("User: ...\nAgent: I can't help with that.") == REFUSAL
