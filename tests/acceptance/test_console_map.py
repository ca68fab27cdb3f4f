"""The map and the timeline of the console in a real browser, over a running service."""

from __future__ import annotations

import re
import uuid
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from agentcore.client import SyncMemoryClient
from tests.fixtures.browser import Watched
from tests.fixtures.console import serious_problems, sign_in_to
from tests.fixtures.serving import Serving

AGENT = f"mapped-{uuid.uuid4()}"
SignIn = Callable[..., Awaitable[Page]]
USERS = ("anna", "ben", "carla")
TOPICS = ("The tram to the harbor was late", "The soup needs more lentils", "The backup of the server failed")
HOSTILE = "<img src=x onerror='window.hacked = 1'><script>window.hacked = 1</script> \u202egpj.exe \" onload=\"x"


@pytest.fixture(scope="session")
def filled(serving: Serving) -> Serving:
    """The service, where an agent has 240 memories of three users, and a fact that changed."""
    with SyncMemoryClient(serving.url, serving.token(AGENT)) as memory:
        items: list[dict[str, Any]] = [
            {
                "content": f"{TOPICS[number % 3]} on day {number}",
                "user_id": USERS[number % 7 % 3],
                "session_id": f"talk-{number // 20}",
                "memory_type": "semantic" if number % 5 == 0 else "episodic",
                "timestamp": f"2026-0{1 + number // 60}-{1 + number % 28:02}T12:00:00Z",
                "force": True,
            }
            for number in range(240)
        ]
        memory.store_batch(items=items)
        oslo = memory.store("Ada lives in Oslo now.", timestamp="2026-05-01T00:00Z", force=True)
        memory.store(
            "Ada lives in Porto.",
            timestamp="2026-01-10T00:00Z",
            valid_to="2026-05-01T00:00Z",
            superseded_by=oslo.memory_id,
            links=[],
            force=True,
        )
    return serving


@pytest.fixture
def sign_in(filled: Serving, page: Page) -> SignIn:
    return partial(sign_in_to, filled, page)


async def colors(page: Page) -> set[str]:
    """Returns the colors that at least 20 pixels of the map have."""
    found: list[str] = await page.evaluate(
        """() => {
          const canvas = document.querySelector("canvas");
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          const counts = new Map();
          for (let at = 0; at < data.length; at += 4) {
            if (data[at + 3] < 150) continue;
            const color = [data[at], data[at + 1], data[at + 2]].map((each) => each >> 4).join(",");
            counts.set(color, (counts.get(color) ?? 0) + 1);
          }
          return [...counts].filter(([, count]) => count >= 20).map(([color]) => color);
        }"""
    )
    return set(found)


async def opened_map(page: Page, filled: Serving, query: str = "") -> Locator:
    await page.goto(f"{filled.url}/console/map{query}")
    canvas = page.locator("canvas")
    await expect(canvas).to_be_visible()
    await expect(page.locator("#legend button").first).to_be_visible()
    return canvas


async def drawn(page: Page) -> None:
    """Waits for two frames: the map is drawn in the next one."""
    await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


async def draw_around_all(page: Page, canvas: Locator) -> None:
    await canvas.scroll_into_view_if_needed()
    box = await canvas.bounding_box()
    assert box is not None
    left, top, right, bottom = box["x"] + 1, box["y"] + 1, box["x"] + box["width"] - 2, box["y"] + box["height"] - 2
    # The corners are round: the line begins at an edge.
    await page.mouse.move(left, (top + bottom) / 2)
    await page.mouse.down()
    for x, y in ((left, top), (right, top), (right, bottom), (left, bottom)):
        await page.mouse.move(x, y, steps=4)
    await page.mouse.up()


@pytest.mark.shows("issue17-map")
async def test_a_lasso_on_the_map_lists_memories(sign_in: SignIn, filled: Serving) -> None:
    page = await sign_in(AGENT)
    await page.get_by_role("link", name="Map", exact=True).click()
    canvas = page.get_by_role("img", name="Map of 242 memories")
    await expect(canvas).to_be_visible()
    await expect(page.get_by_text(re.compile("The axes explain .* of the variance"))).to_be_visible()
    await drawn(page)
    assert len(await colors(page)) >= 2
    await draw_around_all(page, canvas)
    await expect(page.get_by_role("status")).to_have_text("242 chosen; the newest 200 are listed.")
    rows = page.locator("#chosen .item")
    await expect(rows).to_have_count(200)
    await expect(rows.first).to_contain_text("Ada lives in Oslo")
    await page.get_by_label("Choose: Ada lives in Oslo now.").check()
    await page.get_by_role("button", name="Delete the chosen …").click()
    await expect(page.get_by_role("heading", name="Delete 1 memory?")).to_be_visible()


