"""libbaton.so.0 by ctypes: where it is, its structs and functions. Private to the package."""

from __future__ import annotations

import ctypes
import operator
import os
from ctypes import (
    CDLL, POINTER, Structure, byref, c_char, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint64,
    c_void_p,
)
from pathlib import Path
from typing import Any, Callable, Mapping

from . import errors

OK = 0
PENDING = 100
POSTGRESQL = 1
SQLITE = 2
WAIT_LONGEST = -1
MODES = ("X", "IS", "IX", "S", "U", "SIX")  # their numbers are their places


class ErrorStruct(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("code", c_int32),
        ("in_doubt", c_int32),
        ("retryable", c_int32),
        ("reserved", c_int32),
        ("retry_after_ms", c_int64),
        ("message", c_char * 1000),
    ]


class ClientOptions(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("owner", c_char_p),
        ("open_timeout_ms", c_int64),
        ("max_waiting", c_uint64),
    ]


class AcquireOptions(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("mode", c_int32),
        ("reserved", c_int32),
        ("ttl_ms", c_int64),
        ("wait_ms", c_int64),
        ("at_least_for_ms", c_int64),
        ("region", c_char_p),
        ("predicate", c_char_p),
        ("metadata", POINTER(c_char_p)),
        ("if_ordinal_below", POINTER(c_int64)),
        ("note_ordinal", POINTER(c_int64)),
        ("note_text", c_char_p),
    ]


class ReleaseOptions(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("to", c_char_p),
        ("note_ordinal", POINTER(c_int64)),
        ("note_text", c_char_p),
        ("timeout_ms", c_int64),
    ]


class ElectorOptions(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("ttl_ms", c_int64),
        ("grace_ms", c_int64),
        ("retry_interval_ms", c_int64),
        ("cooldown_ms", c_int64),
        ("region", c_char_p),
        ("metadata", POINTER(c_char_p)),
        ("priority", POINTER(c_int32)),
        ("preempt", c_int32),
        ("never_lead", c_int32),
    ]


class EventStruct(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("type", c_char_p),
        ("aggregate", c_char_p),
        ("payload", c_char_p),
        ("id", c_char_p),
        ("aggregate_type", c_char_p),
        ("exchange", c_char_p),
        ("routing_key", c_char_p),
        ("headers", POINTER(c_char_p)),
        ("correlation_id", c_char_p),
        ("causation_id", c_char_p),
        ("traceparent", c_char_p),
        ("version", c_int32),
        ("quiet", c_int32),
    ]


_error = POINTER(ErrorStruct)
_handle = c_void_p
_out = POINTER(c_void_p)
_text = [c_char_p, c_size_t]

# name: what it gives, what it takes. tests/integration/python compares the names with the library.
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "baton_version": (c_char_p, []),
    "baton_code_name": (c_char_p, [c_int]),
    "baton_open": (c_int, [c_char_p, POINTER(ClientOptions), _out, _error]),
    "baton_close": (c_int, [_handle, _error]),
    "baton_owner": (c_size_t, [_handle, *_text]),
    "baton_acquire": (c_int, [_handle, c_char_p, POINTER(AcquireOptions), _out, _error]),
    "baton_try_acquire": (c_int, [_handle, c_char_p, POINTER(AcquireOptions), _out, _error]),
    "baton_acquire_all": (
        c_int, [_handle, POINTER(c_char_p), c_size_t, POINTER(AcquireOptions), _out, _error]),
    "baton_acquire_async": (
        c_int, [_handle, POINTER(c_char_p), c_size_t, POINTER(AcquireOptions), _out, _error]),
    "baton_request_fd": (c_int, [_handle, POINTER(c_int), _error]),
    "baton_request_take": (c_int, [_handle, c_int64, _out, _error]),
    "baton_request_cancel": (c_int, [_handle, _error]),
    "baton_request_free": (c_int, [_handle, _error]),
    "baton_lease_valid": (c_int, [_handle]),
    "baton_lease_remaining_ms": (c_int64, [_handle]),
    "baton_lease_fd": (c_int, [_handle, POINTER(c_int), _error]),
    "baton_lease_why_lost": (c_size_t, [_handle, *_text]),
    "baton_lease_key": (c_size_t, [_handle, *_text]),
    "baton_lease_grant": (c_size_t, [_handle, *_text]),
    "baton_lease_mode": (c_int, [_handle]),
    "baton_lease_ttl_ms": (c_int64, [_handle]),
    "baton_lease_token": (c_uint64, [_handle]),
    "baton_lease_fence_text": (c_size_t, [_handle, *_text]),
    "baton_lease_token_at": (
        c_size_t, [_handle, c_size_t, POINTER(c_uint64), POINTER(c_int32), *_text]),
    "baton_lease_note": (c_size_t, [_handle, POINTER(c_int64), *_text]),
    "baton_lease_set_note": (c_int, [_handle, POINTER(c_int64), c_char_p, c_int64, _error]),
    "baton_lease_convert": (c_int, [_handle, c_int32, c_int64, _error]),
    "baton_lease_release": (c_int, [_handle, POINTER(ReleaseOptions), _error]),
    "baton_lease_free": (c_int, [_handle, _error]),
    "baton_elect": (c_int, [_handle, c_char_p, POINTER(ElectorOptions), _out, _error]),
    "baton_elector_fd": (c_int, [_handle, POINTER(c_int), _error]),
    "baton_elector_take": (c_int, [_handle, c_int64, _out, _error]),
    "baton_elector_trouble": (c_size_t, [_handle, *_text]),
    "baton_elector_close": (c_int, [_handle, _error]),
    "baton_fence_check_sql": (c_char_p, [c_int]),
    "baton_fence_granted_sql": (c_char_p, [c_int]),
    "baton_outbox_add_sql": (c_char_p, [c_int]),
    "baton_event_parameters": (
        c_int, [c_int, POINTER(EventStruct), *_text, POINTER(c_size_t), _error]),
    "baton_migrate": (c_int, [c_char_p, c_int64, _error]),
    "baton_install_fence": (c_int, [c_char_p, _error]),
    "baton_install_outbox": (c_int, [c_char_p, _error]),
}


