"""The console's pages of the API, the settings and users in a real browser."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.fixtures.browser import Watched
from tests.fixtures.console import READ_WRITE, assert_harmless, serious_problems, sign_in_to, store_hostile
from tests.fixtures.serving import Serving

ADMIN = (*READ_WRITE, "memory:admin")
PAGES = (
    "/api",
    "/api/memory.store",
    "/api/memory.retrieve",
    "/settings",
    "/users",
    "/users/erase?user_id=ada",
    "/memories",
)


@pytest.fixture
async def admin(serving: Serving, page: Page, agent_id: str) -> Page:
    """A page signed in with all scopes, of an agent with memories of two users."""
    async with serving.client(agent_id) as memory:
        for user, city in (("ada", "Porto"), ("ada", "Faro"), ("ben", "Lisbon")):
            await memory.store(f"{user} has seen {city}", user_id=user, session_id=f"{user}-talk")
    return await sign_in_to(serving, page, agent_id, ADMIN)


def texts_of(export: Path) -> list[str]:
    return [json.loads(line)["text"] for line in export.read_text().splitlines()]


@pytest.mark.shows("issue17-api")
async def test_a_method_is_called(admin: Page, serving: Serving, agent_id: str) -> None:
    await admin.get_by_role("link", name="API", exact=True).click()
    await admin.get_by_role("link", name="memory.retrieve").click()
    await expect(admin.get_by_role("region", name="Params", exact=True)).to_contain_text("required")
    await admin.get_by_label("Params, as JSON").fill('{"query": "Who has seen Porto?", "k": 1}')
    await admin.get_by_role("button", name="Call").click()
    await expect(admin.get_by_role("region", name="Request")).to_contain_text('"method": "memory.retrieve"')
    await expect(admin.get_by_role("region", name="Answer")).to_contain_text("ada has seen Porto")
    await expect(admin.get_by_role("status")).to_have_text(re.compile(r"\d+\.\d ms"))
    await admin.get_by_label("Params, as JSON").fill('{"query": "Porto", "k": 0}')
    await admin.get_by_role("button", name="Call").click()
    await expect(admin.get_by_role("alert")).to_contain_text("memory.retrieve: k must be greater")
    await admin.goto(f"{serving.url}/console/api/memory.store")
    await admin.get_by_label("Params, as JSON").fill('{"content": "ben has seen Graz"}')
    await admin.get_by_role("button", name="Call").click()
    await expect(admin.get_by_role("alert")).to_contain_text("confirm the call")
    await admin.get_by_label("This call changes").check()
    await admin.get_by_role("button", name="Call").click()
    await expect(admin.get_by_role("region", name="Answer")).to_contain_text('"status": "stored"')
    async with serving.client(agent_id) as memory:
        assert (await memory.count()).count == 4


@pytest.mark.shows("issue17-api")
async def test_an_error_of_the_service_is_an_answer(serving: Serving, page: Page, agent_id: str) -> None:
    async with serving.client(agent_id) as memory:
        await memory.store("Ada has seen Porto")
    await sign_in_to(serving, page, agent_id, ("memory:read",))
    await page.goto(f"{serving.url}/console/api/memory.clear")
    await page.get_by_label("Params, as JSON").fill('{"all": true, "confirm": true}')
    await page.get_by_label("This call changes").check()
    await page.get_by_role("button", name="Call").click()
    await expect(page.get_by_role("alert")).to_contain_text("Error -32104")
    await expect(page.get_by_role("region", name="Answer")).to_contain_text('"code": -32104')
    async with serving.client(agent_id) as memory:
        assert (await memory.count()).count == 1


@pytest.mark.shows("issue17-settings")
async def test_settings_are_changed_and_reset(admin: Page, serving: Serving, watched: Watched, agent_id: str) -> None:
    watched.expected = ("422",)
    await admin.get_by_role("link", name="Settings").click()
    layers = admin.get_by_role("region", name="Layers", exact=True)
    await layers.get_by_text("Change", exact=True).click()
    capacity = layers.get_by_role("group", name="episodic").get_by_label("Capacity")
    await capacity.fill("-5")
    await layers.get_by_role("button", name="Save").click()
    await expect(admin.get_by_role("alert")).to_contain_text("layers.episodic.capacity")
    await expect(capacity).to_have_value("-5")
    await capacity.fill("500")
    await layers.get_by_role("button", name="Save").click()
    await expect(admin.get_by_role("status")).to_have_text("Saved.")
    row = layers.get_by_role("row", name="episodic")
    await expect(row).to_contain_text(re.compile(r"500\s+this agent"))
    await layers.get_by_text("Change", exact=True).click()
    await capacity.fill("")
    await layers.get_by_role("button", name="Save").click()
    await expect(row).to_contain_text(re.compile(r"unlimited\s+default"))
    summaries = admin.get_by_role("region", name="Summaries of sessions")
    await summaries.get_by_text("Change", exact=True).click()
    await summaries.get_by_label("Provider").select_option("extractive")
    await summaries.get_by_label("Trigger").select_option("message_count")
    await summaries.get_by_label("Message count").fill("30")
    await summaries.get_by_role("button", name="Save").click()
    await expect(summaries).to_contain_text(re.compile(r"this agent.*message count\s*30", re.DOTALL))
    async with serving.client(agent_id) as memory:
        rules = (await memory.settings()).summaries
    assert rules is not None
    assert (rules.provider, rules.message_count) == ("extractive", 30)


async def test_without_the_scope_settings_have_no_form(serving: Serving, page: Page, agent_id: str) -> None:
    await sign_in_to(serving, page, agent_id)
    await page.goto(f"{serving.url}/console/settings")
    await expect(page.get_by_role("heading", name="Limits")).to_be_visible()
    assert await page.get_by_role("button", name="Save").count() == 0
    await page.goto(f"{serving.url}/console/users")
    assert await page.get_by_role("link", name="Erase").count() == 0


@pytest.mark.shows("issue17-users")
async def test_a_user_is_exported_and_erased(admin: Page, serving: Serving, agent_id: str, watched: Watched) -> None:
    watched.expected = ("422",)
    await admin.get_by_role("link", name="Users").click()
    async with admin.expect_download() as started:
        await admin.get_by_role("link", name="Export ada").click()
    download = await started.value
    assert download.suggested_filename == "memories-ada.jsonl"
    assert texts_of(await download.path()) == ["ada has seen Porto", "ada has seen Faro"]
    await admin.get_by_role("link", name="Erase ada").click()
    await expect(admin.get_by_text("2 memories and what was derived")).to_be_visible()
    await admin.get_by_label("Type the user id").fill("ben")
    await admin.get_by_role("button", name="Erase").click()
    await expect(admin.get_by_role("alert")).to_contain_text("nothing was erased")
    await admin.get_by_label("Type the user id").fill("ada")
    await admin.get_by_role("button", name="Erase").click()
    await expect(admin.get_by_role("status")).to_contain_text("Nothing of the user ada is left")
    async with admin.expect_download() as started:
        await admin.get_by_role("link", name="Download").click()
    receipt = Path(await (await started.value).path())
    assert json.loads(serving.cli("erase", "--check", str(receipt)).stdout)["user_id"] == "ada"
    async with serving.client(agent_id) as memory:
        assert [each.user_id for each in (await memory.list()).memories] == ["ben"]


@pytest.mark.shows("issue17-memories")
async def test_a_copy_is_offered_before_deleting(admin: Page, serving: Serving, agent_id: str) -> None:
    await admin.goto(f"{serving.url}/console/memories")
    await admin.get_by_label("Choose: ben has seen Lisbon").check()
    await admin.get_by_role("button", name="Delete the chosen …").click()
    await expect(admin.get_by_text("no undo brings them back")).to_be_visible()
    async with admin.expect_download() as started:
        await admin.get_by_role("button", name="Download a copy").click()
    copy = Path(await (await started.value).path())
    assert texts_of(copy) == ["ben has seen Lisbon"]
    await admin.get_by_role("button", name="Delete", exact=True).click()
    await expect(admin.get_by_role("status")).to_contain_text("1 deleted")
    assert "stored 1," in serving.cli("import", str(copy), "--agent", agent_id).stdout


@pytest.mark.shows("issue17-memories")
async def test_facets_narrow_the_list_and_feedback_has_a_note(admin: Page, serving: Serving, agent_id: str) -> None:
    await admin.goto(f"{serving.url}/console/memories?direction=ascending")
    beside = admin.get_by_role("complementary", name="Most frequent")
    await expect(beside.get_by_role("listitem")).to_have_text(["ada-talk 2", "ben-talk 1", "ada 2", "ben 1"])
    await beside.get_by_role("link", name="ben", exact=True).click()
    await expect(admin.locator("#rows .item")).to_have_count(1)
    assert "direction=ascending" in admin.url
    await expect(beside.get_by_role("listitem")).to_have_text(["ben-talk 1", "ben 1"])
    await admin.locator("#rows .content").click()
    await admin.get_by_label("Note on the feedback").fill("asked twice")
    await admin.get_by_role("button", name="Helpful", exact=True).click()
    await expect(admin.get_by_role("status")).to_have_text("Feedback noted.")
    await expect(admin.get_by_role("region", name="History")).to_contain_text("asked twice")


@pytest.mark.shows("issue17-hostile")
async def test_hostile_values_are_harmless_on_the_new_pages(serving: Serving, page: Page, agent_id: str) -> None:
    async with serving.client(agent_id) as memory:
        await store_hostile(memory)
    await sign_in_to(serving, page, agent_id, ADMIN)
    for path in ("/memories", "/users", "/users/erase?user_id=%3Cb%3Eu%3C/b%3E%E2%80%AE", "/settings"):
        await page.goto(f"{serving.url}/console{path}", wait_until="networkidle")
        await assert_harmless(page)
    await page.goto(f"{serving.url}/console/api/memory.list")
    await page.get_by_label("Params, as JSON").fill('{"descending": false}')
    await page.get_by_role("button", name="Call").click()
    await expect(page.get_by_role("region", name="Answer")).to_contain_text("⟨U+202E⟩")
    await assert_harmless(page)


@pytest.mark.shows("issue17-accessible")
async def test_new_pages_are_accessible_and_fit_a_phone(admin: Page, serving: Serving) -> None:
    for theme in ("light", "dark"):
        await admin.evaluate(f"localStorage.setItem('theme', '{theme}')")
        for path in PAGES:
            await admin.goto(f"{serving.url}/console{path}", wait_until="networkidle")
            for summary in await admin.locator("summary:visible").all():
                await summary.click()
            assert (path, theme, await serious_problems(admin)) == (path, theme, [])
    await admin.goto(f"{serving.url}/console/api/memory.list")
    await admin.get_by_role("button", name="Call").click()
    await expect(admin.get_by_role("region", name="Answer")).to_be_visible()
    assert await serious_problems(admin) == []
    await admin.set_viewport_size({"width": 360, "height": 740})
    assert await admin.evaluate("document.documentElement.scrollWidth") == 360
    for path in PAGES:
        await admin.goto(f"{serving.url}/console{path}", wait_until="networkidle")
        for summary in await admin.locator("summary:visible").all():
            await summary.click()
        assert (path, await admin.evaluate("document.documentElement.scrollWidth")) == (path, 360)
