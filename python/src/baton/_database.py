"""Which database a DB-API cursor is of, and its transactions. Private to the package."""

from __future__ import annotations

from typing import Any

from . import errors
from ._library import POSTGRESQL, SQLITE

_MODULES = {"sqlite3": SQLITE, "psycopg2": POSTGRESQL, "psycopg": POSTGRESQL}
_IDLE = 0  # PQTRANS_IDLE of libpq


def database_of(cursor: Any) -> int:
    """By the module of the cursor's class, or of one that it is derived from."""
    for kind in type(cursor).__mro__:
        database = _MODULES.get(kind.__module__.partition(".")[0])
        if database is not None and not kind.__name__.startswith("Async"):
            return database
    raise TypeError(
        f"{type(cursor).__module__}.{type(cursor).__name__} is no cursor of psycopg2, psycopg or "
        "sqlite3: for another driver run the SQL of docs/fencing.md with lease.fence_text"
    )


def enter_transaction(cursor: Any, database: int, what: str) -> None:
    """Makes sure that the next statement is inside a transaction that somebody commits."""
    connection = cursor.connection
    if database == POSTGRESQL:
        # Without autocommit the driver begins one with the first statement.
        open_already = connection.info.transaction_status != _IDLE or not connection.autocommit
    else:
        open_already = connection.in_transaction
        # Python begins transactions by itself, but not before a WITH.
        autocommit = getattr(connection, "autocommit", -1)
        if not open_already and autocommit is not True and connection.isolation_level is not None:
            cursor.execute("BEGIN IMMEDIATE")
            open_already = True
    if not open_already:
        raise errors.BadRequest(
            f"{what} belongs into a transaction, and the connection is in autocommit mode: "
            "begin one"
        )


def sqlstate_of(problem: BaseException) -> str | None:
    """Of an error of psycopg2 or psycopg."""
    return getattr(problem, "sqlstate", None) or getattr(problem, "pgcode", None)
