"""gRPC over a Unix socket: as much HTTP/2 (RFC 9113) as calling one local daemon takes.

Headers of answers are not decoded. We ask for no dynamic table, so they carry no
state from one to the next, and all they could tell is why a call was refused: a
call that was not refused brings its message, one that was brings none. Ours are
literals without indexing, which any server reads.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from pathlib import Path

from nodescope.errors import MalformedSource, SourceError, source_error
from nodescope.wire.unix_socket import Deadline, connect

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _GOAWAY, _WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
_END_STREAM, _ACK, _PADDED, _END_HEADERS = 1, 1, 8, 4
_HEADER_TABLE_SIZE, _ENABLE_PUSH, _INITIAL_WINDOW_SIZE = 1, 2, 4
_WINDOW = (1 << 31) - 1
_FIRST_WINDOW = 65_535
_REFILL = 1 << 20
_MAX_FRAME = 1 << 14  # what we allow by not saying otherwise
_RECEIVE = 64 << 10


@dataclass(slots=True)
class _Stream:
    """One call: the bytes of its answer that are not taken yet."""

    data: bytearray = field(default_factory=bytearray)
    ended: bool = False
    unacknowledged: int = 0


class GrpcConnection:
    """One connection with any number of calls; used by one thread."""

    def __init__(self, path: Path, timeout_s: float, max_message: int) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._max_message = max_message
        self._socket: socket.socket | None = None
        self._received = bytearray()
        self._streams: dict[int, _Stream] = {}
        self._next = 1
        self._unacknowledged = 0

    # -- calls -------------------------------------------------------------------

    def call(self, method: str, message: bytes, metadata: dict[str, str]) -> bytes | None:
        """One question, one answer; None if the daemon refused it."""
        deadline = Deadline(self._path, self._timeout_s)
        number = self._ask(method, message, metadata, deadline)
        stream = self._streams[number]
        while not stream.ended:
            self._wait(deadline)
        del self._streams[number]
        messages = self._messages(stream)
        return messages[0] if messages else None

    def follow(self, method: str, message: bytes, metadata: dict[str, str]) -> int:
        """Begin a call with an endless answer; its number is for `take`."""
        return self._ask(method, message, metadata, Deadline(self._path, self._timeout_s))

    def take(self, number: int, limit: int) -> list[bytes]:
        """The messages that have come, without waiting; raises when the call has ended."""
        assert self._socket is not None
        taken = 0
        while taken < limit:
            self._socket.setblocking(False)  # answering a ping gave it a deadline
            data = self._receive_some()
            if data is None:
                break
            taken += len(data)
            self._understand(data)
        stream = self._streams[number]
        if stream.ended:
            raise SourceError(self._path, "the daemon ended the stream of events")
        return self._messages(stream)

    def close(self) -> None:
        """Let go of it; the next call connects again."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._received.clear()
        self._streams.clear()
        self._next = 1
        self._unacknowledged = 0

    # -- sending -------------------------------------------------------------------

    def _ask(
        self, method: str, message: bytes, metadata: dict[str, str], deadline: Deadline
    ) -> int:
        if self._socket is None:
            self._open(deadline)
        number, self._next = self._next, self._next + 2
        headers = {
            ":method": "POST",
            ":scheme": "http",
            ":path": method,
            ":authority": "localhost",
            "content-type": "application/grpc",
            "user-agent": "nodescope",
            "te": "trailers",
            **metadata,
        }
        block = b"".join(_literal(name) + _string(value) for name, value in headers.items())
        body = b"\0" + len(message).to_bytes(4, "big") + message
        self._streams[number] = _Stream()
        request = _frame(_HEADERS, _END_HEADERS, number, block)
        self._send(request + _frame(_DATA, _END_STREAM, number, body), deadline)
        return number

    def _open(self, deadline: Deadline) -> None:
        self._socket = connect(self._path, deadline)
        settings = b"".join(
            key.to_bytes(2, "big") + value.to_bytes(4, "big")
            for key, value in (
                (_HEADER_TABLE_SIZE, 0),
                (_ENABLE_PUSH, 0),
                (_INITIAL_WINDOW_SIZE, _WINDOW),
            )
        )
        widened = (_WINDOW - _FIRST_WINDOW).to_bytes(4, "big")
        opening = _frame(_SETTINGS, 0, 0, settings) + _frame(_WINDOW_UPDATE, 0, 0, widened)
        self._send(_PREFACE + opening, deadline)

    def _send(self, data: bytes, deadline: Deadline | None = None) -> None:
        assert self._socket is not None
        deadline = deadline or Deadline(self._path, self._timeout_s)
        try:
            self._socket.settimeout(deadline.left())
            self._socket.sendall(data)
        except TimeoutError:
            raise deadline.missed() from None
        except OSError as error:
            raise source_error(self._path, error) from error

    # -- receiving -----------------------------------------------------------------

    def _wait(self, deadline: Deadline) -> None:
        assert self._socket is not None
        self._socket.settimeout(deadline.left())
        try:
            data = self._receive_some()
        except TimeoutError:
            raise deadline.missed() from None
        if data is not None:
            self._understand(data)

    def _receive_some(self) -> bytes | None:
        assert self._socket is not None
        try:
            data = self._socket.recv(_RECEIVE)
        except BlockingIOError:
            return None
        except TimeoutError:
            raise
        except OSError as error:
            raise source_error(self._path, error) from error
        if not data:
            raise SourceError(self._path, "the daemon ended the connection")
        return data

    def _understand(self, data: bytes) -> None:
        received = self._received
        received += data
        position = 0
        while len(received) - position >= 9:
            length = int.from_bytes(received[position : position + 3], "big")
            if length > _MAX_FRAME:
                raise MalformedSource(self._path, f"a frame of {length} bytes: not HTTP/2")
            end = position + 9 + length
            if len(received) < end:
                break
            number = int.from_bytes(received[position + 5 : position + 9], "big") & _WINDOW
            payload = bytes(received[position + 9 : end])
            self._frame(received[position + 3], received[position + 4], number, payload)
            position = end
        del received[:position]

    def _frame(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        if kind == _SETTINGS and not flags & _ACK:
            self._send(_frame(_SETTINGS, _ACK, 0, b""))
        elif kind == _PING and not flags & _ACK:
            self._send(_frame(_PING, _ACK, 0, payload))
        elif kind == _GOAWAY:
            raise SourceError(self._path, "the daemon goes away")
        stream = self._streams.get(number)
        if kind == _DATA:
            self._acknowledge(number, stream, len(payload))
        if stream is None:
            return
        if kind == _DATA:
            stream.data += _unpadded(payload) if flags & _PADDED else payload
            if len(stream.data) > self._max_message + _RECEIVE:  # a small one may come behind
                raise MalformedSource(self._path, f"more than {self._max_message} bytes")
        if kind == _RST_STREAM or (kind in (_DATA, _HEADERS) and flags & _END_STREAM):
            stream.ended = True

    def _acknowledge(self, number: int, stream: _Stream | None, size: int) -> None:
        """Keep both windows open."""
        self._unacknowledged += size
        if self._unacknowledged >= _REFILL:
            self._send(_frame(_WINDOW_UPDATE, 0, 0, self._unacknowledged.to_bytes(4, "big")))
            self._unacknowledged = 0
        if stream is not None:
            stream.unacknowledged += size
            if stream.unacknowledged >= _REFILL:
                grown = stream.unacknowledged.to_bytes(4, "big")
                self._send(_frame(_WINDOW_UPDATE, 0, number, grown))
                stream.unacknowledged = 0

    def _messages(self, stream: _Stream) -> list[bytes]:
        """Whole messages: a byte that says whether they are packed, a length, and so many bytes."""
        messages = []
        data = stream.data
        while len(data) >= 5:
            length = int.from_bytes(data[1:5], "big")
            if data[0] != 0 or length > self._max_message:
                raise MalformedSource(self._path, "not a message of gRPC")
            if len(data) < 5 + length:
                break
            messages.append(bytes(data[5 : 5 + length]))
            del data[: 5 + length]
        return messages


def _frame(kind: int, flags: int, number: int, payload: bytes) -> bytes:
    head = len(payload).to_bytes(3, "big") + bytes((kind, flags)) + number.to_bytes(4, "big")
    return head + payload


def _unpadded(payload: bytes) -> bytes:
    padding = payload[0] if payload else 0
    return payload[1 : max(1, len(payload) - padding)]


def _literal(name: str) -> bytes:
    """A header's name as HPACK's literal without indexing (RFC 7541 §6.2.2)."""
    return b"\0" + _string(name)


def _string(value: str) -> bytes:
    """A string, not packed, whose length has a prefix of seven bits (RFC 7541 §5)."""
    data = value.encode()
    if len(data) < 0x7F:
        return bytes((len(data),)) + data
    rest, length = len(data) - 0x7F, bytearray(b"\x7f")
    while rest > 0x7F:
        length.append(rest & 0x7F | 0x80)
        rest >>= 7
    length.append(rest)
    return bytes(length) + data
