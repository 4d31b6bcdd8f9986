"""What can go wrong, by type. Every error of Baton is an ``Error``."""

from __future__ import annotations


class Error(Exception):
    """An error of Baton.

    ``code`` is its name, as in ``baton/result.h``. ``retryable``: asking again later may succeed.
    ``in_doubt``: what was asked may have taken effect all the same. ``retry_after`` is in seconds.
    """

    code = "unknown"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        retryable: bool = False,
        in_doubt: bool = False,
        retry_after: float = 0.0,
    ) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code
        self.retryable = retryable
        self.in_doubt = in_doubt
        self.retry_after = retry_after


class BadRequest(Error):
    """An argument that cannot be, or a client from before a fork."""

    code = "bad_request"


class BadName(BadRequest):
    """A name that breaks the rules."""

    code = "bad_name"


class BadUrl(BadRequest):
    """A URL that cannot be understood."""

    code = "bad_url"


class Busy(Error):
    """Somebody else holds it, and the caller did not want to wait."""

    code = "busy"


class TimedOut(Error):
    """The wait ended first."""

    code = "timed_out"


class Superseded(Error):
    """The ordinal of the note says that somebody was there before."""

    code = "superseded"


class Denied(Error):
    """The policy or the schema forbids it."""

    code = "denied"


class Deadlock(Error):
    """Two conversions would wait for each other."""

    code = "deadlock"


class Lost(Error):
    """The lease has ended: what was asked was not done."""

    code = "lost"


class Unsupported(Error):
    """This store, or this build of libbaton, cannot do that."""

    code = "unsupported"


class Unavailable(Error):
    """The store cannot be reached, or not in time. With ``in_doubt`` it may have happened."""

    code = "unavailable"


class Cancelled(Error):
    """The wait was ended from inside this process."""

    code = "cancelled"


class Fenced(Lost):
    """A newer holder has written: this write is refused. Roll back and stop."""

    code = "fenced"


class BadStore(Error):
    """No schema, a newer one, or a damaged file: an operator must act."""

    code = "bad_store"


class Unauthorized(Error):
    """The store refuses these credentials or rights."""

    code = "unauthorized"


class Internal(Error):
    """Out of memory or of file descriptors."""

    code = "internal"


_TYPES = {
    kind.code: kind
    for kind in (
        BadRequest, BadName, BadUrl, Busy, TimedOut, Superseded, Denied, Deadlock, Lost,
        Unsupported, Unavailable, Cancelled, Fenced, BadStore, Unauthorized, Internal,
    )
}


def of_code(code: str) -> type[Error]:
    """The type of the errors with this code."""
    return _TYPES.get(code, Error)
