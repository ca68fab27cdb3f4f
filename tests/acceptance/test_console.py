"""The console in a real browser, over a running service with the demo's memories."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.fixtures.browser import Watched
from tests.fixtures.console import READ_WRITE, assert_harmless, serious_problems, sign_in_to, store_hostile
from tests.fixtures.serving import Serving

AGENT = "console-demo"
ROOT = Path(__file__).resolve().parents[2]
ADMIN = (*READ_WRITE, "memory:admin")
SignIn = Callable[..., Awaitable[Page]]
PAGES = (
    "/",
    "/memories",
    "/sessions",
    "/users",
    "/archive",
    "/jobs",
    "/search?query=Lisbon",
    "/search?query=feta&compare=yes",
    "/context?query=Lisbon",
)


@pytest.fixture(scope="session")
def filled(new_serving: Callable[..., Serving]) -> Iterator[Serving]:
    """A service of its own, with the demo's memories: they are enough for an index."""
    serving = new_serving()
    serving.start()
    serving.await_listening()
    command = [sys.executable, "-m", "scripts.fill_console_demo", "--url", serving.url, "--token", serving.token(AGENT)]
    told = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=580).stdout
    assert told == "3,000 memories stored\n"
    yield serving
    assert serving.stop() == 0


@pytest.fixture
def sign_in(filled: Serving, page: Page) -> SignIn:
    async def signed_in(agent_id: str = AGENT, scopes: tuple[str, ...] = READ_WRITE) -> Page:
        return await sign_in_to(filled, page, agent_id, scopes)

    return signed_in


@pytest.fixture
async def hostile(filled: Serving, agent_id: str) -> dict[str, str]:
    """Ids of stored hostile texts, of an agent of their own."""
    async with filled.client(agent_id) as memory:
        return await store_hostile(memory)


@pytest.mark.shows("issue17-sign-in")
async def test_a_token_signs_in_and_sign_out_ends_the_session(sign_in: SignIn, filled: Serving) -> None:
    page = await sign_in()
    await expect(page.get_by_role("link", name=re.compile("episodic"))).to_contain_text(re.compile("[23],[0-9]{3}"))
    cookie = next(each for each in await page.context.cookies() if each["name"] == "agentcore_console")
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("heading", name="AgentCore Memory")).to_be_visible()
    await page.context.add_cookies([{"name": cookie["name"], "value": cookie["value"], "url": f"{filled.url}/console"}])
    await page.goto(f"{filled.url}/console/memories")
    await expect(page.get_by_label("Token")).to_be_visible()


async def test_a_wrong_token_is_explained(filled: Serving, page: Page, watched: Watched) -> None:
    watched.expected = ("401",)
    await page.goto(f"{filled.url}/console/")
    await page.get_by_label("Token").fill("not.a.token")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("alert")).to_contain_text("malformed")
    assert await page.context.cookies() == []


@pytest.mark.shows("issue17-sign-in")
async def test_the_link_of_the_command_signs_in_once(filled: Serving, page: Page, browser: Browser) -> None:
    link = filled.cli("console", "--agent", AGENT).stdout.strip()
    await page.goto(link)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    other = await browser.new_page(locale="en-US")
    await other.goto(link)
    await other.get_by_role("button", name="Sign in").click()
    await expect(other.get_by_role("alert")).to_contain_text("used or has expired")
    assert await other.context.cookies() == []
    await other.close()
    refused = filled.cli("console", "--admin", AGENTCORE_TOKEN=filled.token(AGENT))
    assert refused.returncode == 2
    assert "--admin needs --agent" in refused.stderr


@pytest.mark.shows("issue17-memories")
async def test_memories_are_searched_as_the_query_is_typed(sign_in: SignIn, watched: Watched) -> None:
    watched.expected = ("422",)
    page = await sign_in()
    await page.get_by_role("link", name="Memories").click()
    rows = page.locator("#rows .item")
    await expect(rows).to_have_count(50)
    await page.get_by_role("link", name="More", exact=True).click()
    await expect(rows).to_have_count(100)
    await page.get_by_label("Search").press_sequentially("tortoise", delay=20)
    await expect(rows.first).to_contain_text("tortoise")
    assert "query=tortoise" in page.url
    await page.reload()
    await expect(rows.first).to_contain_text("tortoise")
    await page.get_by_role("link", name="Context").click()
    await page.go_back()
    await expect(page.get_by_role("heading", name="Memories")).to_be_visible()
    await expect(rows.first).to_contain_text("tortoise")
    await page.get_by_label("Search").fill("")
    await page.get_by_text("Filters", exact=True).click()
    await page.get_by_label("User").fill("anna")
    await expect(rows.first).to_contain_text("user anna")
    assert await page.locator("#rows").get_by_text("user ben").count() == 0
    await page.get_by_label("After").fill("yesterday?")
    await expect(page.locator("#rows [role=alert]")).to_contain_text("after is not a time")


