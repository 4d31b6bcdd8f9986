"""Elections: of the replicas of a service, one leads."""

from __future__ import annotations

import ctypes
import time
import weakref
from ctypes import byref, c_void_p
from types import TracebackType
from typing import Any, Callable, Iterator

from . import errors
from ._library import PENDING, call, lib, text_from, to_millis
from ._waiting import wait_readable
from .lease import Lease


class Term(Lease):
    """One term of office: a lease whose ``lost`` is set when the work has to end.

    Only when the work has ended, and the term is released, can another replica lead, unless the
    lease has run out. What late work still writes is refused by ``fence(cursor)``: call that first
    thing in a term, in a transaction of its own.
    """

    def resign(self) -> None:
        """Ends the term: its work has ended."""
        self.release()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Ends the term. A term that was over before is no error: its work has ended too."""
        try:
            if not self._released.is_set():
                self.release()
        except errors.Error:
            pass
        finally:
            self._finalizer()


class Elector:
    """A candidate in one election, until it is closed."""

    def __init__(self, handle: int, client: Any) -> None:
        self._handle = handle
        self._client = client
        self._finalizer = weakref.finalize(self, lib.baton_elector_close, handle, None)

    @property
    def trouble(self) -> str:
        """The last thing that went wrong, as a store that could not be reached; it stands on."""
        return text_from(lib.baton_elector_trouble, self._handle)

    def lead(self, wait: float | None = None) -> Term:
        """Waits until this replica leads, for ``wait`` seconds at most: then ``TimedOut``."""
        end = None
        if wait is not None:
            end = time.monotonic() + to_millis(wait, "the wait") / 1000
        while True:
            term = c_void_p()
            try:
                if call(lib.baton_elector_take, self._handle, 0, byref(term)) != PENDING:
                    return Term(term.value or 0, self)
            except BaseException:
                if term.value:
                    lib.baton_lease_free(term, None)
                raise
            fd = ctypes.c_int(-1)
            call(lib.baton_elector_fd, self._handle, byref(fd))
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                raise errors.TimedOut("another replica leads" if not self.trouble else self.trouble)
            wait_readable(fd.value, left)

    def __iter__(self) -> Iterator[Term]:
        """The terms of this replica, one after the other, for ever."""
        while True:
            yield self.lead()

    def close(self) -> None:
        """Ends a term that is under way and waits for its work, not much longer than the grace."""
        self._finalizer()

    def __enter__(self) -> Elector:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Election:
    """One term of office as a context manager: see ``Client.elect``."""

    def __init__(self, stand: Callable[[], Elector], wait: float | None) -> None:
        self._stand = stand
        self._wait = wait
        self._elector: Elector | None = None
        self._term: Term | None = None

    def __enter__(self) -> Term:
        self._elector = self._stand()
        try:
            self._term = self._elector.lead(self._wait)
        except BaseException:
            self._elector.close()
            raise
        return self._term

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._term is not None:
                self._term.__exit__(kind, problem, trace)
        finally:
            if self._elector is not None:
                self._elector.close()
