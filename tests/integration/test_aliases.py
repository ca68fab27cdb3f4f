"""Aliases: learnt from memories, set by callers, found from either form, gone with what taught them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from psycopg import sql

from agentcore.errors import InvalidParams
from agentcore.maintenance.rounds import sweep_expired
from agentcore.memory.models import MemoryType
from agentcore.memory.params.aliases import DeleteAliasParams, ListAliasesParams, SetAliasParams
from agentcore.memory.params.changes import UpdateParams
from agentcore.memory.params.memories import (
    DeleteParams,
    GetContextParams,
    PruneParams,
    RetrieveParams,
    StoreBatchParams,
    StoreParams,
)
from tests.fixtures.memory import Agent

TEACHING = "We run Kubernetes (k8s) in Frankfurt."
RESTARTS = "Restarting k8s took nine minutes."
UPGRADE = "The Kubernetes upgrade is planned for spring."
OTHERS = ("The lease of the warehouse ends in October.", "Parking costs two euros an hour.")


async def taught(agent: Agent, query: str, **values: object) -> dict[str, str]:
    """The aliases that a search of the agent's says it used."""
    result = await agent.memory.retrieve(RetrieveParams.model_validate({"query": query, **values}))
    used: dict[str, str] = result.receipt.searched.get("aliases", {})
    return used


async def listed(agent: Agent) -> list[tuple[str, str, bool]]:
    """The agent's aliases, each with whether a memory taught it."""
    result = await agent.memory.list_aliases(ListAliasesParams())
    return [(each.alias, each.means, each.memory_id is not None) for each in result.aliases]


async def lexical(agent: Agent, query: str) -> int:
    """How many memories the words of the query find."""
    result = await agent.memory.retrieve(RetrieveParams(query=query))
    return result.receipt.candidates["lexical"]


async def test_what_one_memory_tells_finds_what_another_says_in_the_other_form(agent: Agent) -> None:
    for content in (*OTHERS, RESTARTS, UPGRADE):
        await agent.stored_id(content)
    assert await lexical(agent, "k8s") == await lexical(agent, "Kubernetes") == 1
    memory_id = await agent.stored_id(TEACHING)
    assert await lexical(agent, "k8s") == await lexical(agent, "Kubernetes") == 3
    assert await taught(agent, "how long does k8s take?") == {"k8s": "Kubernetes"}
    assert await taught(agent, "the kubernetes cluster") == {"Kubernetes": "k8s"}
    assert await taught(agent, "Kubernetes, that is k8s") == {}
    [found] = (await agent.memory.list_aliases(ListAliasesParams())).aliases
    assert (found.alias, found.means, found.memory_id) == ("k8s", "Kubernetes", memory_id)


async def test_a_name_of_several_words_and_its_initials_find_each_other(agent: Agent) -> None:
    await agent.stored_id("Every team reports one Key Performance Indicator (KPI).")
    initials = await agent.stored_id("The KPI of sales fell in May.")
    words = await agent.stored_id("Key performance indicators are due on Friday.")
    for content in OTHERS:
        await agent.stored_id(content)
    for form in ("KPI", "key performance indicator"):
        result = await agent.memory.retrieve(RetrieveParams(query=form))
        assert {initials, words} <= {memory.memory_id for memory in result.memories}
        assert result.receipt.candidates["lexical"] == 3


async def test_words_of_the_query_itself_count_more_than_those_of_the_other_form(agent: Agent) -> None:
    asked = await agent.stored_id("The zoo opens at nine.", embedding=[1.0] * 64)
    other = await agent.stored_id("The menagerie opens at nine.", embedding=[1.0] * 64)
    await agent.memory.set_alias(SetAliasParams(alias="zoo", means="menagerie"))
    params = RetrieveParams(query="zoo", query_vector=[1.0] * 64, explain=True)
    found = {memory.memory_id: memory for memory in (await agent.memory.retrieve(params)).memories}
    values = [found[each].terms["words"].value for each in (asked, other)]  # type: ignore[index]
    assert values[0] > values[1] > 0.5


@pytest.mark.parametrize(("query", "used"), [
    ("what runs on the zoo?", {"the zoo": "staging cluster"}),
    ("the staging clusters", {"staging cluster": "the zoo"}),
    ("the cluster for staging", {}),
])
async def test_an_alias_that_is_set_works_in_both_directions(
    agent: Agent, query: str, used: dict[str, str]
) -> None:
    await agent.memory.set_alias(SetAliasParams(alias="the zoo", means="the staging cluster"))
    short = {name.removeprefix("the "): other.removeprefix("the ") for name, other in used.items()}
    await agent.stored_id("Billing runs on the staging cluster.")
    await agent.stored_id("The zoo was down on Monday.")
    assert await taught(agent, query) == short
    assert await lexical(agent, query) == (2 if used else 1)


