"""Statements keep to the forms that Citus accepts, so that plain and distributed databases run the same ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pglast import ast, parse_plpgsql, parse_sql, split
from pglast.enums import SetOperation

from agentcore.database import QUERIES, with_numbered_parameters

ALEMBIC = Path(__file__).resolve().parents[2] / "alembic"
DISTRIBUTED = frozenset(re.findall(r"'(\w+)'", (ALEMBIC / "distribute.sql").read_text())) - {
    "agent_id",
    "none",
    "embedding_models",
    "two_phase_commits",
}
# Over all agents, for operators: docs/citus.md states what does not run on a cluster.
PLAIN_ONLY = {"record_archive", "name_vector_store", "backfill_vectors"}
QUERY = "SELECT memory_id FROM memories WHERE agent_id = 'a'"
SHAPES = {
    "going": QUERIES["going"],
    **dict.fromkeys(("nearest", "lexical", "beside", "timely", "best", "arm", "own", "passages"), QUERY),
    **dict.fromkeys(("partition", "table", "memories", "index"), "memories"),
    **dict.fromkeys(("columns", "column"), "memory_id"),
    **dict.fromkeys(("dimensions", "shape", "construction"), "1"),
    **dict.fromkeys(("model", "description"), "'x'"),
    "direction": "DESC",
    "beyond": "<",
}
ROW_FUNCTIONS = {"is_live", "memory_matches", "archived_matches", "of_other_users"}
CLOCKS = {"now", "clock_timestamp", "transaction_timestamp", "statement_timestamp"}
JOB_FUNCTIONS = {"job_waits", "enqueue_job", "forget_jobs"}
STATEMENT = re.compile(
    r"\s*(--[^\n]*\n\s*)*(\(?SELECT|WITH|SET|INSERT|UPDATE|DELETE|CREATE|DROP|VACUUM|ANALYZE|COMMENT|ALTER|CHECKPOINT)\b"
)
MODIFYING = ast.InsertStmt | ast.UpdateStmt | ast.DeleteStmt


def walk(node: object) -> Iterator[ast.Node]:
    if isinstance(node, tuple):
        for each in node:
            yield from walk(each)
    elif isinstance(node, ast.Node):
        yield node
        for name in node:
            yield from walk(getattr(node, name))


def parsed(statement: str) -> ast.Node | None:
    """Parses a statement, or a fragment as a column or as a condition."""
    text = re.sub(r"\{(\w+)\}", lambda found: SHAPES.get(found[1], "(SELECT NULL)"), statement)
    numbered = with_numbered_parameters(text)[0].decode()
    if STATEMENT.match(numbered):
        return parse_sql(numbered)[0].stmt
    return parse_sql("SELECT " + re.sub(r"^(--[^\n]*\n)+", "", numbered))[0].stmt


def names(node: object) -> set[str]:
    called = [(each.funcname or ())[-1] for each in walk(node) if isinstance(each, ast.FuncCall)]
    return {name.sval for name in called if isinstance(name, ast.String) and name.sval is not None}


def has(node: object, kind: type[ast.Node]) -> bool:
    return any(isinstance(each, kind) for each in walk(node))


def _of_insert(node: ast.InsertStmt) -> Iterator[str]:
    select = node.selectStmt
    if isinstance(select, ast.SelectStmt) and not select.valuesLists:
        if node.onConflictClause is None and node.returningClause is None:
            yield "INSERT .. SELECT without RETURNING or ON CONFLICT is a COPY, which row security refuses"
        if select.op != SetOperation.SETOP_NONE:
            yield "UNION directly below INSERT"
        if select.fromClause is None and select.op == SetOperation.SETOP_NONE:
            yield "INSERT .. SELECT without FROM: use VALUES"
    if node.withClause is not None and node.withClause.recursive:
        yield "WITH RECURSIVE above INSERT"
    if node.onConflictClause is not None and names(node.onConflictClause):
        yield "a function in ON CONFLICT DO UPDATE: use EXCLUDED"


def _of_update(node: ast.UpdateStmt) -> Iterator[str]:
    for target in node.targetList or ():
        changing = names(target.val) & CLOCKS
        if changing and any(has(target.val, kind) for kind in (ast.ColumnRef, ast.CaseExpr, ast.CoalesceExpr)):
            yield "a time with columns, CASE or COALESCE in UPDATE SET: compute it in FROM or in a CTE"


def _of_recursion(node: ast.WithClause) -> Iterator[str]:
    if any(isinstance(each.ctequery, MODIFYING) for each in node.ctes or ()):
        yield "WITH RECURSIVE beside a CTE that modifies"
    fields = [(each.fields or ())[-1] for each in walk(node) if isinstance(each, ast.ColumnRef)]
    if "agent_id" not in {field.sval for field in fields if isinstance(field, ast.String)}:
        yield "WITH RECURSIVE without the distribution column"


def refused_forms(tree: object) -> set[str]:
    """Returns what Citus refuses in a statement."""
    found: set[str] = set()
    if not DISTRIBUTED & {each.relname for each in walk(tree) if isinstance(each, ast.RangeVar)}:
        return found
    for node in walk(tree):
        if isinstance(node, ast.CommonTableExpr) and isinstance(node.ctequery, ast.InsertStmt):
            found.add("INSERT inside WITH")
        if isinstance(node, ast.WithClause) and node.recursive:
            found.update(_of_recursion(node))
        if isinstance(node, ast.UpdateStmt | ast.DeleteStmt) and names(node.whereClause) & ROW_FUNCTIONS:
            found.add("a function of the row in UPDATE or DELETE")
        if isinstance(node, ast.InsertStmt):
            found.update(_of_insert(node))
        if isinstance(node, ast.UpdateStmt):
            found.update(_of_update(node))
    if names(tree) & JOB_FUNCTIONS:
        found.add("a function of jobs beside a distributed table: it must not run on a worker")
    return found


def _expressions(tree: Any) -> Iterator[Any]:
    for key, each in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        if key == "PLpgSQL_expr":
            yield each
        yield from _expressions(each)


def body_statements(text: str) -> Iterator[object]:
    """Parses the statements in the body of a function or of a DO block, without those that EXECUTE composes."""
    statement = parse_sql(text)[0].stmt
    if not isinstance(statement, ast.CreateFunctionStmt | ast.DoStmt):
        return
    listed = statement.args if isinstance(statement, ast.DoStmt) else statement.options
    options: dict[Any, Any] = {each.defname: each.arg for each in listed or ()}
    if isinstance(statement, ast.DoStmt) or options["language"].sval == "plpgsql":
        for each in _expressions(parse_plpgsql(text)):
            # A statement, an expression, or an assignment (PostgreSQL's RawParseMode).
            expression = each["query"] if each["parseMode"] < 3 else re.sub(r"^[^=]*?:?=", "", each["query"])
            yield parse_sql(each["query"] if each["parseMode"] == 0 else f"SELECT {expression}")[0].stmt
    elif statement.sql_body is not None:
        yield statement.sql_body
    else:
        yield from (each.stmt for each in parse_sql(options["as"][0].sval))


@pytest.mark.parametrize("text", split((ALEMBIC / "functions.sql").read_text()))
def test_the_body_of_a_function_has_forms_that_citus_accepts(text: str) -> None:
    assert [form for each in body_statements(text) for form in refused_forms(each)] == []


@pytest.mark.parametrize(
    ("body", "form"),
    [
        (
            "LANGUAGE sql AS $$ SELECT 1; DELETE FROM memories m WHERE NOT is_live(m.expires_at, m.pinned) $$",
            "of the row",
        ),
        ("LANGUAGE sql BEGIN ATOMIC UPDATE memories SET expires_at = coalesce(expires_at, now()); END", "a time with"),
        ("LANGUAGE plpgsql AS $$ BEGIN IF true THEN INSERT INTO llm_queue SELECT 1; END IF; END $$", "without FROM"),
        (
            "LANGUAGE plpgsql AS $$ DECLARE n int; BEGIN n := (SELECT job_waits('a', 'x') FROM memories); END $$",
            "of jobs",
        ),
        ("LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT job_waits('a', 'x') FROM memories); END $$", "of jobs"),
    ],
)
def test_a_refused_form_in_a_body_is_found(body: str, form: str) -> None:
    [*statements] = body_statements(f"CREATE FUNCTION f() RETURNS int {body}")
    assert any(form in each for statement in statements for each in refused_forms(statement))


@pytest.mark.parametrize("name", sorted(QUERIES.keys() - PLAIN_ONLY))
def test_a_statement_has_a_form_that_citus_accepts(name: str) -> None:
    assert refused_forms(parsed(QUERIES[name])) == set()


@pytest.mark.parametrize(
    ("statement", "form"),
    [
        ("INSERT INTO memory_links SELECT * FROM unnest($1)", "INSERT .. SELECT without RETURNING"),
        ("INSERT INTO llm_queue SELECT 1 UNION SELECT 2 ON CONFLICT DO NOTHING", "UNION directly below INSERT"),
        ("INSERT INTO llm_usage SELECT 1 WHERE $1 > 2 RETURNING day", "INSERT .. SELECT without FROM"),
        (
            "WITH RECURSIVE a AS (SELECT agent_id) INSERT INTO llm_queue SELECT * FROM a RETURNING 1",
            "WITH RECURSIVE above",
        ),
        (
            "INSERT INTO llm_queue VALUES (1) ON CONFLICT (a) DO UPDATE SET queued_at = now()",
            "a function in ON CONFLICT",
        ),
        ("UPDATE memories SET expires_at = now() + make_interval(secs => ttl_seconds)", "a time with columns"),
        ("UPDATE memories SET expires_at = coalesce($1, now())", "a time with columns, CASE or COALESCE"),
        ("WITH a AS (INSERT INTO llm_queue VALUES (1) RETURNING 1) SELECT * FROM a", "INSERT inside WITH"),
        ("WITH RECURSIVE a AS (SELECT memory_id FROM memories) SELECT * FROM a", "without the distribution column"),
        ("WITH RECURSIVE a AS (SELECT agent_id), b AS (DELETE FROM memories) SELECT 1", "beside a CTE that modifies"),
        ("DELETE FROM memories m WHERE NOT is_live(m.expires_at, m.pinned)", "a function of the row"),
        ("SELECT job_waits($1, 'x') FROM memories", "a function of jobs"),
    ],
)
def test_a_refused_form_is_found(statement: str, form: str) -> None:
    assert any(form in each for each in refused_forms(parse_sql(statement)[0].stmt))


def test_all_tables_of_agents_are_distributed() -> None:
    tables = re.findall(r"CREATE TABLE (\w+) \(\n    agent_id ", (ALEMBIC / "schema.sql").read_text())
    assert {*tables} == DISTRIBUTED


def test_functions_and_policies_can_exist_on_workers() -> None:
    statements = [each.stmt for each in parse_sql((ALEMBIC / "functions.sql").read_text())]
    types = {
        each.argType.names[-1].sval
        for statement in statements
        if isinstance(statement, ast.CreateFunctionStmt)
        for each in statement.parameters or ()
    }
    assert not types & DISTRIBUTED
    assert "RESTRICTIVE" not in "".join((ALEMBIC / name).read_text() for name in ("schema.sql", "functions.sql"))
