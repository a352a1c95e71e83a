"""The tables of a store in PostgreSQL, in their own schema."""

from ..sql.tables import RUNS, TASKS

VERSION = 1
"""The version of a store's tables, in the comment on one of them; it changes with the meaning of a table."""
MARK = "refold store, version "
_KEPT = """CREATE TABLE IF NOT EXISTS totals_kept (
    set_id TEXT NOT NULL, model TEXT NOT NULL, status TEXT NOT NULL, runs BIGINT NOT NULL, tokens BIGINT NOT NULL,
    cost DOUBLE PRECISION NOT NULL, PRIMARY KEY (set_id, model, status))"""
_CHANGES = """CREATE TABLE IF NOT EXISTS totals_changes (
    set_id TEXT NOT NULL, model TEXT NOT NULL, status TEXT NOT NULL, runs BIGINT NOT NULL, tokens BIGINT NOT NULL,
    cost DOUBLE PRECISION NOT NULL)"""
"""The changes since `totals_kept` was last brought up to date. Changes are only added, so that runs that end at the
same moment do not wait for each other's row."""
_VIEW = """CREATE OR REPLACE VIEW totals AS
    SELECT * FROM totals_kept UNION ALL SELECT * FROM totals_changes"""


def _trigger(name: str, event: str, tables: str, *signed: tuple[str, str]) -> tuple[str, str, str]:
    selects = " UNION ALL ".join(
        f"SELECT set_id, model, status, {sign}1 AS runs, {sign}tokens AS tokens, {sign}COALESCE(cost, 0) AS cost "
        f"FROM {table}"
        for sign, table in signed
    )
    return (
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "INSERT INTO totals_changes SELECT set_id, model, status, SUM(runs), SUM(tokens), SUM(cost) "
        f"FROM ({selects}) each GROUP BY set_id, model, status; RETURN NULL; END $$",
        f"DROP TRIGGER IF EXISTS {name} ON runs",
        f"CREATE TRIGGER {name} AFTER {event} ON runs REFERENCING {tables} FOR EACH STATEMENT "
        f"EXECUTE FUNCTION {name}()",
    )


TABLES = (
    *(
        statement.format(serial="BIGINT GENERATED ALWAYS AS IDENTITY", key="BIGINT", bytes="BYTEA")
        for statement in (*TASKS, *RUNS)
    ),
    f"COMMENT ON TABLE heads IS '{MARK}{VERSION}'",
    "ALTER TABLE heads SET (fillfactor = 50)",  # leaves room in each page for the next version of a row
    _KEPT,
    _CHANGES,
    _VIEW,
    *_trigger("run_added", "INSERT", "NEW TABLE AS added", ("", "added")),
    *_trigger("run_changed", "UPDATE", "OLD TABLE AS before NEW TABLE AS after", ("-", "before"), ("", "after")),
    *_trigger("run_removed", "DELETE", "OLD TABLE AS gone", ("-", "gone")),
)

FOLD = """WITH gone AS (DELETE FROM totals_changes RETURNING *),
    summed AS (
        SELECT set_id, model, status, SUM(runs)::bigint AS runs, SUM(tokens)::bigint AS tokens, SUM(cost) AS cost
        FROM gone GROUP BY set_id, model, status)
    INSERT INTO totals_kept SELECT * FROM summed
    ON CONFLICT (set_id, model, status) DO UPDATE SET runs = totals_kept.runs + excluded.runs,
        tokens = totals_kept.tokens + excluded.tokens, cost = totals_kept.cost + excluded.cost"""
"""Brings `totals_kept` up to date; only one process at a time may do so, see `PostgresStore`."""