@pytest.mark.shows("issue17-memories")
async def test_a_memory_is_edited_reverted_pinned_rated_and_deleted(
    sign_in: SignIn, filled: Serving, agent_id: str
) -> None:
    async with filled.client(agent_id) as memory:
        memory_id = (await memory.store("Ada lives in Porto", tags=["home"])).memory_id
    page = await sign_in(agent_id)
    await page.goto(f"{filled.url}/console/memories/{memory_id}")
    await page.get_by_label("Text").fill("Ada lives in Lisbon")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("status")).to_have_text("Saved.")
    await expect(page.locator(".diff del").first).to_have_text("Porto")
    await expect(page.locator(".diff ins").first).to_have_text("Lisbon")
    await page.get_by_role("button", name="Revert to version 1").click()
    await expect(page.locator("article pre.text")).to_have_text("Ada lives in Porto")
    await page.get_by_role("button", name="Pin", exact=True).click()
    await expect(page.get_by_role("button", name="Unpin")).to_be_visible()
    await page.get_by_role("button", name="Helpful", exact=True).click()
    await expect(page.get_by_role("status")).to_have_text("Feedback noted.")
    await page.get_by_role("button", name="Delete …").click()
    await expect(page.get_by_role("heading", name="Delete 1 memory?")).to_be_visible()
    await page.get_by_role("button", name="Delete", exact=True).click()
    await expect(page.get_by_role("status")).to_contain_text("1 deleted")
    await page.goto(f"{filled.url}/console/memories")
    await expect(page.locator(".empty")).to_contain_text("No memory is stored yet")
    async with filled.client(agent_id) as memory:
        assert (await memory.count()).count == 0


async def test_two_writers_do_not_overwrite_each_other(
    sign_in: SignIn, filled: Serving, agent_id: str, watched: Watched
) -> None:
    async with filled.client(agent_id) as memory:
        memory_id = (await memory.store("Ada lives in Porto")).memory_id
        page = await sign_in(agent_id)
        watched.expected = ("409",)
        await page.goto(f"{filled.url}/console/memories/{memory_id}")
        await memory.update(memory_id=memory_id, updates={"content": "Ada lives in Faro"})
        await page.get_by_label("Text").fill("Ada lives in Braga")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("alert")).to_contain_text("version")
        assert (await memory.get(memory_id=memory_id)).memory.content == "Ada lives in Faro"


@pytest.mark.shows("issue17-memories")
async def test_an_archived_memory_is_restored(sign_in: SignIn, filled: Serving, agent_id: str) -> None:
    async with filled.client(agent_id) as memory:
        memory_id = (await memory.store("Ada has seen Porto")).memory_id
        await memory.prune(memory_layer="episodic", target=1)
        assert (await memory.count()).count == 0
        page = await sign_in(agent_id)
        await page.get_by_role("link", name="Archive").click()
        await page.get_by_label(str(memory_id)).check()
        await page.get_by_role("button", name="Restore the chosen").click()
        await expect(page.get_by_role("status")).to_contain_text("1 restored")
        await expect(page.locator(".empty")).to_have_text("Nothing is archived.")
        assert (await memory.get(memory_id=memory_id)).memory.content == "Ada has seen Porto"


@pytest.mark.shows("issue17-memories")
async def test_a_bulk_selection_is_shown_before_it_is_deleted(sign_in: SignIn, filled: Serving, agent_id: str) -> None:
    async with filled.client(agent_id) as memory:
        for city in ("Porto", "Lisbon", "Faro"):
            await memory.store(f"Ada has seen {city}")
        page = await sign_in(agent_id)
        await page.goto(f"{filled.url}/console/memories")
        for city in ("Porto", "Faro"):
            await page.get_by_label(f"Choose: Ada has seen {city}").check()
        await page.get_by_role("button", name="Delete the chosen …").click()
        await expect(page.get_by_role("heading", name="Delete 2 memories?")).to_be_visible()
        await page.get_by_role("button", name="Delete", exact=True).click()
        await expect(page.get_by_role("status")).to_contain_text("2 deleted")
        assert [each.content for each in (await memory.list()).memories] == ["Ada has seen Lisbon"]


