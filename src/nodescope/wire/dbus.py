"""A client of D-Bus over a Unix socket: calls that are answered, signals that are collected.

Messages are cut out of the stream here and given to jeepney only when they are
wanted: systemd repeats itself (a unit that restarts says every state twice),
and what says the same as before is dropped undecoded.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jeepney.auth import BEGIN, AuthenticationError, Authenticator
from jeepney.bus import get_connectable_addresses
from jeepney.low_level import HeaderFields, Message, MessageType
from jeepney.wrappers import DBusAddress, new_method_call

from nodescope.errors import (
    MalformedSource,
    SourceAbsent,
    SourceDenied,
    SourceError,
    UsageError,
    source_error,
)

_TIMEOUT_S = 25.0
_MAX_MESSAGE = 16 << 20
_MAX_BACKLOG = 32 << 20
_MAX_SUBJECTS = 1024
_PRIVATE = "/systemd/private"
_SIGNAL = 4
_DENIED = ("org.freedesktop.DBus.Error.AccessDenied", "org.freedesktop.DBus.Error.AuthFailed")
_BUS = DBusAddress(
    "/org/freedesktop/DBus", bus_name="org.freedesktop.DBus", interface="org.freedesktop.DBus"
)


@dataclass(frozen=True, slots=True)
class Signal:
    """One signal, decoded."""

    path: str
    interface: str
    member: str
    body: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A method to be called."""

    path: str
    interface: str
    member: str
    signature: str | None = None
    body: tuple[Any, ...] = ()


