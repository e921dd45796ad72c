from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.waiting import wait_for

from nodescope.recorder.notify import Notifier


def _listen(address: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listener.bind(address)
    listener.setblocking(False)
    return listener


@pytest.fixture(params=["path", "abstract"])
def supervisor(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[socket.socket, str]]:
    """A real datagram socket, and what systemd would put into NOTIFY_SOCKET for it."""
    name = str(tmp_path / "notify") if request.param == "path" else f"@nodescope-{os.getpid()}"
    listener = _listen(name.replace("@", "\0"))
    with listener:
        yield listener, name


def _received(listener: socket.socket) -> list[bytes]:
    messages = []
    while True:
        try:
            messages.append(listener.recv(4096))
        except BlockingIOError:
            return messages


def test_a_whole_life_is_told(supervisor: tuple[socket.socket, str]) -> None:
    listener, name = supervisor
    notifier = Notifier({"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "30000000"})
    notifier.ready("recording 2 cores")
    notifier.alive()
    notifier.status("97 Hz")
    notifier.stopping("sealing")
    notifier.close()
    assert _received(listener) == [
        b"READY=1\nSTATUS=recording 2 cores",
        b"WATCHDOG=1",
        b"STATUS=97 Hz",
        b"STOPPING=1\nSTATUS=sealing",
    ]


def test_no_watchdog_no_pings(supervisor: tuple[socket.socket, str]) -> None:
    listener, name = supervisor
    notifier = Notifier({"NOTIFY_SOCKET": name})
    notifier.alive()
    notifier.close()
    assert _received(listener) == []


def test_a_line_break_in_a_status_cannot_become_a_variable(
    supervisor: tuple[socket.socket, str],
) -> None:
    listener, name = supervisor
    notifier = Notifier({"NOTIFY_SOCKET": name})
    notifier.status("disk full\nMAINPID=1")
    notifier.close()
    assert _received(listener) == [b"STATUS=disk full MAINPID=1"]


def test_nothing_is_opened_without_a_supervisor(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> socket.socket:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    notifier = Notifier({})
    notifier.ready("x")
    notifier.alive()
    notifier.stopping("x")
    notifier.close()


def test_a_supervisor_that_went_away_is_no_error(tmp_path: Path) -> None:
    path = str(tmp_path / "notify")
    notifier = Notifier({"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "1000"})
    notifier.ready("nobody listens")
    listener = _listen(path)
    with listener:
        notifier.status("now somebody does")
        assert _received(listener) == [b"STATUS=now somebody does"]
    notifier.alive()
    notifier.close()
    notifier.status("after close")


def test_a_full_queue_does_not_block(tmp_path: Path) -> None:
    path = str(tmp_path / "notify")
    with _listen(path) as listener:
        notifier = Notifier({"NOTIFY_SOCKET": path})
        for number in range(5000):  # net.unix.max_dgram_qlen is 512 at most by default
            notifier.status(str(number))
        notifier.close()
        assert 0 < len(_received(listener)) < 5000


@pytest.mark.parametrize(
    ("variables", "interval_ns"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "30000000"}, 15_000_000_000),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "42"}, 15_000_000_000),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "43"}, None),
    ],
)
def test_watchdog_interval(variables: dict[str, str], interval_ns: int | None) -> None:
    assert Notifier(variables, pid=42).watchdog_interval_ns == interval_ns


@pytest.mark.parametrize(
    ("microseconds", "pace_ns"),
    [
        (None, 2_000_000_000),
        ("60000000", 2_000_000_000),  # our own unit's: we say so sooner anyway
        ("3000000", 1_500_000_000),
        ("1", 100_000_000),
    ],
)
def test_we_say_that_we_live_twice_as_often_as_asked(
    microseconds: str | None, pace_ns: int
) -> None:
    variables = {} if microseconds is None else {"WATCHDOG_USEC": microseconds}
    assert Notifier(variables).pace_ns(2_000_000_000) == pace_ns


@pytest.mark.live
@pytest.mark.beside
def test_the_recorder_tells_its_supervisor(tmp_path: Path) -> None:
    """A real recorder, with whatever rights we have: it is ready, lives, and says it stops."""
    path, archive = str(tmp_path / "notify"), str(tmp_path / "archive")
    command = [sys.executable, "-m", "nodescope.cli.main", "record", "--archive", archive]
    said: list[str] = []
    with _listen(path) as listener:

        def hear(line: str, times: int = 1) -> None:
            wanted = said.count(line) + times

            def heard() -> bool:
                for message in _received(listener):
                    said.extend(message.decode().splitlines())
                return said.count(line) >= wanted

            wait_for(heard, f"{line} {times} times", 120, process=recorder)

        environment = os.environ | {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "1000000"}
        with subprocess.Popen([*command, "--without", "all"], env=environment) as recorder:
            try:
                hear("READY=1")
                assert "STOPPING=1" not in said
                hear("WATCHDOG=1", times=4)  # one comes with being ready, the rest from the loop
                recorder.send_signal(signal.SIGTERM)
                hear("STOPPING=1")
                assert recorder.wait(90) == 0
            finally:
                recorder.kill()
    assert said.index("READY=1") < said.index("WATCHDOG=1")
    assert said.count("READY=1") == said.count("STOPPING=1") == 1


def test_the_process_environment_is_the_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = str(tmp_path / "notify")
    monkeypatch.setenv("NOTIFY_SOCKET", path)
    monkeypatch.setenv("WATCHDOG_USEC", "2000000")
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    with _listen(path) as listener:
        notifier = Notifier()
        notifier.alive()
        notifier.close()
        assert _received(listener) == [b"WATCHDOG=1"]
