"""The fence: refuses what a holder writes that has been overtaken."""

from __future__ import annotations

import json
from typing import Any

from . import errors
from ._database import database_of, enter_transaction, sqlstate_of
from ._library import POSTGRESQL, SQLITE, call, lib, to_text
from .lease import Lease


def install_fence(database_url: str) -> None:
    """Makes the fence in the database of the data (sqlite:PATH or postgres://…), once, as
    ``baton fence install`` does. Harmless to repeat."""
    call(lib.baton_install_fence, to_text(database_url, "the URL"))


def fence(cursor: Any, *leases: Lease) -> None:
    """First in the transaction that writes: checks and records the tokens of the leases.

    Raises ``Fenced`` if a newer holder has written: roll back and stop. Whatever else the driver
    raises is the driver's; after SQLSTATE 40001 roll back and repeat the whole transaction. Show
    all leases of a transaction in one call.

    ``cursor`` is one of psycopg2, psycopg or sqlite3, on a connection that is in a transaction or
    begins one by itself; on SQLite this begins it with BEGIN IMMEDIATE.
    """
    text = fence_text(*leases)
    database = database_of(cursor)
    enter_transaction(cursor, database, "a fence")
    if database == POSTGRESQL:
        _fence_postgres(cursor, text)
    else:
        _fence_sqlite(cursor, text)


def fence_text(*leases: Lease) -> str:
    """The text of BATON_FENCE for all of the leases."""
    entries: list[object] = []
    for lease in leases:
        text = lease.fence_text
        if not text or text == "[]":
            lease.check()
            raise errors.Lost(f"the lease of '{lease.key}' is over")
        entries += json.loads(text)
    if not entries:
        raise errors.BadRequest("a fence is shown at least one lease")
    return json.dumps(entries)


def _fence_postgres(cursor: Any, text: str) -> None:
    sql = lib.baton_fence_check_sql(POSTGRESQL).decode().replace("$1", "%s")
    try:
        cursor.execute(sql, (text,))
        cursor.fetchone()
    except Exception as problem:
        state = sqlstate_of(problem)
        if state == "BT001":
            raise errors.Fenced(str(problem).partition("\n")[0]) from problem
        if state == "42883":
            raise errors.BadStore(
                "this database has no fence: baton fence install, or baton.install_fence"
            ) from problem
        raise


def _fence_sqlite(cursor: Any, text: str) -> None:
    # The check comes first: a transaction that has read before it would be bound to what it saw.
    if not _any(cursor, lib.baton_fence_check_sql(SQLITE).decode(), text):
        raise errors.Fenced(_OVERTAKEN)
    locks_here = "SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND name = ?1"
    if not _any(cursor, locks_here, "baton_lock"):
        return
    if _any(cursor, lib.baton_fence_granted_sql(SQLITE).decode(), text):
        raise errors.Fenced(_OVERTAKEN)


_OVERTAKEN = "the lease has been overtaken by a newer holder: roll back"


def _any(cursor: Any, sql: str, parameter: str) -> bool:
    """Whether the statement gives a row."""
    try:
        return bool(cursor.execute(sql, (parameter,)).fetchall())
    except Exception as problem:
        if "no such table: baton_fence" in str(problem):
            raise errors.BadStore(
                "this database has no fence: baton fence install, or baton.install_fence"
            ) from problem
        raise
