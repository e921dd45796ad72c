from __future__ import annotations

import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jeepney.wrappers import DBusAddress, new_signal
from tests.waiting import wait_for

from nodescope.errors import (
    MalformedSource,
    SourceAbsent,
    SourceDenied,
    SourceError,
    UsageError,
)
from nodescope.sources.places import Places
from nodescope.sources.systemd.manager import Manager, escape_path, unescape_path
from nodescope.wire.dbus import Bus, Call

_CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path={socket}</listen>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/>
<allow own="*"/></policy></busconfig>
"""
_DAEMON = "org.freedesktop.DBus"
_PATH = "/org/freedesktop/DBus"


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A real bus with nobody on it."""
    path = tmp_path / "bus"
    config = tmp_path / "bus.conf"
    config.write_text(_CONFIG.format(socket=path))
    daemon = subprocess.Popen(["dbus-daemon", f"--config-file={config}", "--nofork"])
    try:
        wait_for(path.exists, "the bus listens", process=daemon)
        yield f"unix:path={path}"
    finally:
        daemon.kill()
        daemon.wait(60)


@pytest.mark.debian("dbus")
@pytest.mark.live
@pytest.mark.beside
def test_calls_are_answered_and_errors_are_ours(address: str) -> None:
    bus = Bus(address, _DAEMON)
    (names,) = bus.call(Call(_PATH, _DAEMON, "ListNames"))
    assert _DAEMON in names
    with pytest.raises(SourceError, match="NoSuchMethod"):
        bus.call(Call(_PATH, _DAEMON, "NoSuchMethod"))
    first, second = bus.call_all(
        [Call(_PATH, _DAEMON, "GetId"), Call(_PATH, _DAEMON, "NameHasOwner", "s", ("x.y",))]
    )
    assert second == (False,)
    assert not isinstance(first, SourceError)
    assert bus.peer_pid is not None
    bus.close()


@pytest.mark.debian("dbus")
@pytest.mark.live
@pytest.mark.beside
def test_signals_are_collected_and_repetitions_dropped(address: str) -> None:
    bus = Bus(address, _DAEMON)
    bus.match("type='signal',interface='org.freedesktop.DBus.Properties'")
    command = [
        *("dbus-send", f"--bus={address}", "--type=signal", "/x"),
        *("org.freedesktop.DBus.Properties.PropertiesChanged", "string:an.interface", "int32:1"),
    ]
    subprocess.run(command, check=True)
    told: list[tuple[Any, ...]] = []

    def look() -> bool:
        signals = bus.take_signals()  # the bus itself greets us with one, too
        told.extend(each.body for each in signals if each.member == "PropertiesChanged")
        return bool(told)

    wait_for(look, "the signal came")
    about = DBusAddress("/x", interface="org.freedesktop.DBus.Properties")
    for serial, (name, value) in enumerate([("a", 1), ("b", 1), ("a", 1), ("b", 2), ("a", 1)], 1):
        said = new_signal(about, "PropertiesChanged", "si", (name, value))
        bus._keep(said.serialise(serial=serial))
    repeated = [signal.body for signal in bus.take_signals()]
    bus.close()
    assert told == [("an.interface", 1)]
    assert repeated == [("a", 1), ("b", 1), ("b", 2)]


@pytest.mark.debian("dbus")
@pytest.mark.live
@pytest.mark.beside
def test_a_bus_without_systemd_is_no_systemd(address: str) -> None:
    with pytest.raises(SourceAbsent, match="no systemd on this bus"):
        Manager.open(Places(systemd_bus=address))


def test_no_bus_is_absent(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent):
        Bus(f"unix:path={tmp_path}/nowhere", _DAEMON)
    with pytest.raises(SourceAbsent, match="no bus here"):
        Manager.open(Places(root=tmp_path))


@pytest.mark.parametrize("address", ["", "nonsense", "tcp:host=x,port=1", "unix:tmpdir=/x"])
def test_what_is_no_address_is_said_to_be_none(address: str) -> None:
    with pytest.raises(UsageError, match="not an address of D-Bus"):
        Bus(address, _DAEMON)


def _serve(path: Path, *answers: bytes) -> threading.Thread:
    """Somebody who answers the greeting, then the first call, as told; then he hangs up."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen(1)

    def speak() -> None:
        with listening, listening.accept()[0] as peer:
            for said, answer in zip((b"AUTH", b"Hello"), answers, strict=False):
                heard = b""
                while said not in heard:
                    heard += peer.recv(4096)
                peer.sendall(answer)

    thread = threading.Thread(target=speak, daemon=True)
    thread.start()
    return thread


_OK = b"OK 1234\r\n"


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ((b"REJECTED EXTERNAL\r\n",), SourceDenied),
        ((b"x" * 9000,), SourceDenied),
        ((), (SourceDenied, SourceAbsent)),
        ((_OK, b"this is no message of D-Bus at all, but long enough"), MalformedSource),
        ((_OK, b"l\x02\0\x01" + struct.pack("<III", 1 << 31, 1, 8) + bytes(8)), MalformedSource),
        ((_OK, b"l\x02\0\x01" + struct.pack("<III", 4, 1, 8) + b"\xff" * 12), MalformedSource),
        ((_OK,), SourceError),
    ],
)
def test_whoever_answers_nonsense_is_told_apart(
    tmp_path: Path, answers: tuple[bytes, ...], error: type[Exception]
) -> None:
    thread = _serve(tmp_path / "bus", *answers)
    with pytest.raises(error):
        Bus(f"unix:path={tmp_path}/bus", _DAEMON)
    thread.join(60)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("crash.service", "crash_2eservice"),
        ("getty@tty1.service", "getty_40tty1_2eservice"),
        ("9lives.service", "_39lives_2eservice"),
        ("ü-x.mount", "_c3_bc_2dx_2emount"),
        ("dev-disk-by\\x2duuid.swap", "dev_2ddisk_2dby_5cx2duuid_2eswap"),
    ],
)
def test_names_of_units_in_paths(name: str, path: str) -> None:
    assert escape_path(name) == path
    assert unescape_path(path) == name
