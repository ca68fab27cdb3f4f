"""The command line: output, streams and exit codes."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import signal
import socket
import stat
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from agentcore.assembly import make_verifier
from agentcore.client import MemoryClient
from agentcore.config import Settings
from agentcore.embedded import Home
from agentcore.errors import AuthenticationFailed
from agentcore.memory.params.memories import CountParams, ListParams
from tests.fixtures.forked_commands import Done
from tests.fixtures.scripted_http import Reply, ScriptedServer, scripted_http
from tests.fixtures.serving import Serving

JWT = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+\n")


@pytest.fixture
def stopped(new_serving: Callable[..., Serving]) -> Serving:
    """A service that was never started and has no home directory."""
    return new_serving()


def test_every_wrong_choice_is_told_before_anything_is_made(stopped: Serving) -> None:
    done = stopped.cli(
        "serve", "--port", "0", EMBEDDING_MODEL="foo", RERANKER="bar", MEMORY_PRUNIG_STRATEGY="oldest_first"
    )
    assert done.returncode == 1
    assert "'foo'" in done.stderr
    assert "'bar'" in done.stderr
    assert "did you mean MEMORY_PRUNING_STRATEGY?" in done.stderr
    assert not stopped.home.exists()


async def test_the_doctor_tells_a_name_in_the_file_of_settings_that_no_setting_has(
    new_serving: Callable[..., Serving],
) -> None:
    stopped = new_serving()
    (stopped.home.parent / ".env").write_text("EMBEDING_MODEL=none\n")
    try:
        done = stopped.cli("doctor")
    finally:
        (stopped.home.parent / ".env").unlink()
    assert "EMBEDING_MODEL is not a setting" in done.stdout
    assert "Did you mean EMBEDDING_MODEL?" in done.stdout


# --- tokens ------------------------------------------------------------------------------------------------


@pytest.mark.shows("issue2-5-tokens")
def test_a_token_made_before_the_first_start_opens_the_service_afterwards(new_serving: Callable[..., Serving]) -> None:
    serving = new_serving()
    refused = serving.cli("token", "--agent", "early")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "--new" in refused.stderr
    assert not serving.home.exists()
    made = serving.cli("token", "--agent", "early", "--new")
    assert made.returncode == 0
    assert "made a new secret" in made.stderr
    assert serving.cli("token", "--agent", "early").stderr == ""
    assert JWT.fullmatch(made.stdout)
    secret = serving.home / "secrets" / "jwt"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    serving.start()
    serving.await_listening()
    assert serving.cli("list", AGENTCORE_TOKEN=made.stdout.strip()).returncode == 0
    assert serving.stop() == 0


def test_a_token_allows_what_its_scopes_say(serving: Serving, agent_id: str) -> None:
    asked = serving.cli("token", "--agent", agent_id, "--scope", "memory:read", "--ttl", "15m")
    reader = asked.stdout.strip()
    assert serving.cli("list", "--token", reader).returncode == 0
    refused = serving.cli("store", "Ada likes tea", "--token", reader)
    assert refused.returncode == 1
    assert len(refused.stderr.splitlines()) == 1
    assert "agentcore token --agent ID --scope memory:write" in refused.stderr


def test_doctor_looks_at_the_token(serving: Serving, new_serving: Callable[..., Serving]) -> None:
    good = serving.cli("token", "--agent", "ada").stdout.strip()
    assert "of ada, memory:read memory:write" in serving.cli("doctor", AGENTCORE_TOKEN=good).stdout
    other = new_serving().cli("token", "--agent", "ada", "--new").stdout.strip()
    for token, said in ((other, "another home"), ("nonsense", "malformed")):
        done = serving.cli("doctor", AGENTCORE_TOKEN=token)
        assert done.returncode == 1
        assert said in " ".join(done.stdout.split())


def test_a_token_of_another_home_is_refused_with_where_to_look(
    serving: Serving, new_serving: Callable[..., Serving]
) -> None:
    other = new_serving().cli("token", "--agent", "ada", "--new").stdout.strip()
    assert "AGENTCORE_HOME" in serving.cli("list", "--token", other).stderr


def test_tokens_of_a_service_with_public_keys_come_from_elsewhere(stopped: Serving) -> None:
    done = stopped.cli("token", "--agent", "a", JWT_ALGORITHM="RS256", JWT_JWKS_URL="http://127.0.0.1:9/keys")
    assert (done.returncode, done.stdout) == (1, "")
    assert "JWT_JWKS_URL" in done.stderr


@pytest.mark.shows("B11")
async def test_a_rotated_secret_of_a_home_ends_no_token_until_the_old_one_is_dropped(stopped: Serving) -> None:
    async def accepted(token: str) -> bool:
        home = Home(stopped.home)
        verifier = make_verifier(Settings(_env_file=None, agentcore_home=home.path), home)
        with suppress(AuthenticationFailed):
            return (await verifier.verify(f"Bearer {token}")).agent_id == "ada"
        return False

    old = stopped.cli("token", "--agent", "ada", "--new").stdout.strip()
    assert stopped.cli("rotate-secret").returncode == 0
    new = stopped.cli("token", "--agent", "ada").stdout.strip()
    assert (await accepted(old), await accepted(new)) == (True, True)
    assert (stopped.home / "secrets" / "jwt").stat().st_mode & 0o777 == 0o600
    assert stopped.cli("rotate-secret", "--drop-old").returncode == 0
    assert (await accepted(old), await accepted(new)) == (False, True)
    refused = stopped.cli("rotate-secret", JWT_SECRET_KEY="the settings' own secret, long enough")
    assert refused.returncode == 1
    assert '["new secret", "old secret"]' in refused.stderr


# --- untrusted directory ------------------------------------------------------------------------------------


@pytest.fixture
async def elsewhere(stopped: Serving) -> AsyncIterator[ScriptedServer]:
    """Returns a server that the directory's .env names, together with a secret that signs tokens."""
    file = stopped.home.parent / ".env"
    async with scripted_http(lambda request: Reply({"jsonrpc": "2.0", "id": 1, "result": {}})) as server:
        file.write_text(
            f"AGENTCORE_URL={server.url}\nAGENTCORE_TOKEN=t.o.k\nJWT_SECRET_KEY=kV3q8ZtW1nXb7cLs5mPd2fGh9jRw4yTu\n"
        )
        try:
            yield server
        finally:
            file.unlink()


