"""Erasing a user: a page that asks, and the signed receipt."""

from __future__ import annotations

from starlette.responses import Response

from agentcore.console import display
from agentcore.console.visit import Visit
from agentcore.errors import AgentCoreError, NotAuthorised
from agentcore.memory.params.archived import EraseResult

# Calls of one request, each up to the time limit of a call.
MAX_CALLS = 4


async def confirm_erase(visit: Visit) -> Response:
    return await _ask(visit)


async def _ask(visit: Visit, problem: str = "") -> Response:
    if not visit.may("memory:admin"):
        raise NotAuthorised(
            "Erasing requires the scope memory:admin: sign in with `agentcore console --agent ID --admin`."
        )
    user_id = visit.exact("user_id")
    count = (await visit.memory.count(user_id=user_id)).count
    return visit.render("erase.html", 422 if problem else 200, user_id=user_id, count=count, problem=problem)


async def erase(visit: Visit) -> Response:
    """Erases in several calls. What remains after MAX_CALLS is erased by the form of the next page."""
    user_id = visit.exact("user_id")
    # Control characters cannot be typed: the user id as it is shown is accepted, too.
    if visit.exact("typed") not in (user_id, display.visible(user_id)) or not user_id:
        return await _ask(visit, "The user id that you typed is another: nothing was erased.")
    done = await _erased(visit, user_id, visit.text("continues") or None)
    problem = ""
    try:
        for _ in range(1, MAX_CALLS):
            if not done.complete:
                done = await _erased(visit, user_id, done.signed_receipt)
    except AgentCoreError as error:
        problem = error.message
    return visit.render("erased.html", user_id=user_id, done=done, problem=problem)


async def _erased(visit: Visit, user_id: str, continues: str | None) -> EraseResult:
    return await visit.memory.erase(user_id=user_id, confirm=True, continues=continues)


ERASE_PAGES = (("/users/erase", "GET", confirm_erase), ("/users/erase", "POST", erase))