def _load() -> CDLL:
    """$BATON_LIBRARY, else the library in this package, else where the system looks."""
    named = os.environ.get("BATON_LIBRARY")
    inside = Path(__file__).parent / "libbaton.so.0"
    path = named or (str(inside) if inside.exists() else "libbaton.so.0")
    try:
        library = ctypes.CDLL(path)
    except OSError as problem:
        raise ImportError(
            f"libbaton.so.0 is not found ({problem}): install Baton, or name it in $BATON_LIBRARY"
        ) from None
    for name, (gives, takes) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = gives
        function.argtypes = takes
    return library


lib = _load()


def error_from(struct: ErrorStruct) -> errors.Error:
    """The exception that an error of the library becomes."""
    code = lib.baton_code_name(struct.code).decode()
    return errors.of_code(code)(
        struct.message.decode("utf-8", "replace"),
        code=code,
        retryable=bool(struct.retryable),
        in_doubt=bool(struct.in_doubt),
        retry_after=struct.retry_after_ms / 1000,
    )


def call(function: Callable[..., int], *arguments: Any) -> int:
    """Calls a function whose last argument is the error; gives OK or PENDING, or raises."""
    error = ErrorStruct(size=ctypes.sizeof(ErrorStruct))
    code = function(*arguments, byref(error))
    if code not in (OK, PENDING):
        raise error_from(error)
    return code


def text_from(function: Callable[..., int], *arguments: Any) -> str:
    """Calls a function whose last arguments are a buffer and its size."""
    size = 256
    while True:
        buffer = ctypes.create_string_buffer(size)
        length: int = function(*arguments, buffer, size)
        if length < size:
            return buffer.value.decode("utf-8", "replace")
        size = length + 1


def to_text(value: str | None, what: str) -> bytes | None:
    """As the library takes it; a NUL would end it early."""
    if value is None:
        return None
    encoded = value.encode()
    if b"\0" in encoded:
        raise errors.BadRequest(f"{what} contains a NUL")
    return encoded


def to_millis(seconds: float, what: str, *, least: int = 0) -> int:
    """Seconds, as everywhere in Python, to milliseconds.

    ``least`` is 1 where the library takes 0 for its default.
    """
    try:
        possible = 0 <= seconds < 2**31
    except TypeError:  # not a number at all, as "30s"
        possible = False
    if not possible:
        raise errors.BadRequest(f"{what} is in seconds, as a number, not {seconds!r}")
    millis = round(seconds * 1000)
    if millis < least:
        raise errors.BadRequest(f"{what} is at least {least} ms, not {seconds!r} s")
    return millis


def to_integer(number: int, what: str, bits: int = 64, *, least: int | None = None) -> int:
    """As it is, if it fits: ctypes cuts off what does not."""
    lowest = -(2 ** (bits - 1)) if least is None else least
    highest = 2 ** (bits - 1) - 1
    try:
        whole = operator.index(number)
    except TypeError:
        raise errors.BadRequest(f"{what} is a whole number, not {number!r}") from None
    if not lowest <= whole <= highest:
        raise errors.BadRequest(f"{what} is from {lowest} to {highest}, not {whole}")
    return whole


def to_array(texts: list[bytes]) -> Any:
    """An array of texts with a NULL behind them."""
    return (c_char_p * (len(texts) + 1))(*texts, None)


def to_pairs(pairs: Mapping[str, str] | None, what: str) -> Any:
    """Name, value, name, value, …, NULL."""
    if not pairs:
        return None
    flat: list[bytes] = []
    for name, value in pairs.items():
        flat += [to_text(name, what) or b"", to_text(value, what) or b""]
    return to_array(flat)


def to_optional(number: int | None, what: str, bits: int = 64) -> Any:
    """A pointer to the number; NULL for none."""
    if number is None:
        return None
    kind = c_int64 if bits == 64 else c_int32
    return ctypes.pointer(kind(to_integer(number, what, bits)))