@pytest.mark.parametrize("access", [(), ("--agent", "ada"), ("--token", "t.o.k")], ids=str)
@pytest.mark.shows("A5")
async def test_a_directorys_env_file_sends_neither_text_nor_token_elsewhere(
    stopped: Serving, elsewhere: ScriptedServer, access: tuple[str, ...]
) -> None:
    done = await asyncio.to_thread(stopped.cli, "store", "a secret", *access)
    assert done.returncode == 1
    assert elsewhere.url not in done.stderr
    assert elsewhere.received == []


@pytest.mark.shows("A5")
async def test_mcp_reads_no_env_file_either(stopped: Serving, elsewhere: ScriptedServer) -> None:
    done = await asyncio.to_thread(stopped.cli, "mcp", said="")
    assert done.returncode == 1
    assert "No token" in done.stderr
    assert elsewhere.received == []


@pytest.mark.parametrize("url", ["http://memory.example", "http://127.0.0.1.example", "http://localhost.example"])
@pytest.mark.shows("A5")
def test_a_token_made_here_goes_to_another_machine_only_where_its_url_is_typed(stopped: Serving, url: str) -> None:
    secret = {"JWT_SECRET_KEY": "kV3q8ZtW1nXb7cLs5mPd2fGh9jRw4yTu"}
    done = stopped.cli("list", "--agent", "ada", AGENTCORE_URL=url, **secret)
    assert done.returncode == 1
    assert f"type --url {url}" in done.stderr
    done = stopped.cli("list", "--agent", "ada", "--url", f"{url}.invalid", **secret)
    assert "type --url" not in done.stderr


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "[::1]", "localhost", "LOCALHOST"])
@pytest.mark.shows("A5")
def test_this_machine_may_have_a_token_made_here(stopped: Serving, host: str) -> None:
    done = stopped.cli(
        "list", "--agent", "ada", AGENTCORE_URL=f"http://{host}:9", JWT_SECRET_KEY="kV3q8ZtW1nXb7cLs5mPd2fGh9jRw4yTu"
    )
    assert "No service answers at" in done.stderr


