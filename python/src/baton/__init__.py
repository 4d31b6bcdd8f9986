"""Locks, elections, fences and outboxes of Baton.

    import baton

    with baton.open("postgres://app@db/shop").hold("report/2026-11", ttl=30, wait=5) as lease:
        with connection, connection.cursor() as cursor:
            lease.fence(cursor)  # first in the transaction: refuses a holder that was overtaken
            cursor.execute("INSERT INTO report VALUES ('2026-11')")

Times are in seconds. Needs ``libbaton.so.0``: $BATON_LIBRARY, or in this package, or installed.
"""

from . import outbox
from ._library import lib as _lib
from ._version import __version__
from .client import Client, migrate, open
from .elector import Election, Elector, Term
from .errors import (
    BadName,
    BadRequest,
    BadStore,
    BadUrl,
    Busy,
    Cancelled,
    Deadlock,
    Denied,
    Error,
    Fenced,
    Internal,
    Lost,
    Superseded,
    TimedOut,
    Unauthorized,
    Unavailable,
    Unsupported,
)
from .fencing import fence, fence_text, install_fence
from .lease import Lease, LostEvent, Note, Token

__all__ = [
    "BadName", "BadRequest", "BadStore", "BadUrl", "Busy", "Cancelled", "Client", "Deadlock",
    "Denied", "Election", "Elector", "Error", "Fenced", "Internal", "Lease", "Lost", "LostEvent",
    "Note", "Superseded", "Term", "TimedOut", "Token", "Unauthorized", "Unavailable",
    "Unsupported", "__version__", "fence", "fence_text", "install_fence", "library_version",
    "migrate", "open", "outbox",
]


def library_version() -> str:
    """Of libbaton.so.0."""
    return str(_lib.baton_version().decode())
