"""The way in: a client gives leases and terms of office."""

from __future__ import annotations

import ctypes
import weakref
from ctypes import byref, c_void_p
from types import TracebackType
from typing import Any, Callable, Iterable, Mapping, overload

from . import _library, errors
from ._library import call, lib, text_from, to_millis, to_optional, to_pairs, to_text
from ._waiting import wait_readable
from .elector import Elector, Election, Term
from .lease import Lease, mode_number


def open(  # noqa: A001: as in C++
    url: str, *, owner: str | None = None, open_timeout: float = 10.0
) -> Client:
    """Opens the store behind a URL: sqlite:PATH, postgres://… and others, as docs/stores.md says.

    ``owner`` is who we are, for people; host:pid if None.
    """
    options = _library.ClientOptions(
        size=ctypes.sizeof(_library.ClientOptions),
        owner=to_text(owner, "the owner"),
        open_timeout_ms=to_millis(open_timeout, "the timeout", least=1),
    )
    handle = c_void_p()
    call(lib.baton_open, to_text(url, "the URL"), byref(options), byref(handle))
    return Client(handle.value or 0)


def migrate(url: str, *, timeout: float = 10.0) -> None:
    """Makes the tables of the locks, or brings them up to date, as ``baton store migrate``."""
    call(lib.baton_migrate, to_text(url, "the URL"), to_millis(timeout, "the timeout", least=1))


class Client:
    """A connection to a store of locks. Thread-safe; leases keep it open.

    After a fork the child opens one of its own: every call of the parent's is ``BadRequest``.
    """

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._finalizer = weakref.finalize(self, lib.baton_close, handle, None)

    @property
    def owner(self) -> str:
        return text_from(lib.baton_owner, self._handle)

    def close(self) -> None:
        """Its leases and electors stay as they are; it ends with the last of them."""
        self._finalizer()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def acquire(
        self,
        names: str | Iterable[str],
        *,
        ttl: float = 30.0,
        wait: float | None = 0.0,
        mode: str = "X",
        at_least_for: float = 0.0,
        region: str | None = None,
        predicate: str | None = None,
        metadata: Mapping[str, str] | None = None,
        if_ordinal_below: int | None = None,
        note: str | None = None,
        ordinal: int | None = None,
    ) -> Lease:
        """One name, or all of several under one lease; waits up to ``wait`` seconds, None: a day.

        ``Busy``: somebody holds it and ``wait`` is 0. ``TimedOut``: the wait is over.
        ``Superseded``: by ``if_ordinal_below``. ``Denied``, ``Unavailable`` and others as
        ``baton/locks.h`` says. Ctrl-C ends the wait.
        """
        listed = [names] if isinstance(names, str) else list(names)
        encoded = _library.to_array([to_text(name, "a name") or b"" for name in listed])
        options = _library.AcquireOptions(
            size=ctypes.sizeof(_library.AcquireOptions),
            mode=mode_number(mode),
            ttl_ms=to_millis(ttl, "the TTL", least=1),
            wait_ms=_library.WAIT_LONGEST if wait is None else to_millis(wait, "the wait"),
            at_least_for_ms=to_millis(at_least_for, "at_least_for"),
            region=to_text(region, "the region"),
            predicate=to_text(predicate, "the predicate"),
            metadata=to_pairs(metadata, "the metadata"),
            if_ordinal_below=to_optional(if_ordinal_below, "if_ordinal_below"),
            note_ordinal=to_optional(ordinal, "the ordinal"),
            note_text=to_text(note, "the note"),
        )
        request = c_void_p()
        lease = c_void_p()
        try:
            call(
                lib.baton_acquire_async, self._handle, encoded, len(listed), byref(options),
                byref(request),
            )
            fd = ctypes.c_int(-1)
            call(lib.baton_request_fd, request, byref(fd))
            wait_readable(fd.value, None)  # it has an answer by the end of the wait
            call(lib.baton_request_take, request, 1000, byref(lease))
            return Lease(lease.value or 0, self)
        except BaseException:  # also Ctrl-C: nobody knows of this lease
            if lease.value:
                lib.baton_lease_free(lease, None)
            raise
        finally:
            if request.value:
                lib.baton_request_free(request, None)

    def try_acquire(self, names: str | Iterable[str], **options: Any) -> Lease | None:
        """The same without waiting; None if somebody else holds it."""
        try:
            return self.acquire(names, **{**options, "wait": 0.0})
        except errors.Busy:
            return None

    def hold(self, names: str | Iterable[str], **options: Any) -> Lease:
        """``with client.hold("report", ttl=30, wait=5) as lease: …``

        As ``acquire``; at its end the block raises ``Lost`` if the lock was lost while it ran.
        """
        return self.acquire(names, **options)

    def elector(
        self,
        election: str,
        *,
        ttl: float = 10.0,
        grace: float = 5.0,
        retry_interval: float = 1.0,
        cooldown: float = 0.5,
        region: str | None = None,
        metadata: Mapping[str, str] | None = None,
        priority: int | None = None,
        preempt: bool = False,
        never_lead: bool = False,
    ) -> Elector:
        """Stands as a candidate in the background until the elector is closed.

        When a term ends, the candidate of the highest ``priority`` is next: give all replicas one,
        or none. With ``preempt`` it also takes over from a leader of a lower one. With
        ``never_lead`` it does not stand.
        """
        options = _library.ElectorOptions(
            size=ctypes.sizeof(_library.ElectorOptions),
            ttl_ms=to_millis(ttl, "the TTL", least=1),
            grace_ms=to_millis(grace, "the grace", least=1),
            retry_interval_ms=to_millis(retry_interval, "the retry interval", least=1),
            cooldown_ms=to_millis(cooldown, "the cooldown", least=1),
            region=to_text(region, "the region"),
            metadata=to_pairs(metadata, "the metadata"),
            priority=to_optional(priority, "the priority", 32),
            preempt=bool(preempt),
            never_lead=bool(never_lead),
        )
        handle = c_void_p()
        call(
            lib.baton_elect, self._handle, to_text(election, "the election"), byref(options),
            byref(handle),
        )
        return Elector(handle.value or 0, self)

    @overload
    def elect(
        self, election: str, work: None = None, *, wait: float | None = None, **options: Any
    ) -> Election: ...

    @overload
    def elect(
        self,
        election: str,
        work: Callable[[Term], object],
        *,
        wait: float | None = None,
        **options: Any,
    ) -> None: ...

    def elect(
        self,
        election: str,
        work: Callable[[Term], object] | None = None,
        *,
        wait: float | None = None,
        **options: Any,
    ) -> Election | None:
        """``with client.elect("outbox") as term: …`` waits until this replica leads.

        With ``work``: calls ``work(term)`` whenever this replica leads, for ever. Work that returns
        gives leadership up, and the replica stands again; work that raises ends it.
        """
        if work is None:
            return Election(lambda: self.elector(election, **options), wait)
        with self.elector(election, **options) as elector:
            for term in elector:
                with term:
                    work(term)
        return None


