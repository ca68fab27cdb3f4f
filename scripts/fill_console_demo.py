"""Stores 3,000 invented memories of several users and sessions, for a look at the console.

python scripts/fill_console_demo.py --url http://127.0.0.1:8080 --token "$AGENTCORE_TOKEN"
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from agentcore.client import MemoryClient

USERS = ("anna", "ben", "carla", "dmitri", "elif", "farid", "grace", "hugo")
CITIES = ("Lisbon", "Oslo", "Kyoto", "Porto", "Graz", "Bergen", "Turin", "Leeds")
FOODS = ("ramen", "lentil soup", "feta", "pancakes", "falafel", "risotto", "dumplings", "rye bread")
PETS = ("a cat called Miso", "a dog called Pepper", "two canaries", "a tortoise")
JOBS = ("a nurse", "a teacher", "a carpenter", "an editor", "a pilot", "a baker")
SAID = (
    "I moved to {city} last week.",
    "My flat in {city} has a balcony now.",
    "We ate {food} at the place near the station.",
    "I can't stand {food} any more.",
    "I have {pet}.",
    "I work as {job} these days.",
    "The meeting with {user} is on the {day}th.",
    "{user} recommended a book about {city}.",
    "The deployment of service {number} failed because the certificate had expired.",
    "Run the migration for release {number} before the backup.",
)
ANSWERED = ("Noted: {topic}.", "Shall I remind you about {topic}?", "Congratulations on {topic}!")
SESSIONS, MESSAGES = 150, 20
FIRST_DAY = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


def sessions(seed: int) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Yields sessions in order of time: id, user and messages."""
    chance = random.Random(seed)  # noqa: S311 - invented data
    for number in range(SESSIONS):
        user = chance.choice(USERS)
        start = FIRST_DAY + timedelta(days=number * 1.6, minutes=chance.randrange(600))
        messages: list[dict[str, Any]] = []
        for turn in range(MESSAGES):
            said = _sentence(chance, chance.choice(SAID)) if turn % 2 == 0 else _answer(chance)
            messages.append(
                {
                    "role": "user" if turn % 2 == 0 else "assistant",
                    "content": f"{said} ({number}.{turn})",
                    "timestamp": (start + timedelta(minutes=turn)).isoformat(),
                }
            )
        yield f"talk-{number:03}", user, messages


def _sentence(chance: random.Random, pattern: str) -> str:
    return pattern.format(
        city=chance.choice(CITIES),
        food=chance.choice(FOODS),
        pet=chance.choice(PETS),
        job=chance.choice(JOBS),
        user=chance.choice(USERS).capitalize(),
        day=chance.randint(1, 28),
        number=chance.randint(1, 40),
    )


def _answer(chance: random.Random) -> str:
    topic = chance.choice((*CITIES, *FOODS))
    return chance.choice(ANSWERED).format(topic=topic)


async def fill(url: str, token: str, seed: int = 7) -> int:
    """Returns the number of stored memories."""
    stored = 0
    async with MemoryClient(url, token, timeout_seconds=60) as memory:
        for number, (session_id, user, messages) in enumerate(sessions(seed), 1):
            tags = ["demo", "work" if number % 3 == 0 else "private"]
            done = await memory.add_session(
                session_id=session_id, messages=messages, user_id=user, tags=tags, force=True
            )
            stored += done.stored_count
            if sys.stderr.isatty():
                print(f"\r{number} of {SESSIONS} sessions", end="", file=sys.stderr, flush=True)
    return stored


def main() -> None:
    parser = argparse.ArgumentParser(description="Store 3,000 invented memories, for a look at the console.")
    parser.add_argument("--url", required=True)
    parser.add_argument("--token", required=True)
    asked = parser.parse_args()
    print(f"{asyncio.run(fill(asked.url, asked.token)):,} memories stored")


if __name__ == "__main__":
    main()