# --- memories ----------------------------------------------------------------------------------------------


async def test_a_stored_text_is_found_listed_and_put_into_context(
    run: Callable[..., Done], memory: MemoryClient
) -> None:
    told = ("--tag", "drinks", "--speaker", "Ada", "--importance", "0.8", "--session", "monday")
    stored = run("store", "Ada prefers tea over coffee", *told, "--ttl", "30d", "--metadata", '{"mood": "glad"}')
    assert stored.returncode == 0
    [record] = (await memory.list(ListParams())).memories
    assert stored.stdout.strip() == str(record.memory_id)
    assert (record.tags, record.speaker, record.session_id) == (["drinks"], "Ada", "monday")
    assert (record.metadata, record.relevance_score) == ({"mood": "glad"}, 0.8)
    assert record.expires_at is not None
    found = run("retrieve", "what does Ada drink?", "--explain")
    assert "Ada prefers tea" in found.stdout
    assert "similarity" in found.stdout
    assert "links" not in found.stdout  # no contribution to the score
    listed = run("list")
    assert str(record.memory_id) in listed.stdout
    built = run("context", "breakfast for Ada", "--max-tokens", "300")
    assert "Ada prefers tea" in built.stdout
    assert re.search(r"\d+ tokens of 300, from 1 memory", built.stderr)


async def test_a_filter_given_is_a_filter_applied(run: Callable[..., Done], memory: MemoryClient) -> None:
    for text, tag in (("The red kite flies", "red"), ("The blue kite flies", "blue")):
        assert run("store", text, "--tag", tag, "--time", "2026-03-02T10:00:00Z").returncode == 0
    assert "blue" not in run("retrieve", "kite", "--tag", "red").stdout
    assert "red" in run("list", "--tag", "red", "--tag", "other", "--after", "2026-03-01").stdout
    assert run("list", "--before", "2026-03-01").stdout == ""


def test_an_interaction_and_stdin_are_stored(run: Callable[..., Done]) -> None:
    asked = run("store", "-", "--response", "Under the mat.", "--json", said="Where is the key?")
    assert json.loads(asked.stdout)["status"] == "stored"
    assert "Under the mat." in run("retrieve", "key").stdout


def test_what_is_held_back_ends_with_1_and_force_stores_it(run: Callable[..., Done]) -> None:
    held = run("store", "hi")
    assert (held.returncode, held.stdout) == (1, "")
    assert "rejected: greeting" in held.stderr
    assert run("store", "hi", "--force").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "member"),
    [
        (["store", "Ada rides the blue bicycle"], "memory_id"),
        (["retrieve", "bicycle"], "memories"),
        (["context", "bicycle"], "token_count"),
        (["list"], "next_cursor"),
        (["prune", "episodic", "--dry-run"], "pruned_count"),
    ],
)
def test_json_is_the_whole_result(run: Callable[..., Done], arguments: list[str], member: str) -> None:
    done = run(*arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert member in json.loads(done.stdout)


@pytest.mark.shows("FR-6.5")
async def test_prune_says_what_would_go_then_takes_it(run: Callable[..., Done], memory: MemoryClient) -> None:
    for number in range(4):
        run("store", f"Reading number {number} of the meter")
    dry = run("prune", "episodic", "--target", "50%", "--dry-run").stdout.splitlines()
    assert dry[0] == "would go: 2"
    assert [line.split("  ", 2)[2][:14] for line in dry[1:]] == ["Reading number", "Reading number"]
    assert (await memory.count(CountParams())).count == 4
    assert run("prune", "episodic", "--target", "50%").stdout == "archived and removed: 2\n"
    assert (await memory.count(CountParams())).count == 2


def test_a_page_tells_how_to_go_on(run: Callable[..., Done]) -> None:
    for number in range(3):
        run("store", f"Reading number {number} of the meter")
    first = run("list", "--limit", "2")
    cursor = re.search(r"--cursor (\S+)", first.stderr)
    assert cursor is not None
    rest = run("list", "--limit", "2", "--cursor", cursor[1])
    assert "Reading number 0" in rest.stdout
    assert "--cursor" not in rest.stderr


async def test_a_command_that_waits_for_the_rate_limit_says_so(stopped: Serving) -> None:
    limited = Reply(
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32004, "message": "Too many requests."}},
        status=429,
        headers={"Retry-After": "1"},
    )
    page = Reply({"jsonrpc": "2.0", "id": 1, "result": {"memories": [], "next_cursor": None, "receipt": {}}})
    async with scripted_http(lambda request: page) as service:
        service.script.append(limited)
        done = await asyncio.to_thread(stopped.cli, "list", "--token", "t.o.k", "--url", service.url)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines() == ["the rate limit is reached: trying again in 1 s", "no memories"]