class Bus:
    """A connection to one service of a bus, or straight to it by its private socket."""

    def __init__(self, address: str, service: str) -> None:
        self.address = address
        self._service = service
        self._stream = b""
        self._serial = 0
        self._signals: list[bytes] = []
        self._backlog = 0
        self._last_said: dict[bytes, bytes] = {}
        self.overflowed = False  # signals were dropped: what was said must be asked for
        path = _socket_path(address)
        self.direct = path.endswith(_PRIVATE)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            self._connect(path)
            if not self.direct:
                self._call_one(new_method_call(_BUS, "Hello"))
        except BaseException:
            self._socket.close()
            raise

    def _connect(self, path: str) -> None:
        try:
            self._socket.settimeout(_TIMEOUT_S)
            self._socket.connect(path)
        except ConnectionRefusedError as error:
            raise SourceAbsent(self.address, "nobody listens there") from error
        except TimeoutError as error:
            raise SourceError(self.address, "the bus does not answer") from error
        except OSError as error:
            raise source_error(self.address, error) from error
        try:
            self._greet()
        except AuthenticationError as error:
            raise SourceDenied(self.address, f"the bus does not accept us: {error}") from error
        except TimeoutError as error:
            raise SourceError(self.address, "the bus does not answer") from error
        except OSError as error:
            raise SourceDenied(self.address, f"the bus hung up: {error}") from error

    def _greet(self) -> None:
        authenticator = Authenticator()
        for line in authenticator:
            if line:
                self._socket.sendall(line)
            received = self._socket.recv(4096)
            if not received:
                raise SourceDenied(self.address, "the bus hung up")
            authenticator.feed(received)
        self._socket.sendall(BEGIN)

    @property
    def peer_pid(self) -> int | None:
        """Who listens at the other end, by our own numbers; None if out of our sight."""
        raw = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        pid: int = struct.unpack("iII", raw)[0]
        return pid or None

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    # -- calls -------------------------------------------------------------

    def call(self, call: Call, timeout_s: float = _TIMEOUT_S) -> tuple[Any, ...]:
        """Call a method and return its result."""
        return self._call_one(self._message(call), timeout_s)

    def wait_for_bytes(self, wait_s: float) -> bool:
        """Wait until the other end sends something; return whether it did."""
        return self._read_more(wait_s)

    def call_all(self, calls: Sequence[Call]) -> list[tuple[Any, ...] | SourceError]:
        """Call several methods at once; the result of one that fails is its error."""
        serials = [self._send(self._message(call)) for call in calls]
        answers = self._receive(set(serials))
        return [answers[serial] for serial in serials]

    def match(self, rule: str) -> None:
        """Ask the bus for the signals that a rule describes; a private socket gives all."""
        if not self.direct:
            self._call_one(new_method_call(_BUS, "AddMatch", "s", (rule,)))

    def _message(self, call: Call) -> Message:
        to = DBusAddress(call.path, bus_name=self._service, interface=call.interface)
        return new_method_call(to, call.member, call.signature, call.body)

    def _call_one(self, message: Message, timeout_s: float = _TIMEOUT_S) -> tuple[Any, ...]:
        serial = self._send(message)
        answer = self._receive({serial}, timeout_s)[serial]
        if isinstance(answer, SourceError):
            raise answer
        return answer

    def _send(self, message: Message) -> int:
        self._serial += 1
        data = message.serialise(serial=self._serial)
        try:
            self._socket.settimeout(_TIMEOUT_S)
            self._socket.sendall(data)
        except OSError as error:
            raise SourceError(self.address, f"the bus hung up: {error}") from error
        return self._serial

    def _receive(
        self, wanted: set[int], timeout_s: float = _TIMEOUT_S
    ) -> dict[int, tuple[Any, ...] | SourceError]:
        """Wait for the answers to these serials; signals between them are kept."""
        answers: dict[int, tuple[Any, ...] | SourceError] = {}
        deadline = time.monotonic() + timeout_s
        while len(answers) < len(wanted):
            frames = self._frames()
            for frame in frames:
                if frame[1] == _SIGNAL:
                    self._keep(frame)
                    continue
                message = self._decode(frame)
                serial = message.header.fields.get(HeaderFields.reply_serial)
                if serial in wanted:
                    answers[serial] = self._answer(message)
            if not frames and not self._read_more(deadline - time.monotonic()):
                raise SourceError(self.address, f"no answer within {timeout_s:.0f} s")
        return answers

    def _answer(self, message: Message) -> tuple[Any, ...] | SourceError:
        if message.header.message_type is not MessageType.error:
            body: tuple[Any, ...] = message.body
            return body
        name = message.header.fields.get(HeaderFields.error_name, "")
        reason = str(message.body[0]) if message.body else name
        return (SourceDenied if name in _DENIED else SourceError)(self.address, reason)

    # -- signals -----------------------------------------------------------

    def take_signals(self) -> list[Signal]:
        """The signals that came, in order, without waiting, and without repetitions."""
        while True:
            for frame in self._frames():
                if frame[1] == _SIGNAL:
                    self._keep(frame)
            if not self._read_more(0.0):
                break
        kept, self._signals, self._backlog = self._signals, [], 0
        return [signal for frame in kept if (signal := self._signal(frame)) is not None]

    def _keep(self, frame: bytes) -> None:
        if self._backlog + len(frame) > _MAX_BACKLOG:
            self.overflowed = True
            return
        self._signals.append(frame)
        self._backlog += len(frame)

    def _signal(self, frame: bytes) -> Signal | None:
        """The signal of a frame; None if it says what the one before it on the subject said."""
        size = self._body_size(frame)
        head, body = frame[: len(frame) - size], frame[len(frame) - size :]
        if b"PropertiesChanged" in head:
            subject = head[16:] + body[: 4 + self._first_length(frame, body)]
            if self._last_said.get(subject) == body:
                return None
            if len(self._last_said) >= _MAX_SUBJECTS:
                self._last_said.clear()
            self._last_said[subject] = body
        message = self._decode(frame)
        fields = message.header.fields
        return Signal(
            fields.get(HeaderFields.path, ""),
            fields.get(HeaderFields.interface, ""),
            fields.get(HeaderFields.member, ""),
            message.body,
        )

    # -- the stream --------------------------------------------------------

    def _read_more(self, wait_s: float) -> bool:
        """Wait for more bytes and return whether any came in time."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        try:
            if not poll.poll(max(0.0, wait_s) * 1000):
                return False
            received = self._socket.recv(1 << 18)
        except OSError as error:
            raise SourceError(self.address, f"the bus hung up: {error}") from error
        if not received:
            raise SourceError(self.address, "the bus hung up")
        self._stream += received
        return True

    def _frames(self) -> list[bytes]:
        """The whole messages of what was read."""
        frames, at = [], 0
        while len(self._stream) - at >= 16:
            size = self._size(self._stream[at : at + 16])
            if len(self._stream) - at < size:
                break
            frames.append(self._stream[at : at + size])
            at += size
        self._stream = self._stream[at:]
        return frames

    def _size(self, head: bytes) -> int:
        order = ">" if head[:1] == b"B" else "<"
        body, _, fields = struct.unpack_from(f"{order}III", head, 4)
        size: int = 16 + (fields + 7) // 8 * 8 + body
        if size > _MAX_MESSAGE or head[:1] not in (b"l", b"B"):
            raise MalformedSource(self.address, "not a message of D-Bus")
        return size

    def _body_size(self, frame: bytes) -> int:
        size: int = struct.unpack_from(">I" if frame[:1] == b"B" else "<I", frame, 4)[0]
        return size

    def _first_length(self, frame: bytes, body: bytes) -> int:
        """The length of the string that a body begins with."""
        if len(body) < 4:
            return 0
        length: int = struct.unpack_from(">I" if frame[:1] == b"B" else "<I", body)[0]
        return length

    def _decode(self, frame: bytes) -> Message:
        try:
            return Message.from_buffer(frame)
        except (ValueError, KeyError, IndexError, struct.error, UnicodeDecodeError) as error:
            raise MalformedSource(self.address, f"a damaged message: {error}") from error


def _socket_path(address: str) -> str:
    """The socket of an address such as `unix:path=/run/dbus/system_bus_socket`."""
    if address.startswith("/"):
        return address
    try:
        return str(next(iter(get_connectable_addresses(address))))
    except (ValueError, RuntimeError, StopIteration) as error:
        raise UsageError(
            f"not an address of D-Bus: {address!r}",
            hint="write it like unix:path=/run/dbus/system_bus_socket",
        ) from error
