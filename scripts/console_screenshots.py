"""Takes a picture of each page of the console in light, dark and phone width, from a temporary service with the demo.

make screenshots        writes to build/screenshots, and those of the documentation to docs/images
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.async_api import Browser, async_playwright

from scripts.fill_console_demo import fill
from tests.fixtures.browser import ARGUMENTS, unpacked_chromium
from tests.fixtures.serving import Serving, clean_environment

AGENT = "demo"
PAGES = {
    "overview": "/",
    "memories": "/memories",
    "search": "/search?query=Where+does+Anna+live%3F&a_k=5",
    "comparison": "/search?query=What+does+Anna+eat%3F&a_k=5&compare=yes&b_k=5&b_user_id=anna",
    "context": "/context?query=What+does+Anna+eat%3F&max_tokens=400",
    "sessions": "/sessions",
    "users": "/users",
    "archive": "/archive",
    "timeline": "/timeline?query=Where+does+Ada+live%3F&user_id=ada",
    "why": "/search?query=Where+does+Ada+live%3F&a_k=3&trace={old}",
    "map": "/map",
    "jobs": "/jobs",
    "settings": "/settings",
    "api": "/api",
    "method": "/api/memory.retrieve",
}
# Pages whose pictures the documentation shows.
DOCUMENTED = ("why", "timeline", "search")
LOOKS = {"light": ("light", 1200), "dark": ("dark", 1200), "phone": ("light", 390)}


async def tell_story(serving: Serving) -> str:
    """Stores a fact that changes twice; returns the id of its first state."""
    async with serving.client(AGENT) as memory:
        said = [
            await memory.store(text, user_id="ada", timestamp=moment)
            for text, moment in (
                ("Ada lives in Oslo.", "2026-03-04T09:00Z"),
                ("Ada likes her tea without milk.", "2026-04-11T09:00Z"),
                ("Ada now lives in Porto instead of Oslo.", "2026-06-20T09:00Z"),
                ("Ada lives in Turin now, no longer in Porto.", "2026-09-02T09:00Z"),
            )
        ]
    return str(said[0].memory_id)


async def take(browser: Browser, serving: Serving, directory: Path) -> None:
    old = await tell_story(serving)
    scopes = ("memory:read", "memory:write", "memory:admin")
    for look, (theme, width) in LOOKS.items():
        context = await browser.new_context(locale="en-US", viewport={"width": width, "height": 860})
        page = await context.new_page()
        await page.goto(f"{serving.url}/console/sign-in")
        await page.get_by_label("Token").fill(serving.token(AGENT, scopes=scopes, ttl_seconds=3_600))
        await page.get_by_role("button", name="Sign in").click()
        await page.get_by_role("heading", name="Overview").wait_for()
        await page.evaluate(f"localStorage.setItem('theme', '{theme}')")
        await page.goto(f"{serving.url}/console/memories")
        memory = await page.locator("#rows .content").first.get_attribute("href")
        for name, path in {**PAGES, "memory": (memory or "").removeprefix("/console")}.items():
            await page.goto(f"{serving.url}/console{path.format(old=old)}", wait_until="networkidle")
            await page.screenshot(path=directory / f"{name}-{look}.png")
        await context.close()


async def take_all(directory: Path, home: Path) -> None:
    serving = Serving(home, clean_environment(home, EMBEDDING_MODEL="local"))
    serving.start()
    serving.await_listening()
    try:
        await fill(serving.url, serving.token(AGENT, ttl_seconds=3_600))
        async with async_playwright() as playwright:
            path, environment = unpacked_chromium()
            browser = await playwright.chromium.launch(executable_path=path, args=ARGUMENTS, env=environment)
            await take(browser, serving, directory)
            await browser.close()
    finally:
        serving.stop()


def main() -> None:
    directory = Path("build/screenshots")
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="agentcore-screenshots-") as place:
        Path(place).chmod(0o755)  # the system user of the servers reads it
        asyncio.run(take_all(directory, Path(place) / "home"))
    for name in DOCUMENTED:
        shutil.copy(directory / f"{name}-light.png", Path("docs/images") / f"console-{name}.png")
    sys.stdout.write(f"{len([*directory.iterdir()])} pictures in {directory}\n")


if __name__ == "__main__":
    main()
