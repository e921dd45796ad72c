"""HTTP/1.1 over a Unix socket: as much as docker's API takes, with bounds on all of it.

`http.client` would bring `email` and `ssl` into the recorder's memory, and has no
way to read what has come of an endless answer without waiting for more.
"""

from __future__ import annotations

import socket
from pathlib import Path

from nodescope.errors import MalformedSource, SourceDenied, SourceError, source_error
from nodescope.wire.unix_socket import Deadline, connect

_MAX_HEAD = 64 << 10
_MAX_LINE = 1024
_RECEIVE = 64 << 10


class Body:
    """Takes an answer's bytes apart: what `feed` returns is content."""

    def __init__(self, path: Path, head: bytes) -> None:
        self._path = path
        self._rest = b""
        self._left: int | None = None  # bytes of this chunk, or of the whole
        self._skip = 0  # of the line end after a chunk
        self.done = False
        self.status, headers = parse_head(head, path)
        self.chunked = headers.get(b"transfer-encoding", b"").lower() == b"chunked"
        if not self.chunked and b"content-length" in headers:
            self._left = _decimal(headers[b"content-length"], path)
            self.done = self._left == 0
        if self.status in (204, 304):
            self.done = True
        self.keeps = headers.get(b"connection", b"").lower() != b"close" and (
            self.chunked or self._left is not None
        )

    def feed(self, data: bytes) -> bytes:
        """The content in what came next."""
        if self.done:
            return b""
        if self.chunked:
            return self._chunks(data)
        if self._left is None:
            return data  # until the connection ends
        data = data[: self._left]
        self._left -= len(data)
        self.done = self._left == 0
        return data

    def _chunks(self, data: bytes) -> bytes:
        rest = self._rest + data
        content = []
        while rest and not self.done:
            if self._skip:
                skipped = min(self._skip, len(rest))
                rest, self._skip = rest[skipped:], self._skip - skipped
            elif self._left:
                piece, rest = rest[: self._left], rest[self._left :]
                self._left -= len(piece)
                self._skip = 0 if self._left else 2
                content.append(piece)
            else:
                line, found, after = rest.partition(b"\r\n")
                if not found:
                    if len(rest) > _MAX_LINE:
                        raise MalformedSource(self._path, "a chunk without a size")
                    break
                self._left = _hexadecimal(line.partition(b";")[0].strip(), self._path)
                self.done = self._left == 0
                rest = after
        self._rest = rest
        return b"".join(content)