async def test_a_reader_sees_no_controls(sign_in: SignIn, filled: Serving) -> None:
    page = await sign_in(AGENT, scopes=("memory:read",))
    await page.goto(f"{filled.url}/console/memories")
    await expect(page.locator("#rows .item")).to_have_count(50)
    assert await page.get_by_role("button", name="Delete").count() == 0
    await page.locator("#rows .content").first.click()
    await expect(page.get_by_role("heading", name="History")).to_be_visible()
    assert await page.get_by_role("button", name="Save").count() == 0


@pytest.mark.shows("issue17-search")
async def test_the_search_playground_explains_scores_and_compares(sign_in: SignIn) -> None:
    page = await sign_in()
    await page.get_by_role("link", name="Search").click()
    await page.get_by_label("Query").fill("Where does Anna live?")
    await page.get_by_role("button", name="Search").click()
    hits = page.locator(".hit")
    await expect(hits).to_have_count(10)
    await expect(hits.first.get_by_role("img")).to_have_attribute("aria-label", re.compile("Score 0.*similarity 0"))
    await page.get_by_text("Receipt").click()
    await expect(page.get_by_text("Candidates by retriever")).to_be_visible()
    await page.get_by_label("Compare with a second configuration").check()
    await page.get_by_role("group", name="Configuration B").get_by_label("Number of results").fill("3")
    await page.get_by_role("group", name="Configuration B").get_by_text("Filters").click()
    await page.get_by_role("group", name="Configuration B").get_by_label("User").fill("anna")
    await page.get_by_role("button", name="Search").click()
    await expect(hits).to_have_count(13)
    assert "compare=yes" in page.url
    await expect(page.get_by_role("region", name="Results of configuration B").locator(".hit").first).to_contain_text(
        re.compile(r"new|=|[+-]\d")
    )


async def test_the_overview_plots_what_the_service_did(sign_in: SignIn, filled: Serving) -> None:
    page = await sign_in()
    calls = page.get_by_role("img", name=re.compile("^Calls: a minute; newest: .*store 0"))
    await expect(calls).to_be_visible(timeout=30_000)
    await expect(page.get_by_role("img", name=re.compile("^Memories by day: memories; .*episodic"))).to_be_visible()
    await expect(page.get_by_text("postgresql")).to_be_visible()
    lines = await page.evaluate(f"fetch('{filled.url}/console/metrics.json').then((answer) => answer.json())")
    stored = [each for each in lines["per_minute:memory.add_session"] if each]
    assert max(stored) > 1
    assert len({len(values) for values in lines.values()}) == 1
    await expect(page.get_by_role("definition").filter(has_text="MiB").first).to_be_visible()
    # The page reads these every 15 seconds.
    recall = page.get_by_role("heading", name="Recall of the vector indexes")
    await expect(recall).to_be_visible(timeout=120_000)


async def test_an_administrator_tries_weights_and_sees_jobs(sign_in: SignIn, filled: Serving, agent_id: str) -> None:
    async with filled.client(agent_id, scopes=ADMIN) as memory:
        await memory.store("Ada drinks tea")
        await memory.configure(consolidate=True)
    page = await sign_in(agent_id, ADMIN)
    await page.goto(f"{filled.url}/console/search?query=Who+drinks+tea%3F")
    bar = page.locator(".hit").get_by_role("img")
    usual = await bar.get_attribute("aria-label") or ""
    await page.get_by_text("Weights, as an experiment").first.click()
    await page.get_by_role("group", name="Configuration A").get_by_label("words", exact=True).fill("1")
    await page.get_by_role("button", name="Search").click()
    await expect(bar).not_to_have_attribute("aria-label", usual)
    await expect(page.locator(".hit")).to_contain_text("found by vector, lexical")
    await page.get_by_role("link", name="Jobs").click()
    await expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
    assert await page.get_by_role("alert").count() == 0


async def test_a_reader_is_refused_jobs_and_weights(sign_in: SignIn, filled: Serving, watched: Watched) -> None:
    watched.expected = ("403",)
    page = await sign_in()
    for path in ("/jobs", "/search?query=tea&a_weight_words=1"):
        await page.goto(f"{filled.url}/console{path}")
        await expect(page.get_by_text("memory:admin")).to_be_visible()
        assert await page.locator(".hit, .item").count() == 0


