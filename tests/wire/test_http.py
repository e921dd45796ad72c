"""HTTP over a Unix socket, spoken by somebody who cannot be trusted."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.sources.containers.daemons import STREAM, chunked, http_answer, listening
from tests.waiting import wait_for

from nodescope.errors import MalformedSource, SourceAbsent, SourceDenied, SourceError
from nodescope.wire.http import Body, HttpConnection

SOON_S = 0.2  # a time-out that is waited for
LONG_S = 60.0


def saying(*pieces: bytes) -> Callable[[socket.socket], None]:
    def talk(connection: socket.socket) -> None:
        connection.recv(65536)
        for piece in pieces:
            connection.sendall(piece)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass

    return talk


def get(path: Path, limit: int = 1000, seconds: float = LONG_S) -> tuple[int, bytes]:
    connection = HttpConnection(path, seconds)
    try:
        return connection.get("/x", limit)
    finally:
        connection.close()


@pytest.mark.parametrize(
    "pieces",
    [
        (http_answer(b"hello"),),
        (b"HTTP/1.1 200 OK\r\nContent-", b"Length: 5\r\n\r\nhel", b"lo"),
        (STREAM, chunked(b"he"), chunked(b"llo"), b"0\r\n\r\n"),
        (STREAM, b"2;name=x\r\nh", b"e\r", b"\n3\r\nllo\r\n", b"0\r\n\r\n"),
        (b"HTTP/1.0 200 OK\r\n\r\nhel", b"lo"),
    ],
)
def test_an_answer_however_it_comes(tmp_path: Path, pieces: tuple[bytes, ...]) -> None:
    with listening(tmp_path / "s", saying(*pieces)):
        assert get(tmp_path / "s") == (200, b"hello")


def test_one_connection_serves_several_questions(tmp_path: Path) -> None:
    made: list[int] = []

    def talk(connection: socket.socket) -> None:
        made.append(1)
        while connection.recv(65536):
            connection.sendall(http_answer(b"yes"))

    with listening(tmp_path / "s", talk):
        connection = HttpConnection(tmp_path / "s", LONG_S)
        assert [connection.get("/x", 100)[1] for _ in range(3)] == [b"yes"] * 3
        connection.close()
    assert len(made) == 1


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\0\1\2\3" * 100,
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort",
        STREAM + b"zz\r\nhello\r\n",
        STREAM + b"-5\r\nhello\r\n",
        STREAM + b"fffffffff\r\nhello",
        STREAM + b"x" * 5000,
        STREAM + b"5\r\nhel",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000,
        http_answer(b"x" * 2000),
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 200_000,
    ],
)
def test_what_is_no_answer_is_malformed(tmp_path: Path, said: bytes) -> None:
    with listening(tmp_path / "s", saying(said)), pytest.raises(MalformedSource):
        get(tmp_path / "s")


def test_a_daemon_that_hangs_is_not_waited_for(tmp_path: Path) -> None:
    def talk(connection: socket.socket) -> None:
        while connection.recv(65536):
            pass

    with (
        listening(tmp_path / "s", talk),
        pytest.raises(SourceError, match="no answer within"),
    ):
        get(tmp_path / "s", seconds=SOON_S)


def test_a_daemon_that_trickles_is_not_waited_for_either(tmp_path: Path) -> None:
    def talk(connection: socket.socket) -> None:
        connection.sendall(STREAM)
        while True:
            connection.sendall(chunked(b"x"))

    with listening(tmp_path / "s", talk), pytest.raises(SourceError):
        get(tmp_path / "s", limit=1 << 40, seconds=SOON_S)


def test_sockets_that_are_not_there_or_not_listened_to(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent):
        get(tmp_path / "none")
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(str(tmp_path / "dead"))
    server.close()
    with pytest.raises(SourceAbsent, match="nobody listens"):
        get(tmp_path / "dead")


def test_a_path_longer_than_a_socket_address(tmp_path: Path) -> None:
    folder = tmp_path / ("d" * 100)
    folder.mkdir()
    with listening(tmp_path / "s", saying(http_answer(b"far"))):
        (tmp_path / "s").rename(folder / "s")
        assert get(folder / "s") == (200, b"far")


def test_an_endless_answer_is_read_as_it_comes(tmp_path: Path) -> None:
    opened: list[socket.socket] = []

    def talk(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(STREAM)
        opened.append(connection)
        connection.recv(1)

    with listening(tmp_path / "s", talk):
        connection = HttpConnection(tmp_path / "s", LONG_S)
        connection.follow("/events")
        assert connection.read_available(1000) == b""
        wait_for(lambda: opened, "the stream is open")
        opened[0].sendall(chunked(b"one"))
        assert wait_for(lambda: connection.read_available(1000), "a chunk") == b"one"
        opened[0].shutdown(socket.SHUT_RDWR)
        with pytest.raises(SourceError, match="ended the connection"):
            wait_for(lambda: connection.read_available(1000), "never")
        connection.close()


def test_a_stream_that_is_refused(tmp_path: Path) -> None:
    for status, kind in ((403, SourceDenied), (500, SourceError)):
        path = tmp_path / str(status)
        with listening(path, saying(http_answer(b"no", status))), pytest.raises(kind):
            HttpConnection(path, LONG_S).follow("/events")


def test_chunks_split_at_every_byte() -> None:
    content = chunked(b"abc") + chunked(b"d" * 20) + b"0\r\n\r\n"
    body = Body(Path("x"), b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked")
    taken = b"".join(body.feed(content[at : at + 1]) for at in range(len(content)))
    assert taken == b"abc" + b"d" * 20
    assert body.done


def test_a_request_that_changes_something_carries_its_content(tmp_path: Path) -> None:
    asked: list[bytes] = []

    def talk(connection: socket.socket) -> None:
        asked.append(connection.recv(65536))
        connection.sendall(http_answer(b"done", 201))

    with listening(tmp_path / "s", talk):
        connection = HttpConnection(tmp_path / "s", LONG_S)
        try:
            assert connection.post("/update", b'{"a":1}', 100) == (201, b"done")
        finally:
            connection.close()
    (request,) = asked
    assert request.startswith(b"POST /update HTTP/1.1\r\n")
    assert b"Content-Type: application/json\r\nContent-Length: 7\r\n\r\n" in request
    assert request.endswith(b'{"a":1}')
