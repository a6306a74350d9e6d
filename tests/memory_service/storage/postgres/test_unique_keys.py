"""Tables can be spread over machines by workspace: each unique key begins with its number; rows are walled off."""

from __future__ import annotations

import psycopg

# Tables that every machine of a spread database has, or that one of them alone has, each with the reason.
EXCUSED = {
    "workspaces": "gives the numbers, and is small: every machine has it",
    "schema_migrations": "is of the database itself",
    "channels": "messages of all servers go by one machine, which has all of them",
    "channel_messages": "the same",
    "leases": "are of the home, as their locks are",
    "secrets": "are of the home",
}
_KEYS = """
SELECT c.relname, i.relname, array(
    SELECT a.attname::text FROM unnest(x.indkey) WITH ORDINALITY k(number, place)
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number ORDER BY k.place
)
FROM pg_index x JOIN pg_class c ON c.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid
WHERE x.indisunique AND c.relnamespace = 'public'::regnamespace ORDER BY 1, 2"""
_TABLES = """
SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity,
    EXISTS (SELECT FROM pg_index x WHERE x.indrelid = c.oid AND x.indisprimary),
    array(SELECT pg_get_expr(p.polqual, p.polrelid) FROM pg_policy p WHERE p.polrelid = c.oid)
FROM pg_class c WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace ORDER BY 1"""
_SEQUENCES = """
SELECT s.relname, c.relname FROM pg_class s
LEFT JOIN pg_depend d ON d.objid = s.oid AND d.deptype IN ('a', 'i') LEFT JOIN pg_class c ON c.oid = d.refobjid
WHERE s.relkind = 'S' AND s.relnamespace = 'public'::regnamespace"""


def test_every_unique_key_begins_with_the_workspace(migrated_database: str) -> None:
    with psycopg.connect(migrated_database) as connection:
        keys = connection.execute(_KEYS).fetchall()
    others = {f"{table}.{key} ({', '.join(columns)})" for table, key, columns in keys if columns[:1] != ["ws"]}
    assert {key for key in others if key.partition(".")[0] not in EXCUSED} == set()
    assert {key.partition(".")[0] for key in others} == set(EXCUSED), "an excuse that nobody needs goes"
    assert len(keys) > len(EXCUSED) + 8


def test_the_rows_of_every_table_are_walled_off_by_workspace(migrated_database: str) -> None:
    with psycopg.connect(migrated_database) as connection:
        tables = connection.execute(_TABLES).fetchall()
    assert [name for name, _, has_key, _ in tables if not has_key] == []
    open_tables = {name for name, is_walled_off, _, rules in tables if not (is_walled_off and len(rules) == 1)}
    assert open_tables <= set(EXCUSED)
    for name, _, _, rules in tables:
        assert name in EXCUSED or "current_setting('app.ws'::text, true)" in rules[0], name


def test_no_key_is_drawn_from_a_sequence_that_workspaces_share(migrated_database: str) -> None:
    with psycopg.connect(migrated_database) as connection:
        sequences = connection.execute(_SEQUENCES).fetchall()
    assert [name for name, table in sequences if table not in EXCUSED] == []