def parse_head(head: bytes, path: str | Path) -> tuple[int, dict[bytes, bytes]]:
    """The status and the headers, names in lower case."""
    first, *lines = head.split(b"\r\n")
    words = first.split(None, 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
        raise MalformedSource(path, f"not HTTP: {first[:60]!r}")
    headers = {}
    for line in lines:
        name, found, value = line.partition(b":")
        if found:
            headers[name.strip().lower()] = value.strip()
    return int(words[1][:4]), headers


def _decimal(value: bytes, path: str | Path) -> int:
    if not value.isdigit() or len(value) > 12:
        raise MalformedSource(path, f"not a length: {value[:40]!r}")
    return int(value)


def _hexadecimal(value: bytes, path: str | Path) -> int:
    try:
        if 0 < len(value) <= 8 and value.isalnum():
            return int(value, 16)
    except ValueError:
        pass  # said below
    raise MalformedSource(path, f"not the size of a chunk: {value[:40]!r}")


class HttpConnection:
    """One connection; asks, and asks again over the same one while the other side allows."""

    def __init__(self, path: Path, timeout_s: float) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._socket: socket.socket | None = None
        self._body: Body | None = None

    def get(self, target: str, limit: int) -> tuple[int, bytes]:
        """Status and content; raises when that is larger than `limit` or comes too late."""
        return self._exchange(target, limit, None)

    def post(self, target: str, content: bytes, limit: int) -> tuple[int, bytes]:
        """Status and answer of a request that changes something; `content` is JSON, or empty."""
        return self._exchange(target, limit, content)

    def _exchange(self, target: str, limit: int, sent: bytes | None) -> tuple[int, bytes]:
        try:
            return self._read_answer(target, limit, sent)
        except SourceError:
            self.close()  # what is still to come of this answer is not the next one's
            raise

    def _read_answer(self, target: str, limit: int, sent: bytes | None) -> tuple[int, bytes]:
        deadline = Deadline(self._path, self._timeout_s)
        body, content = self._ask(target, deadline, sent)
        pieces = [body.feed(content)]
        size = len(pieces[0])
        while size <= limit and not body.done:
            data = self._receive(deadline)
            if not data:
                if body.keeps:
                    raise MalformedSource(self._path, "the answer ends too early")
                break
            pieces.append(body.feed(data))
            size += len(pieces[-1])
        if size > limit:
            raise MalformedSource(self._path, f"an answer of more than {limit} bytes")
        if not body.keeps:
            self.close()
        return body.status, b"".join(pieces)

    def follow(self, target: str) -> bytes:
        """Begin an endless answer; what of it has come already. Then `read_available`."""
        body, content = self._ask(target, Deadline(self._path, self._timeout_s))
        if body.status != 200:
            self.close()
            raise status_error(self._path, target, body.status)
        assert self._socket is not None
        self._socket.setblocking(False)
        self._body = body
        return body.feed(content)

    def read_available(self, limit: int) -> bytes:
        """Return the bytes that have arrived, without waiting; raises when the answer has ended."""
        assert self._socket is not None
        assert self._body is not None
        pieces = []
        size = 0
        while size < limit:
            try:
                data = self._socket.recv(_RECEIVE)
            except BlockingIOError:
                break
            except OSError as error:
                raise source_error(self._path, error) from error
            if not data or self._body.done:
                raise SourceError(self._path, "the daemon ended the connection")
            pieces.append(self._body.feed(data))
            size += len(data)
        return b"".join(pieces)

    def close(self) -> None:
        """Let go of it; the next request connects again."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _ask(
        self, target: str, deadline: Deadline, sent: bytes | None = None
    ) -> tuple[Body, bytes]:
        """Send a request and read the head of its answer, and what came with it."""
        if self._socket is None:
            self._socket = connect(self._path, deadline)
        try:
            self._socket.settimeout(deadline.left())
            self._socket.sendall(_request(target, sent))
        except TimeoutError:
            raise deadline.missed() from None
        except OSError as error:
            raise source_error(self._path, error) from error
        head = b""
        while b"\r\n\r\n" not in head:
            data = self._receive(deadline)
            if not data or len(head) > _MAX_HEAD:
                raise MalformedSource(self._path, "no HTTP answer")
            head += data
        head, _, content = head.partition(b"\r\n\r\n")
        return Body(self._path, head), content

    def _receive(self, deadline: Deadline) -> bytes:
        assert self._socket is not None
        try:
            self._socket.settimeout(deadline.left())
            return self._socket.recv(_RECEIVE)
        except TimeoutError:
            raise deadline.missed() from None
        except OSError as error:
            raise source_error(self._path, error) from error


def _request(target: str, sent: bytes | None) -> bytes:
    head = f"{target} HTTP/1.1\r\nHost: node\r\nUser-Agent: nodescope\r\n"
    if sent is None:
        return f"GET {head}\r\n".encode()
    kind = "Content-Type: application/json\r\n" if sent else ""
    return f"POST {head}{kind}Content-Length: {len(sent)}\r\n\r\n".encode() + sent


def status_error(path: Path, target: str, status: int) -> SourceError:
    """Return the error that a status other than success means for us."""
    reason = f"{target.partition('?')[0]}: HTTP status {status}"
    if status in (401, 403):
        return SourceDenied(path, reason)
    return SourceError(path, reason)
