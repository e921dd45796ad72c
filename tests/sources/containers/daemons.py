"""Daemons that say what a test lets them say, over real sockets."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

RECORDED = Path(__file__).parent / "recorded"

Talk = Callable[[socket.socket], None]


@contextlib.contextmanager
def listening(path: Path, talk: Talk) -> Iterator[None]:
    """A Unix socket; each connection gets a thread that runs `talk`."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(str(path))
    server.listen(16)
    connections: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def run(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):  # the other side may leave at any time
            talk(connection)

    def accept() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            connections.append(connection)
            threads.append(threading.Thread(target=run, args=(connection,), daemon=True))
            threads[-1].start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield
    finally:
        for each in [server, *connections]:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        accepting.join()
        for thread in threads:
            thread.join()


def http_answer(content: bytes, status: int = 200) -> bytes:
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (status, len(content), content)


def chunked(content: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(content), content)


STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class FakeDocker:
    """Answers by path; `say` sends something on every stream of events."""

    def __init__(self, answers: Mapping[str, bytes]) -> None:
        self.answers = dict(answers)
        self.asked = 0
        self.queries: list[dict[str, str]] = []  # of the streams that were asked for
        self._streams: list[socket.socket] = []
        self._lock = threading.Lock()  # who heard that a stream began hears what is said on it

    def say(self, *lines: bytes) -> None:
        with self._lock:
            for stream in self._streams:
                stream.sendall(chunked(b"".join(line + b"\n" for line in lines)))

    def hang_up(self) -> None:
        with self._lock:
            for stream in self._streams:
                stream.shutdown(socket.SHUT_RDWR)
            self._streams.clear()

    def talk(self, connection: socket.socket) -> None:
        while request := connection.recv(65536):
            self.asked += 1
            target = request.split()[1].decode()
            path, _, query = target.partition("?")
            if path == "/events" and "until=" not in query:
                self.queries.append(dict(pair.split("=") for pair in query.split("&")))
                with self._lock:
                    connection.sendall(STREAM)
                    self._streams.append(connection)
            elif path in self.answers:
                connection.sendall(http_answer(self.answers[path]))
            else:
                connection.sendall(http_answer(b'{"message":"no such container"}', 404))


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    head = len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big")
    return head + payload


def message(content: bytes) -> bytes:
    return b"\0" + len(content).to_bytes(4, "big") + content


class FakeContainerd:
    """Speaks gRPC: answers by method, and sends events to whoever subscribed."""

    def __init__(self, answers: Mapping[str, bytes]) -> None:
        self.answers = dict(answers)
        self._subscribed: list[tuple[socket.socket, int]] = []
        self._lock = threading.Lock()

    def say(self, *events: bytes) -> None:
        with self._lock:
            for connection, stream in self._subscribed:
                for event in events:
                    connection.sendall(frame(0, 0, stream, message(event)))

    def talk(self, connection: socket.socket) -> None:
        file = connection.makefile("rb")
        assert file.read(24) == b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        connection.sendall(frame(4, 0, 0, b"") + frame(6, 0, 0, b"01234567"))
        while head := file.read(9):
            payload = file.read(int.from_bytes(head[:3], "big"))
            if head[3] == 1:
                self._answer(connection, int.from_bytes(head[5:], "big"), payload)

    def _answer(self, connection: socket.socket, stream: int, headers: bytes) -> None:
        if b"Events/Subscribe" in headers:
            with self._lock:
                connection.sendall(frame(1, 4, stream, b"\x88"))
                self._subscribed.append((connection, stream))
            return
        for method, content in self.answers.items():
            if method.encode() in headers:
                said = frame(1, 4, stream, b"\x88")
                data = message(content)
                for at in range(0, len(data), 1000):  # in more than one frame
                    said += frame(0, 0, stream, data[at : at + 1000])
                connection.sendall(said + frame(1, 5, stream, b"\x88"))
                return
        connection.sendall(frame(1, 5, stream, b"\x88"))  # refused: nothing but trailers
