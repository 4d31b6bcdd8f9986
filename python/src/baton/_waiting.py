"""Waiting for descriptors of the library so that Ctrl-C works. Private to the package."""

from __future__ import annotations

import select
import time

from . import errors

# A signal that the kernel gives to another thread does not end poll(): look again after this.
_SLICE = 0.5


def wait_readable(fd: int, timeout: float | None) -> bool:
    """True once `fd` is readable; False after `timeout` seconds, None: never."""
    if timeout is not None and timeout != timeout:  # a NaN would never be over
        raise errors.BadRequest("the timeout is in seconds, as a number, not nan")
    end = None if timeout is None else time.monotonic() + timeout
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    while True:
        left = _SLICE if end is None else min(_SLICE, max(0.0, end - time.monotonic()))
        if poll.poll(left * 1000):
            return True
        if end is not None and time.monotonic() >= end:
            return False
