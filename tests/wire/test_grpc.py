"""gRPC by hand, spoken to by somebody who cannot be trusted."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.sources.containers.daemons import FakeContainerd, frame, listening, message
from tests.waiting import wait_for

from nodescope.errors import MalformedSource, SourceError
from nodescope.wire.grpc import GrpcConnection, _string

LONG_S = 60.0
LIMIT = 1 << 16


def saying(*frames: bytes) -> Callable[[socket.socket], None]:
    def talk(connection: socket.socket) -> None:
        connection.recv(65536)
        for each in frames:
            connection.sendall(each)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass

    return talk


def call(path: Path, seconds: float = LONG_S) -> bytes | None:
    connection = GrpcConnection(path, seconds, LIMIT)
    try:
        return connection.call("/a.B/C", b"question", {"containerd-namespace": "x" * 300})
    finally:
        connection.close()


def test_an_answer_in_many_frames_with_others_between(tmp_path: Path) -> None:
    answer = message(b"z" * 3000)
    frames = [
        frame(4, 0, 0, b""),
        frame(1, 4, 1, b"\x88"),
        frame(0, 0, 1, answer[:100]),
        frame(6, 0, 0, b"12345678"),
        frame(0, 8, 1, b"\x04" + answer[100:] + b"\0" * 4),  # padded
        frame(99, 0, 0, b"of a kind not known"),
        frame(0, 0, 77, b"of a stream not known"),
        frame(1, 5, 1, b"\x88"),
    ]
    with listening(tmp_path / "s", saying(b"".join(frames))):
        assert call(tmp_path / "s") == b"z" * 3000


def test_a_refused_call_is_none(tmp_path: Path) -> None:
    for number, refusal in enumerate((frame(1, 5, 1, b"\x88"), frame(3, 0, 1, b"\0\0\0\7"))):
        path = tmp_path / str(number)
        with listening(path, saying(refusal)):
            assert call(path) is None


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\xff" * 9,
        frame(7, 0, 0, b"\0" * 8),
        frame(0, 0, 1, message(b"x")[:4]),
        b"".join(frame(0, 0, 1, b"\0" * 10_000) for _ in range(8)),
        frame(0, 1, 1, b"\1\0\0\0\1x"),
        frame(0, 1, 1, b"\0\xff\xff\xff\xffx"),
    ],
)
def test_what_is_no_answer_is_an_error_of_ours(tmp_path: Path, said: bytes) -> None:
    with listening(tmp_path / "s", saying(said)), pytest.raises(SourceError):
        call(tmp_path / "s")


def test_a_daemon_that_hangs_is_not_waited_for(tmp_path: Path) -> None:
    def talk(connection: socket.socket) -> None:
        while connection.recv(65536):
            pass

    with listening(tmp_path / "s", talk), pytest.raises(SourceError, match="no answer within"):
        call(tmp_path / "s", seconds=0.2)


def test_calls_while_a_stream_goes_on(tmp_path: Path) -> None:
    fake = FakeContainerd({"/a.B/C": b"answer"})
    with listening(tmp_path / "s", fake.talk):
        connection = GrpcConnection(tmp_path / "s", LONG_S, LIMIT)
        stream = connection.follow("/x.Events/Subscribe", b"", {})
        taken: list[bytes] = []
        for round_ in range(3):
            assert connection.call("/a.B/C", b"", {}) == b"answer"
            said = [b"%d-%d" % (round_, each) for each in range(5)]
            fake.say(*said)
            for each in said:
                if not taken:
                    taken = wait_for(lambda: connection.take(stream, LIMIT), "an event")
                assert taken.pop(0) == each
        connection.close()


def test_more_than_a_window_of_data_flows(tmp_path: Path) -> None:
    """Windows are refilled, or a daemon that keeps to them would stop."""
    sent = 5 << 20
    acknowledged: list[int] = []

    def talk(connection: socket.socket) -> None:
        connection.recv(65536)
        piece = message(b"x" * 9995)
        for _ in range(sent // len(piece)):
            connection.sendall(frame(0, 0, 1, piece))
        acknowledged.append(len(connection.recv(65536)))

    with listening(tmp_path / "s", talk):
        connection = GrpcConnection(tmp_path / "s", LONG_S, LIMIT)
        stream = connection.follow("/x.Events/Subscribe", b"", {})
        count = 0
        while count < sent // 10_000:
            count += len(connection.take(stream, 4096))
        wait_for(lambda: acknowledged, "the windows were refilled")
        connection.close()


def test_long_strings_have_long_lengths() -> None:
    assert _string("x" * 126)[:1] == b"\x7e"
    assert _string("x" * 127)[:2] == b"\x7f\x00"
    assert _string("x" * 300)[:3] == b"\x7f\xad\x01"


def test_a_malformed_answer_does_not_outlive_its_connection(tmp_path: Path) -> None:
    with listening(tmp_path / "s", saying(b"\xff" * 20)):
        connection = GrpcConnection(tmp_path / "s", LONG_S, LIMIT)
        for _ in range(2):
            with pytest.raises(MalformedSource):
                connection.call("/a.B/C", b"", {})
            connection.close()