async def test_a_word_no_memory_holds_is_read_as_what_it_means_and_never_as_a_misspelling(
    agent: Agent,
) -> None:
    await agent.stored_id("The warehouse is locked at ten.")
    before = await agent.memory.retrieve(RetrieveParams(query="warehoose"))
    assert before.receipt.searched["corrected"] == {"warehoos": "warehous"}
    await agent.memory.set_alias(SetAliasParams(alias="warehoose", means="lager"))
    result = await agent.memory.retrieve(RetrieveParams(query="warehoose"))
    assert result.receipt.searched["aliases"] == {"warehoose": "lager"}
    assert "corrected" not in result.receipt.searched


async def test_setting_an_alias_again_gives_it_another_meaning_and_overrules_what_memories_tell(
    agent: Agent,
) -> None:
    await agent.stored_id("An access control list (ACL) guards the share.")
    assert await taught(agent, "ACL") == {"ACL": "access control list"}
    for means in ("anterior cruciate ligament", "the conference of lawyers"):
        await agent.memory.set_alias(SetAliasParams(alias="acl", means=means))
    assert await taught(agent, "ACL") == {"acl": "conference of lawyers"}
    assert [means for _, means, learnt in await listed(agent) if not learnt] == ["conference of lawyers"]


async def test_several_meanings_that_memories_tell_are_all_looked_up(agent: Agent) -> None:
    for meaning in ("access control list", "anterior cruciate ligament"):
        await agent.stored_id(f"The {meaning} (ACL) came up again.")
    assert set((await taught(agent, "ACL"))["ACL"].split(", ")) == {
        "access control list", "anterior cruciate ligament"}


async def test_deleting_an_alias_ends_every_meaning_until_a_memory_teaches_it_anew(agent: Agent) -> None:
    await agent.stored_id(TEACHING)
    await agent.memory.set_alias(SetAliasParams(alias="K8S", means="Kubernetes"))
    deleted = await agent.memory.delete_alias(DeleteAliasParams(alias="k8s"))
    assert (deleted.success, deleted.deleted_count) == (True, 2)
    assert await taught(agent, "k8s") == {}
    again = await agent.memory.delete_alias(DeleteAliasParams(alias="k8s"))
    assert (again.success, again.deleted_count) == (False, 0)
    await agent.stored_id(f"Again: {TEACHING}")
    assert await taught(agent, "k8s") == {"k8s": "Kubernetes"}


async def test_what_was_learnt_goes_with_its_memory(agent: Agent) -> None:
    memory_id = await agent.stored_id(TEACHING)
    assert await listed(agent) == [("k8s", "Kubernetes", True)]
    await agent.memory.delete(DeleteParams(memory_ids=[memory_id]))
    assert await listed(agent) == []
    assert await taught(agent, "k8s") == {}


async def test_pruning_takes_along_what_was_learnt(agent: Agent) -> None:
    await agent.stored_id(TEACHING)
    await agent.memory.prune(PruneParams(memory_layer=MemoryType.EPISODIC, target=1))
    assert await listed(agent) == []


async def test_what_has_expired_teaches_nothing_before_and_after_it_is_swept(agent: Agent) -> None:
    memory_id = await agent.stored_id(TEACHING, ttl_seconds=3_600)
    assert await taught(agent, "k8s") == {"k8s": "Kubernetes"}
    past = datetime.now(UTC) - timedelta(hours=1)
    async with agent.runtime.database.owner_transaction() as connection:
        await connection.execute(
            "UPDATE memories SET expires_at = %s WHERE memory_id = %s", (past, memory_id))
    assert await taught(agent, "k8s") == {}
    assert await listed(agent) == []
    parts = agent.runtime.parts
    await sweep_expired(agent.runtime.database, parts.storage, parts.working)
    async with agent.runtime.database.owner_transaction() as connection:
        cursor = await connection.execute(
            "SELECT 1 FROM memory_aliases WHERE agent_id = %s", (agent.agent_id,))
        assert await cursor.fetchall() == []


async def test_a_changed_content_teaches_anew_and_what_it_said_before_no_longer_holds(agent: Agent) -> None:
    memory_id = await agent.stored_id(TEACHING)
    change = {"memory_id": memory_id, "updates": {"content": "We run Nomad, also known as the barge."}}
    await agent.memory.update(UpdateParams.model_validate(change))
    assert await listed(agent) == [("barge", "Nomad", True)]
    kept = {"memory_id": memory_id, "updates": {"importance": 0.9}}
    await agent.memory.update(UpdateParams.model_validate(kept))
    assert await listed(agent) == [("barge", "Nomad", True)]


async def test_deleting_everything_takes_what_was_set_too(agent: Agent) -> None:
    await agent.memory.set_alias(SetAliasParams(alias="zoo", means="staging cluster"))
    await agent.stored_id(TEACHING)
    everything = DeleteParams(all=True, confirm=True)
    assert (await agent.memory.delete(everything)).deleted_count == 1
    assert await listed(agent) == []


async def test_another_agents_aliases_never_apply(agent: Agent, new_agent: Callable[..., Agent]) -> None:
    await agent.stored_id(TEACHING)
    await agent.memory.set_alias(SetAliasParams(alias="zoo", means="staging cluster"))
    stranger = new_agent()
    await stranger.stored_id(UPGRADE)
    assert await taught(stranger, "k8s in the zoo") == {}
    assert await listed(stranger) == []
    deleted = await stranger.memory.delete_alias(DeleteAliasParams(alias="zoo"))
    assert deleted.deleted_count == 0
    assert len(await listed(agent)) == 2