@pytest.mark.shows("issue17-map")
async def test_a_finger_draws_a_lasso(sign_in: SignIn, filled: Serving) -> None:
    page = await sign_in(AGENT)
    canvas = await opened_map(page, filled, "?user_id=ben")
    await canvas.scroll_into_view_if_needed()
    box = await canvas.bounding_box()
    assert box is not None
    device = await page.context.new_cdp_session(page)
    await device.send("Emulation.setTouchEmulationEnabled", {"enabled": True})
    left, top, right, bottom = box["x"] + 1, box["y"] + 1, box["x"] + box["width"] - 2, box["y"] + box["height"] - 2
    points = [(left, (top + bottom) / 2), (left, top), (right, top), (right, bottom), (left, bottom)]
    for number, (x, y) in enumerate(points):
        kind = "touchMove" if number else "touchStart"
        await device.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
    await device.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    await expect(page.get_by_role("status")).to_have_text(re.compile(r"\d+ chosen\."))
    await expect(page.locator("#chosen .item").first).to_contain_text("user ben")


@pytest.mark.shows("issue17-map")
async def test_colors_follow_the_field_and_the_theme(sign_in: SignIn, filled: Serving) -> None:
    page = await sign_in(AGENT)
    await opened_map(page, filled)
    await drawn(page)
    layers = await colors(page)
    await page.get_by_label("Color by").select_option("user")
    legend = page.locator("#legend button")
    await expect(legend).to_have_count(4)
    await expect(legend.first).to_contain_text(re.compile(r"anna: \d+"))
    await drawn(page)
    users = await colors(page)
    assert len(users) > len(layers)
    await page.get_by_role("button", name="Theme").click()
    await page.get_by_role("button", name="Theme").click()
    await drawn(page)
    assert (await colors(page)).isdisjoint(users)
    await page.get_by_label("Color by").select_option("session")
    await expect(legend).to_have_count(8)
    await expect(legend.last).to_contain_text("6 others")
    await page.get_by_label("Color by").select_option("age")
    await expect(legend).to_have_count(5)


@pytest.mark.shows("issue17-map")
async def test_memories_are_chosen_by_keyboard(sign_in: SignIn, filled: Serving) -> None:
    page = await sign_in(AGENT)
    await opened_map(page, filled, "?user_id=anna")
    await page.get_by_label("Color by").select_option("user")
    await page.locator("#legend button").focus()
    await page.keyboard.press("Enter")
    rows = page.locator("#chosen .item")
    await expect(rows.first).to_contain_text("user anna")
    assert await page.locator("#chosen").get_by_text("user ben").count() == 0
    listed = await rows.count()
    await page.get_by_text("List by region").click()
    region = page.locator("#regions button:enabled").first
    await region.focus()
    await page.keyboard.press("Space")
    await expect(page.get_by_role("status")).to_contain_text("chosen")
    await expect(rows).not_to_have_count(listed)


async def test_no_vectors_and_wrong_filters_are_explained(
    sign_in: SignIn, filled: Serving, agent_id: str, watched: Watched
) -> None:
    watched.expected = ("422",)
    page = await sign_in(agent_id)
    await page.goto(f"{filled.url}/console/map")
    await expect(page.locator("#map .empty")).to_contain_text("No memory that matches has a vector")
    await page.goto(f"{filled.url}/console/map?after=yesterday")
    await expect(page.locator("#map [role=alert]")).to_contain_text("after is not a time")
    assert await page.locator("canvas").count() == 0


@pytest.mark.shows("issue17-timeline")
async def test_the_timeline_shows_what_superseded_a_fact_and_what_was_current(sign_in: SignIn, filled: Serving) -> None:
    page = await sign_in(AGENT)
    await page.get_by_role("link", name="Timeline").click()
    await page.get_by_label("Subject").fill("Where does Ada live?")
    await page.get_by_role("button", name="Show", exact=True).click()
    oslo = page.locator("tbody tr").filter(has=page.get_by_role("link", name="Ada lives in Oslo now.").first).last
    await expect(oslo).to_contain_text("current")
    slider = page.get_by_label("As of: what was current")
    await slider.focus()
    await slider.fill(await slider.get_attribute("min") or "")
    await expect(page.get_by_role("heading", name="As of 2026-0")).to_contain_text("As of 2026-01")
    porto = page.locator("tbody tr").filter(has_text="superseded by")
    await expect(porto).to_contain_text("Ada lives in Porto.")
    await expect(porto.get_by_role("link", name="Ada lives in Oslo now.")).to_be_visible()
    await expect(oslo).to_contain_text("not yet")
    assert "as_of=" in page.url
    await expect(slider).to_be_focused()
    await page.goto(f"{filled.url}/console/timeline?query=Where+does+Ada+live%3F&as_of=2026-03-01")
    await expect(porto.locator("td").nth(1)).to_have_text("current")
    await expect(oslo).to_contain_text("not yet")
    await expect(page.locator("svg line.superseded")).to_have_count(1)
    await expect(page.locator("svg line.probable")).to_have_count(0)


