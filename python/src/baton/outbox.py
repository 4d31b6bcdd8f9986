"""The transactional outbox: events that are published if and only if their transaction commits."""

from __future__ import annotations

import ctypes
import json
import re
from typing import Any, Mapping

from . import _library, errors
from ._database import database_of, enter_transaction
from ._library import POSTGRESQL, call, lib, to_integer, to_pairs, to_text


def install(database_url: str) -> None:
    """Makes the tables of the outbox (sqlite:PATH or postgres://…), once, as
    ``baton outbox install`` does. Harmless to repeat."""
    call(lib.baton_install_outbox, to_text(database_url, "the URL"))


def add(
    cursor: Any,
    *,
    type: str,
    aggregate: str,
    exchange: str,
    payload: Any = "{}",
    id: str | None = None,
    aggregate_type: str | None = None,
    routing_key: str | None = None,
    headers: Mapping[str, str] | None = None,
    correlation_id: str | None = None,
    causation_id: str | None = None,
    traceparent: str | None = None,
    version: int = 1,
    quiet: bool = False,
) -> str:
    """Adds an event in the transaction of ``cursor`` and gives its id; a relay publishes it.

    ``payload`` is JSON text, or a value that is written as JSON. ``BadRequest`` says what is wrong
    with an event. ``cursor`` is one of psycopg2, psycopg or sqlite3.
    """
    database = database_of(cursor)
    text = payload if isinstance(payload, str) else json.dumps(payload)
    event = _library.EventStruct(
        size=ctypes.sizeof(_library.EventStruct),
        type=to_text(type, "the type"),
        aggregate=to_text(aggregate, "the aggregate"),
        payload=to_text(text, "the payload"),
        id=to_text(id, "the id"),
        aggregate_type=to_text(aggregate_type, "the aggregate type"),
        exchange=to_text(exchange, "the exchange"),
        routing_key=to_text(routing_key, "the routing key"),
        headers=to_pairs(headers, "the headers"),
        correlation_id=to_text(correlation_id, "the correlation id"),
        causation_id=to_text(causation_id, "the causation id"),
        traceparent=to_text(traceparent, "the traceparent"),
        version=to_integer(version, "the version", 32, least=1),
        quiet=bool(quiet),
    )
    parameters = _parameters(database, event)
    enter_transaction(cursor, database, "an event")
    sql = lib.baton_outbox_add_sql(database).decode()
    if database == POSTGRESQL:
        named = {f"p{number}": value for number, value in enumerate(parameters, 1)}
        cursor.execute(re.sub(r"\$(\d+)", r"%(p\1)s", sql), named)
        cursor.fetchone()
    elif not cursor.execute(sql, parameters).fetchall():
        raise errors.BadStore("the outbox of this database was made by a newer Baton")
    return str(parameters[0])


def _parameters(database: int, event: _library.EventStruct) -> list[Any]:
    length = ctypes.c_size_t()
    size = 4096
    while True:
        buffer = ctypes.create_string_buffer(size)
        call(
            lib.baton_event_parameters, database, ctypes.byref(event), buffer, size,
            ctypes.byref(length),
        )
        if length.value < size:
            return list(json.loads(buffer.value))
        size = length.value + 1
