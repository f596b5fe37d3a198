"""What the pool, the fork server and the workers say to each other: JSON in frames, with a limit of length.

JSON and no pickle: a worker ran a stranger's code, and who unpickles runs what he is sent. A frame is four bytes of
length (big-endian) and so many bytes of a JSON object. `Inbox` reads without ever waiting, so that a worker which sends
half a frame holds up nobody; `send` and `receive` wait, on the worker's side.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from typing import Any, Final

#: Bytes of a frame that tell its length.
HEADER: Final = 4
_AT_ONCE: Final = 1 << 18


class Garbage(ValueError):
    """What came is no frame of ours: too long, no JSON, no object."""


class TooLong(ValueError):
    """A message over the limit; `size` is its length in bytes."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


def pack(message: dict[str, Any], limit: int) -> bytes:
    """The frame of a message.

    Args:
        message: plain data; no NaN, no infinity (JSON has none).
        limit: bytes that its JSON may have.

    Raises:
        TooLong: it has more.
        ValueError, TypeError, RecursionError: it is not plain data.
    """
    body = json.dumps(message, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    data = body.encode("utf-8", "surrogatepass")
    if len(data) > limit:
        raise TooLong(len(data))
    return len(data).to_bytes(HEADER, "big") + data


def unpack(data: bytes) -> dict[str, Any]:
    """The message in a frame's body.

    Raises:
        Garbage: it is none.
    """
    try:
        message = json.loads(data.decode("utf-8", "surrogatepass"), parse_constant=_no_number)
    except (ValueError, RecursionError, MemoryError) as error:
        raise Garbage(type(error).__name__) from None
    if not isinstance(message, dict):
        raise Garbage(type(message).__name__)
    return message


def _no_number(name: str) -> Any:
    raise ValueError(name)


class Inbox:
    """Puts together the frames that come in pieces over a socket that does not block.

    Args:
        limit: bytes that the body of one frame may have.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._data = bytearray()
        self.open = True

    def read(self, sock: socket.socket) -> Iterator[dict[str, Any]]:
        """All messages that are complete by now. `open` is False once the other side is gone.

        Raises:
            Garbage: what came is no message; nothing after it can be understood.
        """
        self._fill(sock)
        while len(self._data) >= HEADER:
            size = int.from_bytes(self._data[:HEADER], "big")
            if size > self._limit:
                raise Garbage(size)
            end = HEADER + size
            if len(self._data) < end:
                return
            body = bytes(self._data[HEADER:end])
            del self._data[:end]
            yield unpack(body)

    def _fill(self, sock: socket.socket) -> None:
        """What has arrived, but no more than about one longest frame: a flood must not keep us here."""
        try:
            while len(self._data) <= self._limit + HEADER:
                piece = sock.recv(_AT_ONCE)
                if not piece:
                    self.open = False
                    return
                self._data += piece
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.open = False


def send(channel: int, frame: bytes) -> None:
    """Send a frame over a file descriptor; waits until it is out."""
    left = memoryview(frame)
    while left:
        left = left[os.write(channel, left) :]


def receive(channel: int, limit: int) -> dict[str, Any] | None:
    """The next message of a file descriptor; waits for it. None when the other side is gone.

    Raises:
        Garbage: it is no message.
    """
    header = _exactly(channel, HEADER)
    if header is None:
        return None
    size = int.from_bytes(header, "big")
    if size > limit:
        raise Garbage(size)
    body = _exactly(channel, size)
    return None if body is None else unpack(body)


def _exactly(channel: int, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        piece = os.read(channel, min(size - len(data), _AT_ONCE))
        if not piece:
            return None
        data += piece
    return bytes(data)