@pytest.mark.shows("issue17-timeline")
async def test_a_rule_s_supersession_is_found_without_a_time(
    sign_in: SignIn, filled: Serving, agent_id: str, watched: Watched
) -> None:
    watched.expected = ("422",)
    async with filled.client(agent_id) as memory:
        await memory.store("Ada lives in Porto.", timestamp="2026-01-10T00:00Z")
        changed = await memory.store("Ada lives in Lisbon now.", timestamp="2026-03-10T00:00Z")
        assert len(changed.superseded) == 1
    page = await sign_in(agent_id)
    await page.goto(f"{filled.url}/console/timeline?query=Where+does+Ada+live%3F")
    rows = page.locator("tbody tr")
    await expect(rows).to_have_count(2)
    await expect(rows.first).to_contain_text(
        re.compile("Porto.*not any more.*2026-01-10 00:00.*2026-03-10 00:00", re.S)
    )
    await expect(rows.last).to_contain_text(re.compile("Lisbon.*current", re.S))
    await expect(page.locator("svg line.superseded")).to_have_count(1)
    await page.goto(f"{filled.url}/console/timeline?query=Ada&as_of=never")
    await expect(page.get_by_role("alert")).to_contain_text("as_of is not a time")


@pytest.mark.shows("issue17-hostile")
async def test_hostile_texts_are_harmless(sign_in: SignIn, filled: Serving, agent_id: str) -> None:
    async with filled.client(agent_id) as memory:
        for number in range(3):
            await memory.store(f"{HOSTILE} {number}", user_id=HOSTILE[:200], session_id="<b>s", force=True)
    page = await sign_in(agent_id)
    canvas = await opened_map(page, filled, "?tags=&x=%22%3E%3Cscript%3Ewindow.hacked=1%3C/script%3E")
    await page.get_by_label("Color by").select_option("user")
    await expect(page.locator("#legend")).to_contain_text("<img src=x onerror=")
    await draw_around_all(page, canvas)
    await expect(page.locator("#chosen .item")).to_have_count(3)
    texts = [await page.inner_text("main")]
    harmless = await page.evaluate("[window.hacked ?? null, document.querySelectorAll('main script, main img').length]")
    await page.goto(f"{filled.url}/console/timeline?query=gpj.exe+onerror+hacked&as_of=1")
    await expect(page.locator("tbody tr").first).to_contain_text("<img src=x")
    texts += [await page.inner_text("main"), await page.locator("svg.timeline").inner_html()]
    assert harmless == [None, 0]
    assert await page.evaluate("window.hacked ?? null") is None
    assert await page.locator("main script, main img").count() == 0
    assert not any("\u202e" in text for text in texts)


@pytest.mark.shows("issue17-accessible")
async def test_both_pages_are_accessible_and_fit_a_phone(sign_in: SignIn, filled: Serving) -> None:
    page = await sign_in(AGENT)
    for theme in ("light", "dark"):
        await page.evaluate(f"localStorage.setItem('theme', '{theme}')")
        for path in ("/map", "/timeline?query=Where+does+Ada+live%3F&as_of=2026-03-01"):
            await page.goto(f"{filled.url}/console{path}")
            if path == "/map":
                await expect(page.locator("#legend button").first).to_be_visible()
                await page.locator("#legend button").last.click()
                await expect(page.locator("#chosen .item").first).to_be_visible()
            for summary in await page.locator("summary:visible").all():
                await summary.click()
            assert (path, theme, await serious_problems(page)) == (path, theme, [])
    await page.set_viewport_size({"width": 360, "height": 740})
    for path in ("/map", "/timeline?query=Where+does+Ada+live%3F&as_of=2026-03-01"):
        await page.goto(f"{filled.url}/console{path}")
        await expect(page.locator("canvas, svg.timeline")).to_be_visible()
        assert (path, await page.evaluate("document.documentElement.scrollWidth")) == (path, 360)