@pytest.mark.shows("issue17-search")
async def test_a_missing_memory_is_traced(sign_in: SignIn, filled: Serving, agent_id: str) -> None:
    async with filled.client(agent_id) as memory:
        await memory.store("Ada drinks tea", user_id="ada")
        other = (await memory.store("Ben drinks tea", user_id="ben")).memory_id
    page = await sign_in(agent_id)
    await page.goto(f"{filled.url}/console/memories/{other}")
    await page.get_by_role("link", name="Why does a search not find it?").click()
    await page.get_by_label("Query").fill("Who drinks tea?")
    await page.get_by_text("Filters", exact=True).first.click()
    await page.get_by_label("User").first.fill("ada")
    await page.get_by_role("button", name="Search").click()
    trace = page.get_by_role("region", name="What became of the memory")
    await expect(trace).to_contain_text("It does not match the filters.")
    await page.get_by_label("User").first.fill("ben")
    await page.get_by_role("button", name="Search").click()
    await expect(trace).to_contain_text("It was returned.")
    await expect(trace).to_contain_text("lexical, vector")
    assert f"trace={other}" in page.url


@pytest.mark.shows("issue17-context")
async def test_the_context_playground_ties_lines_to_memories(sign_in: SignIn) -> None:
    page = await sign_in()
    await page.get_by_role("link", name="Context").click()
    await page.get_by_label("Query").fill("What does Anna eat?")
    await page.get_by_role("button", name="Build").click()
    heading = page.get_by_role("heading", name=re.compile("As it would be sent"))
    await expect(heading).to_contain_text("of 1,000 tokens")
    await page.get_by_label(re.compile("Token budget")).fill("300")
    await expect(heading).to_contain_text("of 300 tokens")
    await page.get_by_text("curl", exact=True).click()
    await expect(page.get_by_text("Authorization: Bearer $AGENTCORE_TOKEN")).to_be_visible()
    await page.get_by_role("link", name="Memory 1", exact=True).first.click()
    await expect(page.get_by_role("heading", name="History")).to_be_visible()
    assert "/console/memories/" in page.url


@pytest.mark.shows("issue17-hostile")
async def test_hostile_texts_are_harmless_on_every_page(
    sign_in: SignIn, filled: Serving, agent_id: str, hostile: dict[str, str]
) -> None:
    page = await sign_in(agent_id)
    paths = [
        "/",
        "/memories",
        "/memories?query=hacked",
        "/search?query=hacked+invoice&a_k=10&a_min_fit=0",
        "/context?query=hacked+invoice&max_tokens=4000",
        *(f"/memories/{each}" for each in hostile.values()),
        "/search?query=%3Cscript%3Ewindow.hacked=1%3C/script%3E",
    ]
    for path in paths:
        await page.goto(f"{filled.url}/console{path}")
        await assert_harmless(page)
    await page.goto(f"{filled.url}/console/memories/{hostile['direction']}")
    await expect(page.locator("article pre.text")).to_contain_text("⟨U+202E⟩gpj.exe and control ␇ characters")
    await page.goto(f"{filled.url}/console/memories/{hostile['long']}")
    assert len(await page.locator("article pre.text").inner_text()) == 250_000


@pytest.mark.shows("issue17-accessible")
async def test_pages_are_accessible_and_fit_a_phone(sign_in: SignIn, filled: Serving) -> None:
    page = await sign_in(scopes=ADMIN)
    first = None
    for theme in ("light", "dark"):
        await page.evaluate(f"localStorage.setItem('theme', '{theme}')")
        for path in (*PAGES, *([f"/memories/{first}"] if first else [])):
            await page.goto(f"{filled.url}/console{path}")
            for summary in await page.locator("summary:visible").all():
                await summary.click()
            assert (path, theme, await serious_problems(page)) == (path, theme, [])
            if path == "/memories":
                href = await page.locator("#rows .content").first.get_attribute("href")
                first = (href or "").rpartition("/")[2]
    await page.set_viewport_size({"width": 360, "height": 740})
    for path in (*PAGES, f"/memories/{first}"):
        await page.goto(f"{filled.url}/console{path}")
        assert (path, await page.evaluate("document.documentElement.scrollWidth")) == (path, 360)


@pytest.mark.shows("issue17-accessible")
async def test_every_page_works_by_keyboard(sign_in: SignIn, filled: Serving) -> None:
    page = await sign_in()
    await page.goto(f"{filled.url}/console/memories")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    await page.keyboard.press("Enter")
    assert (await page.evaluate("location.hash")) == "#main"
    await page.keyboard.press("Tab")
    await expect(page.get_by_label("Search")).to_be_focused()
    await page.keyboard.type("feta")
    await expect(page.locator("#rows .item").first).to_contain_text("feta")
