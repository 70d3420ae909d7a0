"""Lines: connections of a fit's own to the workers that it asks, without a detour.

A question that Dask passes on wakes the event loop of the driver, that of each worker, the thread
that computes, and the loops again on the way back. On a machine whose cores are all busy each of
them waits for a core: a question that two workers compute in 2 ms then took 6. Over a line, the
thread that asks wakes the thread that computes, and is woken by it.

Lines save time and do nothing else. If one cannot be opened, or breaks, all are closed, and Dask
passes the question on. Whoever can connect to a Dask worker can have it run anything; a line takes
one caller, who has to send a secret first, and then its listener is closed. The worker answers with
a second secret: by then its port may be another program's, whose messages the driver must not load.
"""

from __future__ import annotations

import hmac
import os
import secrets
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple, TypeAlias, TypeVar

__all__ = ["Lines", "Place", "listen"]

A = TypeVar("A")
B = TypeVar("B")

Watch: TypeAlias = Callable[[], bool]  # whether to go on waiting

CONNECTED = 0.5  # seconds for a connection: where a firewall drops packets, none comes
OPENED = 10.0  # seconds until a line is ready, from either end: a busy worker takes long
LEAST = 0.001  # seconds to wait past that: with 0 a line would not wait at all
PATIENCE = 0.25  # seconds between two looks at who is still there
SILENT = 30  # seconds after which a host that is gone is noticed by who waits for it
LENGTH = struct.Struct("!Q")  # of a message, before it


class Place(NamedTuple):
    """A port, the secret that opens the line there, and that by which its owner is known."""

    port: int
    secret: bytes
    reply: bytes

    def __repr__(self) -> str:
        return f"<port {self.port}>"


# --------------------------------------------------------------------------------- on the workers


def listen(name: str, host: str, answer: Callable[[bytearray], bytes]) -> Place | None:
    """Have a thread of this name answer one caller; None if this machine is no such host.

    The line ends if the caller leaves, or if an answer fails.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, 0), family=family)
    except OSError:
        return None
    place = Place(listener.getsockname()[1], secrets.token_bytes(32), secrets.token_bytes(32))
    given = listener, place, answer
    threading.Thread(target=_serve, args=given, name=name, daemon=True).start()
    return place


def _serve(listener: socket.socket, place: Place, answer: Callable[[bytearray], bytes]) -> None:
    with suppress(Exception):  # nothing is lost: Dask passes the question on, and any error back
        with listener:
            listener.settimeout(OPENED)
            line, _ = listener.accept()
        with line:
            _expect(line, place.secret)
            _tuned(line).sendall(place.reply)
            line.settimeout(None)
            while True:
                _send(line, answer(_message(line, _never)), _never)


def _never() -> bool:
    return False


# ---------------------------------------------------------------------------------- on the driver


class Lines:
    """Lines to some workers, by their addresses; to all of them or to none."""

    def __init__(self) -> None:
        self._lines: dict[str, socket.socket] = {}
        self._lock = threading.Lock()  # one question at a time, or answers would be mixed up
        self._process = os.getpid()  # a fork of it would ask, and read answers, in between

    def __len__(self) -> int:
        return len(self._lines)

    def open(self, places: Mapping[str, tuple[str, Place]]) -> None:
        """Open lines to workers at these hosts and places, and close all others."""
        with self._lock, self._all_or_none():
            self.close()
            for address, (host, place) in places.items():
                line = socket.create_connection((host, place.port), timeout=CONNECTED)
                self._lines[address] = line
                line.settimeout(OPENED)
                _tuned(line).sendall(place.secret)
                _expect(line, place.reply)
                line.settimeout(PATIENCE)

    def ask(self, messages: Mapping[str, bytes], watch: Watch) -> list[bytearray] | None:
        """The answers of workers to messages; None if there is no line to one, or it broke.

        While there is no answer, `watch` says every now and then whether to go on waiting.
        """
        if os.getpid() != self._process:
            return None
        with self._lock, self._all_or_none():
            if not messages.keys() <= self._lines.keys():
                return None
            for address, message in messages.items():
                _send(self._lines[address], message, watch)
            return [_message(self._lines[address], watch) for address in messages]
        return None

    @contextmanager
    def _all_or_none(self) -> Iterator[None]:
        """Close all lines if one breaks, and after any other error.

        Otherwise a late answer would be taken for that to the next question.
        """
        try:
            yield
        except OSError:
            self.close()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close all lines."""
        while self._lines:
            with self._lines.popitem()[1] as line, suppress(OSError):
                if os.getpid() == self._process:  # and for its forks, or the worker would wait
                    line.shutdown(socket.SHUT_RDWR)


# -------------------------------------------------------------------------------------- messages


def _tuned(line: socket.socket) -> socket.socket:
    """The line, which sends at once, and breaks if the other host is gone.

    Without TCP_USER_TIMEOUT, which also breaks a line whose other end has yet to read: an answer
    waits until the driver has those of the workers before it.
    """
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in {
        "TCP_KEEPIDLE": SILENT // 3, "TCP_KEEPALIVE": SILENT // 3,  # the same on macOS
        "TCP_KEEPINTVL": SILENT // 6, "TCP_KEEPCNT": 4,
    }.items():  # fmt: skip
        with suppress(AttributeError, OSError):  # not every system has all of them
            line.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return line


def _send(line: socket.socket, message: bytes, watch: Watch) -> None:
    left = memoryview(LENGTH.pack(len(message)) + message)
    while left:
        left = left[_patiently(line.send, left, watch) :]


def _message(line: socket.socket, watch: Watch) -> bytearray:
    [length] = LENGTH.unpack(_received(line, LENGTH.size, watch))
    return _received(line, length, watch)


def _expect(line: socket.socket, secret: bytes) -> None:
    """Receive a secret, all of it in time: who sends byte by byte must not hold the line."""
    found = _received(line, len(secret), _never, time.monotonic() + OPENED)
    if not hmac.compare_digest(found, secret):
        raise ConnectionError


def _received(
    line: socket.socket, length: int, watch: Watch, deadline: float | None = None
) -> bytearray:
    found = bytearray(length)
    left = memoryview(found)
    while left:
        if deadline is not None:
            line.settimeout(max(LEAST, deadline - time.monotonic()))
        count = _patiently(line.recv_into, left, watch)
        if count == 0:
            raise ConnectionError
        left = left[count:]
    return found


def _patiently(call: Callable[[A], B], argument: A, watch: Watch) -> B:
    """What a call returns, however often it has to be made."""
    while True:
        try:
            return call(argument)
        except TimeoutError:
            if not watch():
                raise