def test_a_text_cannot_steer_the_terminal(run: Callable[..., Done]) -> None:
    run("store", "Ada said \x1b[31mred\x1b]0;title\x07 [bold]loud[/bold]")
    for done in (run("retrieve", "Ada"), run("list")):
        assert "\x1b" not in done.stdout
        assert "\x07" not in done.stdout
    assert "[bold]loud[/bold]" in run("retrieve", "Ada").stdout


# --- serve and related commands -----------------------------------------------------------------------------


@pytest.mark.shows("issue2-1-serve")
def test_serve_says_where_it_listens_and_what_it_prints_works(new_serving: Callable[..., Serving]) -> None:
    serving = new_serving()
    serving.start()
    serving.until(re.compile("Ctrl-C stops it"))
    welcome = "".join(serving.welcome)
    [block] = re.findall(r"\n\n(  export .*?)\n\n", welcome, re.DOTALL)
    assert shutil.which("curl")
    done = subprocess.run(
        ["/bin/sh", "-c", block],
        cwd=serving.home.parent,
        env=serving.environment,
        text=True,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert json.loads(done.stdout)["result"]["status"] == "stored", done.stderr
    assert serving.stop(by=signal.SIGINT) == 0
    assert serving.left_over() == []


@pytest.mark.shows("issue2-2-one-server")
def test_a_second_server_on_the_home_is_refused_with_a_sentence(serving: Serving) -> None:
    done = serving.cli("serve", "--port", "0")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"already serves {serving.home}" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_named_before_anything_is_made(serving: Serving, stopped: Serving) -> None:
    port = serving.url.rpartition(":")[2]
    done = stopped.cli("serve", "--port", port)
    assert done.returncode == 1
    assert f"Cannot listen on 127.0.0.1:{port} (Address already in use)" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not stopped.home.exists()


@pytest.mark.shows("issue2-2-crashes")
def test_ctrl_c_while_it_starts_ends_it_and_leaves_nothing(new_serving: Callable[..., Serving]) -> None:
    serving = new_serving()
    serving.start()
    serving.until(re.compile("Making the database"))
    assert serving.stop(by=signal.SIGINT) == 0
    assert serving.left_over() == []


def test_a_second_ctrl_c_does_not_wait_for_a_running_call(new_serving: Callable[..., Serving]) -> None:
    serving = new_serving(SHUTDOWN_GRACE_SECONDS="600", REQUEST_TIMEOUT_SECONDS="600")
    serving.start()
    serving.await_listening()
    host, port = serving.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as caller:
        # An incomplete request: the call never ends.
        head = f"POST /api/v1/jsonrpc HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {serving.token('a')}"
        caller.sendall(f"{head}\r\nContent-Length: 50\r\nExpect: 100-continue\r\n\r\nhalf".encode())
        assert caller.recv(64).startswith(b"HTTP/1.1 100 ")
        serving.process.send_signal(signal.SIGINT)
        serving.until_refused()
        assert serving.process.poll() is None
        assert serving.stop(by=signal.SIGINT) == 130
    assert serving.left_over() == []


def test_doctor_finds_a_running_service_well(serving: Serving) -> None:
    done = serving.cli("doctor")
    assert done.returncode == 0, done.stdout
    for part in ("PostgreSQL", "pgvector", "schema", "row security", "clock", "Redis", "archive", "secrets"):
        assert re.search(rf"^ok\t{part}\t", done.stdout, re.MULTILINE), part


def test_doctor_starts_nothing_and_says_what_does_not_run(stopped: Serving) -> None:
    asked_for = stopped.cli("doctor", AGENTCORE_URL="http://127.0.0.1:1")
    assert asked_for.returncode == 1
    assert re.search(r"^WRONG\tservice\t", asked_for.stdout, re.MULTILINE)
    done = stopped.cli("doctor")
    assert done.returncode == 0, done.stdout
    assert "No agentcore server runs on" in done.stdout
    assert not stopped.home.exists()


@pytest.mark.shows("issue2-2-doctor")
def test_doctor_tells_how_to_mend_what_is_wrong(serving: Serving, run: Callable[..., Done]) -> None:
    assert run("store", "A memory with a vector").returncode == 0
    secret = serving.home / "secrets" / "jwt"
    secret.chmod(0o644)
    try:
        done = serving.cli("doctor", EMBEDDING_DIMENSIONS="7")
    finally:
        secret.chmod(0o600)
    assert done.returncode == 1
    assert re.search(r"^WRONG\tsecrets\t", done.stdout, re.MULTILINE)
    assert "chmod go-rwx" in done.stdout
    assert re.search(r"^WRONG\tembeddings\t", done.stdout, re.MULTILINE)
    assert "Set EMBEDDING_DIMENSIONS=384" in done.stdout


def test_doctor_reports_a_database_that_does_not_answer(stopped: Serving) -> None:
    done = stopped.cli("doctor", DATABASE_URL="postgresql://nobody@127.0.0.1:9/none", REDIS_URL="redis://127.0.0.1:9")
    assert done.returncode == 1
    for part in ("PostgreSQL", "Redis"):
        assert re.search(rf"^WRONG\t{part}\t", done.stdout, re.MULTILINE), part
    assert "Traceback" not in done.stderr


def test_migrate_beside_a_running_service_finds_nothing_to_do(serving: Serving) -> None:
    done = serving.cli("migrate")
    assert done.returncode == 0
    assert re.fullmatch(r"the schema is at revision \w+\n", done.stdout)


@pytest.mark.shows("issue2-7-index")
def test_index_status_names_the_partitions_in_use(serving: Serving, run: Callable[..., Done]) -> None:
    assert run("store", "The sluice is opened at six.").returncode == 0
    done = serving.cli("index", "status")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^memories_p\d\d\t-\tnone: exact\t", done.stdout, re.MULTILINE)
    listed = json.loads(serving.cli("index", "status", "--json").stdout)
    assert all(each["rows"] > 0 and each["indexes"] == [] for each in listed)
    assert listed


@pytest.mark.shows("issue2-7-index")
def test_index_commands_say_where_nothing_is_to_be_done(serving: Serving) -> None:
    for command in ("tune", "rebuild"):
        done = serving.cli("index", command)
        assert done.returncode == 0, done.stderr
        assert "nothing to do: no partition has" in done.stderr
    done = serving.cli("index", "rebuild", "memories_p99")
    assert done.returncode == 2
    assert "no partition is named memories_p99" in done.stderr


@pytest.mark.shows("issue2-12-worker")
def test_worker_attaches_to_the_service_and_ends_when_asked(serving: Serving) -> None:
    worker = serving.open_cli("worker")
    assert worker.stderr is not None
    lines = iter(worker.stderr.readline, "")
    assert any("background work runs" in line for line in lines)
    worker.send_signal(signal.SIGTERM)
    rest = worker.communicate(timeout=60)[1]
    assert (worker.returncode, rest.strip().splitlines()[-1]) == (0, "stopped")


def test_an_installed_model_is_not_installed_again(stopped: Serving) -> None:
    done = stopped.cli("model", "install")
    assert done.returncode == 0
    directory = done.stdout.strip().removeprefix("multilingual-e5-small-adapted is in ")
    assert (Path(directory) / "e5-small-q4.bin").is_file()
    assert done.stderr == ""
