"""Imports exports of other systems into the running service with the command line."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from agentcore.agents.scope import MemoryScope
from agentcore.client import MemoryClient
from agentcore.integrations.langgraph import AgentCoreStore
from agentcore.memory.params.memories import CountParams
from tests.acceptance.test_transfer import everything, tally
from tests.fixtures.forked_commands import Done
from tests.fixtures.serving import ROOT

EXPORTS = ROOT / "tests" / "fixtures" / "exports"
PORTO = "0f1e2d3c-0000-4000-8000-000000000001"
# By form: its file, the expected outcomes, and the expected omissions.
FORMS: dict[str, tuple[str, dict[str, int], dict[str, int]]] = {
    "chatgpt": (
        "chatgpt.json",
        {"stored": 5, "failed": 1},
        {
            "another branch of the conversation": 1,
            "image without text": 1,
            "tool call": 1,
            "tool output": 1,
            "hidden by the app": 1,
        },
    ),
    "claude": (
        "claude.json",
        {"stored": 2, "failed": 1},
        {"text of an attachment": 1, "reasoning": 1, "tool call": 1, "tool output": 1, "empty message": 1},
    ),
    "mem0": ("mem0.json", {"stored": 2, "failed": 1}, {"empty memory": 1, "expired": 1, "relation of the graph": 1}),
    "langgraph": ("langgraph.jsonl", {"stored": 3, "failed": 1}, {"empty item": 1}),
    "kagent": ("kagent.json", {"stored": 2}, {"vector of another model: it is made anew": 1, "expired": 1}),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.shows("issue6-6-forms")
async def test_every_form_is_stored_once_and_what_was_left_out_is_told(
    run: Callable[..., Done], memory: MemoryClient, tmp_path: Path, form: str
) -> None:
    name, became, left_out = FORMS[form]
    report = tmp_path / "report.json"
    done = run("import", "--from", form, str(EXPORTS / name), "--report", str(report))
    assert tally(done) == became
    assert done.returncode == int("failed" in became)
    for reason, count in left_out.items():
        assert f"  left out {count}: {reason}\n" in done.stdout
    written = json.loads(report.read_text())
    assert written["left_out"] == left_out
    assert {name: written[name] for name in became} == became
    assert set(written["places"]) == set(left_out) | set(written["failed_because"])
    kept = await everything(memory)
    assert not [record for record in kept if record.content in report.read_text()]
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    again = run("import", "--from", form, str(EXPORTS / name))
    assert tally(again) == {
        "existing": became["stored"],
        **{name: count for name, count in became.items() if name == "failed"},
    }
    assert await everything(memory) == kept


@pytest.mark.shows("issue6-6-forms")
async def test_langgraphs_store_goes_on_with_the_items_of_its_dump(
    run: Callable[..., Done], memory: MemoryClient
) -> None:
    for owner in ((), ("--user", "ada", "--namespace", "app")):
        assert tally(run("import", "--from", "langgraph", str(EXPORTS / "langgraph.jsonl"), *owner))["stored"] == 3
    stores = [AgentCoreStore(memory, MemoryScope(user_id="ada", namespace="app")), AgentCoreStore(memory)]
    boat = await stores[0].aget(("users", "bruno"), "k-1")
    assert boat is not None
    assert boat.value == {"boat": "Seagull", "metres": 9}
    assert boat.created_at == datetime(2026, 1, 8, 10, 0, 0, 500_000, UTC)
    [first, *_] = await stores[0].asearch(("users", "ada"), query="Where is the concert?")
    assert first.value["content"] == {"content": "Ada's concert is in the Casa da Musica"}
    assert [each.key for each in await stores[0].asearch(())] == ["k-1", "k-2", "k-1"]
    assert await stores[0].alist_namespaces() == [("users", "ada"), ("users", "bruno")]
    await stores[0].aput(("users", "bruno"), "k-1", {"boat": "Albatross"})
    await stores[1].adelete(("users", "ada"), "k-1")
    assert (await memory.count(CountParams(user_id="ada"))).count == 2
    assert await stores[0].aget(("users", "bruno"), "k-1") == await stores[1].aget(("users", "bruno"), "k-1")


@pytest.mark.parametrize("form", ["chatgpt", "claude"])
@pytest.mark.shows("issue6-6-forms")
async def test_an_export_is_read_inside_its_zip_archive(
    run: Callable[..., Done], memory: MemoryClient, tmp_path: Path, form: str
) -> None:
    with ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.write(EXPORTS / f"{form}.json", "data/conversations.json")
        archive.writestr("user.json", "{}")
        archive.writestr("chat.html", "<html>")
    done = run("import", "--from", form, str(tmp_path / "export.zip"))
    assert tally(done) == FORMS[form][1]
    assert "  left out 2: another file of the export\n" in done.stdout
    # Unpacked, the same conversations are all duplicates.
    again = run("import", "--from", form, str(EXPORTS / f"{form}.json"))
    assert tally(again)["existing"] == FORMS[form][1]["stored"]


def test_an_archive_that_is_no_export_is_refused(run: Callable[..., Done], tmp_path: Path) -> None:
    with ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("notes.txt", "nothing")
    for form, problem in (("claude", "contains no conversations.json"), ("mem0", "unpack it")):
        refused = run("import", "--from", form, str(tmp_path / "other.zip"))
        assert (refused.returncode, problem in refused.stderr) == (1, True)


def items(count: int) -> list[dict[str, Any]]:
    return [
        {
            "namespace": ["parcels"],
            "key": f"k-{n}",
            "created_at": "2026-01-07T10:00:00+00:00",
            "value": {"text": f"Parcel {n * 7919} lies in locker {n}."},
        }
        for n in range(count)
    ]


@pytest.mark.shows("issue6-6-resumed")
async def test_a_state_lets_the_next_run_begin_behind_what_is_stored(
    run: Callable[..., Done], memory: MemoryClient, tmp_path: Path
) -> None:
    file, state = tmp_path / "store.jsonl", tmp_path / "state.json"
    lines = [json.dumps(item) for item in items(300)]
    file.write_text("\n".join([*lines[:260], '{"broken": ', *lines[260:]]))
    arguments = ("--from", "langgraph", str(file), "--state", str(state))
    stopped = run("import", *arguments, "--strict")
    assert "stopped after record 260: record 261" in stopped.stderr
    assert json.loads(state.read_text())["position"] == 260
    gone_on = run("import", *arguments)
    assert "going on after record 260" in gone_on.stderr
    assert tally(gone_on) == {"stored": 40, "failed": 1}
    assert tally(run("import", *arguments)) == {}
    # Another user, `--force` and a changed file each start a new import.
    assert "going on" not in run("import", *arguments, "--force").stderr
    assert "going on" not in run("import", *arguments, "--user", "ada").stderr
    file.write_text("\n".join(lines[:2]))
    assert tally(run("import", *arguments)) == {"existing": 2}
    state.write_text("no state")
    assert "it is no state of an import" in run("import", *arguments).stderr
    assert (await memory.count(CountParams())).count == 600


@pytest.mark.shows("issue6-6-resumed")
async def test_a_record_that_was_stored_in_part_is_read_again(
    run: Callable[..., Done], memory: MemoryClient, tmp_path: Path
) -> None:
    def talk(name: str, count: int, long: int = -1) -> dict[str, Any]:
        """Returns a conversation, optionally with one message above the size limit of a memory."""
        said = [f"Parcel {n * 7919} of {name} lies in locker {n}." * (20_000 if n == long else 1) for n in range(count)]
        return {
            "uuid": name,
            "chat_messages": [{"uuid": f"{name}-{n}", "sender": "human", "text": text} for n, text in enumerate(said)],
        }

    file, state = tmp_path / "conversations.json", tmp_path / "state.json"
    file.write_text(json.dumps([talk("a", 100), talk("b", 200, long=170)]))
    arguments = ("--from", "claude", str(file), "--state", str(state))
    assert "stopped after record 2: record 2" in run("import", *arguments, "--strict").stderr
    assert json.loads(state.read_text())["position"] == 1
    gone_on = run("import", *arguments)
    assert "going on after record 1" in gone_on.stderr
    assert tally(gone_on) == {"existing": 170, "stored": 29, "failed": 1}
    assert (await memory.count(CountParams())).count == 299


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [(("--user", "ada"), "go with --from"), (("--from", "notebook"), "'notebook' is not one of")],
)
def test_what_does_not_go_together_is_refused(
    run: Callable[..., Done], arguments: tuple[str, ...], problem: str
) -> None:
    refused = run("import", str(EXPORTS / "mem0.json"), *arguments)
    assert refused.returncode in (1, 2)
    assert problem in " ".join(refused.stderr.replace("│", " ").split())


@pytest.mark.shows("issue6-6-resumed")
async def test_a_file_that_could_not_be_read_to_its_end_is_read_on_from_there(
    run: Callable[..., Done], memory: MemoryClient, tmp_path: Path
) -> None:
    file, state = tmp_path / "store.json", tmp_path / "state.json"
    file.write_text(json.dumps({"items": items(3)})[:-40])
    arguments = ("--from", "langgraph", str(file), "--state", str(state))
    for told in ({"stored": 2, "failed": 1}, {"failed": 1}):
        done = run("import", *arguments)
        assert (done.returncode, tally(done)) == (1, told)
        assert "record 3: ends in the middle: nothing after it could be read" in done.stderr
        assert json.loads(state.read_text())["position"] == 2
    assert (await memory.count(CountParams())).count == 2


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.shows("issue6-6-forms")
async def test_an_export_without_its_form_is_refused_with_what_to_type(
    run: Callable[..., Done], memory: MemoryClient, form: str
) -> None:
    done = run("import", str(EXPORTS / FORMS[form][0]))
    assert done.returncode == 1
    assert f"it looks like an export of {form}: " in done.stderr
    assert f"--from {form}" in done.stderr
    if FORMS[form][0].endswith(".json"):
        assert (len(done.stderr.splitlines()), done.stdout) == (1, "")
    assert (await memory.count(CountParams())).count == 0


def test_an_archive_or_an_array_of_nobodys_is_refused_with_the_forms_that_there_are(
    run: Callable[..., Done], tmp_path: Path
) -> None:
    with ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("conversations.json", "[]")
    (tmp_path / "notes.json").write_text('\ufeff [{"note": "The key is under the mat."}]')
    for name, kind in (("export.zip", "a zip archive"), ("notes.json", "one JSON array")):
        done = run("import", str(tmp_path / name))
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == (
            f"agentcore: The file is {kind}, not a memory a line: if another system exported it, say which "
            "with --from chatgpt, claude, kagent, langgraph or mem0.\n"
        )
