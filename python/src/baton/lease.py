"""A lock that is held."""

from __future__ import annotations

import ctypes
import threading
import weakref
from types import TracebackType
from typing import Any, Callable, NamedTuple

from . import _library, errors
from ._library import call, lib, text_from, to_millis, to_optional, to_text
from ._waiting import wait_readable


class Token(NamedTuple):
    """How one name of a lease, or one ancestor of such a name, is held."""

    key: str
    mode: str
    token: int


class Note(NamedTuple):
    """What a name remembers after its holder has gone."""

    ordinal: int
    text: str


class LostEvent:
    """Like ``threading.Event``: set when the lease is lost or released. It can be polled."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease

    def is_set(self) -> bool:
        return not self._lease.valid

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until it is set, for ``timeout`` seconds at most; whether it is."""
        return wait_readable(self.fileno(), timeout) or self.is_set()

    def fileno(self) -> int:
        """Becomes readable when it is set: for ``select``, ``selectors`` and event loops."""
        fd = ctypes.c_int(-1)
        call(lib.baton_lease_fd, self._lease._handle, ctypes.byref(fd))
        return fd.value


class Lease:
    """A lock that is held, renewed in the background until it is released or lost.

    A context manager that releases it, also when it is forgotten. All members may be used from any
    thread. Trust it like this: before an effect that nothing else protects, ``check()``; during
    long work look at ``lost``; in a database transaction call ``fence(cursor)`` first. Only the
    last is safe against a process that is stopped between asking and acting.

    In a forked child it is not valid: the child opens a client of its own.
    """

    def __init__(self, handle: int, client: Any) -> None:
        self._handle = handle
        self._client = client  # it is what renews the lease
        self._released = threading.Event()
        self._finalizer = weakref.finalize(self, lib.baton_lease_free, handle, None)
        self.key: str = text_from(lib.baton_lease_key, handle)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.key} token {self.token}>"

    @property
    def valid(self) -> bool:
        """True while nobody else can have been granted the lock, by the clock of this machine."""
        return bool(lib.baton_lease_valid(self._handle))

    @property
    def remaining(self) -> float:
        """For how many seconds it stays valid if no renewal comes through any more."""
        return float(lib.baton_lease_remaining_ms(self._handle)) / 1000

    @property
    def lost(self) -> LostEvent:
        """Set before anybody else can be granted the lock, and by ``release()``."""
        return LostEvent(self)

    @property
    def why_lost(self) -> str:
        return text_from(lib.baton_lease_why_lost, self._handle)

    def check(self) -> None:
        """Raises ``Lost`` unless the lease is valid."""
        if not self.valid:
            raise self._over()

    def _over(self) -> errors.Lost:
        why = self.why_lost or "it was released, or made before a fork"
        return errors.Lost(f"the lease of '{self.key}' is over: {why}")

    def on_lost(self, callback: Callable[[Lease], object]) -> None:
        """Calls ``callback(lease)`` on a thread of its own if the lease is lost, not if this
        process releases it."""

        def watch(fd: int) -> None:
            wait_readable(fd, None)
            lease = me()
            if lease is not None and not lease._released.is_set():
                callback(lease)

        me = weakref.ref(self)
        name = f"baton-on-lost-{self.key}"
        fd = _Duplicate(self.lost.fileno())
        threading.Thread(target=fd.lend, args=(watch,), name=name, daemon=True).start()

    @property
    def mode(self) -> str:
        """"X", "S", …"""
        number: int = lib.baton_lease_mode(self._handle)
        return _library.MODES[number] if number >= 0 else ""

    @property
    def ttl(self) -> float:
        return float(lib.baton_lease_ttl_ms(self._handle)) / 1000

    @property
    def grant(self) -> str:
        return text_from(lib.baton_lease_grant, self._handle)

    @property
    def token(self) -> int:
        """Higher than that of every earlier holder of the name."""
        return int(lib.baton_lease_token(self._handle))

    @property
    def tokens(self) -> list[Token]:
        """Of every name of the lease and every ancestor of one: what a fence is shown."""
        found: list[Token] = []
        token, mode = ctypes.c_uint64(), ctypes.c_int32()
        size = 2048
        key = ctypes.create_string_buffer(size)
        while lib.baton_lease_token_at(
            self._handle, len(found), ctypes.byref(token), ctypes.byref(mode), key, size
        ):
            found.append(Token(key.value.decode(), _library.MODES[mode.value], token.value))
        return found

    @property
    def fence_text(self) -> str:
        """The same as text, for ``baton_fence(…)`` in SQL: the variable BATON_FENCE."""
        return text_from(lib.baton_lease_fence_text, self._handle)

    def fence(self, cursor: Any) -> None:
        """First in the transaction that writes: raises ``Fenced`` if a newer holder has written.

        ``cursor`` is one of psycopg2, psycopg or sqlite3. See ``baton.fence``.
        """
        from .fencing import fence

        fence(cursor, self)

    @property
    def note(self) -> Note:
        """As the grant found it, or as this lease last wrote it."""
        ordinal = ctypes.c_int64(0)
        text = text_from(lib.baton_lease_note, self._handle, ctypes.byref(ordinal))
        return Note(ordinal.value, text)

    def set_note(
        self, text: str | None = None, *, ordinal: int | None = None, timeout: float = 2.0
    ) -> None:
        """Writes the note; None leaves that part as it is."""
        call(
            lib.baton_lease_set_note,
            self._handle,
            to_optional(ordinal, "the ordinal"),
            to_text(text, "the note"),
            to_millis(timeout, "the timeout", least=1),
        )

    def convert(self, mode: str, *, wait: float = 0.0) -> None:
        """Changes the mode, upwards within ``wait`` seconds."""
        number = mode_number(mode)
        call(lib.baton_lease_convert, self._handle, number, to_millis(wait, "the wait"))

    def release(
        self,
        *,
        to: str | None = None,
        note: str | None = None,
        ordinal: int | None = None,
        timeout: float = 2.0,
    ) -> None:
        """Frees the lock for the next, or hands it to a waiter of the owner ``to``.

        ``Lost``: it already was free, and the note was not written. ``Unavailable`` in doubt: the
        client goes on releasing in the background.
        """
        options = _library.ReleaseOptions(
            size=ctypes.sizeof(_library.ReleaseOptions),
            to=to_text(to, "the owner"),
            note_ordinal=to_optional(ordinal, "the ordinal"),
            note_text=to_text(note, "the note"),
            timeout_ms=to_millis(timeout, "the timeout", least=1),
        )
        self._released.set()
        try:
            call(lib.baton_lease_release, self._handle, ctypes.byref(options))
        except errors.Error:
            if self.valid:  # refused, as when nobody of that name waits: the lease goes on
                self._released.clear()
            raise

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Releases it. ``Lost`` if it was lost meanwhile, unless the block has raised."""
        if self._released.is_set():
            return
        lost: errors.Error | None = None if self.valid else self._over()
        try:
            self.release()
        except errors.Unavailable:
            pass  # goes on in the background
        except errors.Error as error:
            lost = lost or error
        if lost is not None and kind is None:
            raise lost


class _Duplicate:
    """A descriptor that outlives the lease it is of, for a thread that waits for it."""

    def __init__(self, fd: int) -> None:
        import os

        self._fd = os.dup(fd)

    def lend(self, use: Callable[[int], None]) -> None:
        import os

        try:
            use(self._fd)
        finally:
            os.close(self._fd)


def mode_number(mode: str) -> int:
    """The number of a mode of the library."""
    try:
        return _library.MODES.index(mode.upper())
    except ValueError:
        raise errors.BadRequest(
            f"the mode is one of {', '.join(_library.MODES)}, not {mode!r}"
        ) from None