async def test_what_one_user_or_namespace_says_teaches_no_search_of_another(agent: Agent) -> None:
    await agent.stored_id("My sister Elizabeth, also known as Liz, moved.", user_id="u-1", namespace="home")
    assert await taught(agent, "Liz", user_id="u-1") == {"Liz": "Elizabeth"}
    assert await taught(agent, "Liz", session_id="s-9") == {"Liz": "Elizabeth"}
    assert await taught(agent, "Liz", user_id="u-2") == {}
    assert await taught(agent, "Liz", namespace="work") == {}


async def test_what_was_not_known_yet_is_not_used_for_a_past_moment(agent: Agent) -> None:
    await agent.stored_id(TEACHING, timestamp="2026-03-01T00:00:00Z")
    assert await taught(agent, "k8s", as_of="2026-02-01T00:00:00Z") == {}
    assert await taught(agent, "k8s", as_of="2026-04-01T00:00:00Z") == {"k8s": "Kubernetes"}


async def test_a_context_is_found_through_aliases_too(agent: Agent) -> None:
    await agent.memory.set_alias(SetAliasParams(alias="zoo", means="staging cluster"))
    await agent.stored_id("Billing runs on the staging cluster.")
    result = await agent.memory.get_context(GetContextParams(query="what runs on the zoo?"))
    assert result.receipt.searched["aliases"] == {"zoo": "staging cluster"}
    assert "Billing runs" in result.context


async def test_the_vector_of_the_other_form_is_searched_along(agent: Agent) -> None:
    await agent.stored_id("Billing runs on the staging cluster.")
    params = RetrieveParams(query="what runs on the zoo?")
    [before] = (await agent.memory.retrieve(params)).memories
    await agent.memory.set_alias(SetAliasParams(alias="zoo", means="staging cluster"))
    [after] = (await agent.memory.retrieve(params)).memories
    assert before.similarity is not None
    assert after.similarity is not None
    assert after.similarity > before.similarity + 0.1


async def test_aliases_are_listed_page_by_page(agent: Agent) -> None:
    names = [f"alias {number:02}" for number in range(7)]
    for name in reversed(names):
        await agent.memory.set_alias(SetAliasParams(alias=name, means=f"thing of {name}"))
    seen: list[str] = []
    cursor = None
    for size in (3, 3, 1):
        page = await agent.memory.list_aliases(ListAliasesParams(limit=3, cursor=cursor))
        assert len(page.aliases) == size
        seen += [each.alias for each in page.aliases]
        cursor = page.next_cursor
    assert (seen, cursor) == (names, None)


@pytest.mark.parametrize("cursor", ["", "x", "bnVsbA==", "WyJhIiwiYiIsImMiXQ==", "WzEsMiwzXQ=="])
async def test_a_foreign_cursor_is_refused(agent: Agent, cursor: str) -> None:
    with pytest.raises(InvalidParams, match="cursor"):
        await agent.memory.list_aliases(ListAliasesParams(cursor=cursor))


@pytest.mark.parametrize(("alias", "means", "field"), [
    ("it", "information technology", "alias"), ("zoo", "the", "means"), ("zoo", "The Zoo!", "means"),
    ("one two three four five six seven", "many", "alias"),
])
async def test_what_cannot_be_looked_up_is_refused_by_name(
    agent: Agent, alias: str, means: str, field: str
) -> None:
    with pytest.raises(InvalidParams) as refused:
        await agent.memory.set_alias(SetAliasParams(alias=alias, means=means))
    assert refused.value.data == {"field": field}


async def test_forms_are_looked_up_through_their_indexes(agent: Agent) -> None:
    items = [StoreParams(content=f"Server{n}, also known as Box{n}, is up.") for n in range(1_000)]
    await agent.memory.store_batch(StoreBatchParams(items=items))
    assert len(await listed(agent)) == 100
    async with agent.runtime.database.owner_transaction() as connection:
        await connection.execute("ANALYZE memory_aliases")
    plans: list[str] = []
    async with agent.runtime.database.transaction(agent.agent_id) as connection:
        for column in ("alias_key", "means_key"):
            # As the function other_forms asks for each form.
            cursor = await connection.execute(
                sql.SQL("EXPLAIN SELECT a.alias FROM unnest(%s::bigint[]) AS asked (key) CROSS JOIN LATERAL ("
                        "SELECT * FROM memory_aliases a WHERE a.agent_id = %s AND a.{} = asked.key "
                        "ORDER BY a.memory_id DESC LIMIT 16) AS a").format(sql.Identifier(column)),
                (list(range(60)), agent.agent_id))
            plans.append("\n".join(str(row["QUERY PLAN"]) for row in await cursor.fetchall()))
    assert "Backward using memory_aliases_by_alias" in plans[0]
    assert "Backward using memory_aliases_by_means" in plans[1]
