"""Units of a real systemd: what is recorded of them, and what an audit says."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.recorder.observers.archived import keep
from tests.systemd_guest import Guest, skip_without_namespaces
from tests.waiting import wait_for

from nodescope.archive.reader import Archive
from nodescope.errors import NodescopeError
from nodescope.ingest.observation import Observation
from nodescope.recorder.observer import Setting
from nodescope.recorder.observers import catalogue
from nodescope.recorder.observers.units import Units, make
from nodescope.records.event import Event
from nodescope.sources.places import Places
from nodescope.sources.systemd.survey import read_survey

pytestmark = [
    pytest.mark.root,
    pytest.mark.live,
    pytest.mark.beside,
    pytest.mark.slow,
    pytest.mark.debian("systemd", "dbus", "iproute2"),
    pytest.mark.timeout(600),
]

_RESTART = "5eb03494b6584870a536b337290809b3"
_EXIT = "98e322203f7a4ed290d09fe03c09fe15"
_CIRCLES = (("circle-a.service", "circle-b.service"), ("circle-c.service", "circle-d.service"))
_SLEEPS = "[Service]\nExecStart=/bin/sleep infinity\n"
_ID = "3f2a" * 16
_UNITS = {
    "crashing.service": "[Service]\nExecStart=/bin/sh -c 'exit 3'\nRestart=always\nRestartSec=2\n",
    # more often than systemd's limit allows by default, and so quicker to watch
    "quick.service": "[Unit]\nStartLimitIntervalSec=0\n"
    "[Service]\nExecStart=/bin/sh -c 'exit 3'\nRestart=always\nRestartSec=300ms\n",
    "supervisor.service": (
        "[Service]\n"
        "ExecStart=/bin/sh -c 'while :; do sh -c \"sleep 1; exit 4\"; done'\n"
    ),
    # as one does whose containers are a daemon's: no child of it fails
    "manager.service": (
        "[Service]\n"
        f"ExecStart=/bin/sh -c 'while :; do echo Removing container {_ID}; sleep 2; "
        "echo Agent exited with code 6; done'\n"
    ),
    "base.service": "[Service]\nType=oneshot\nExecStart=/bin/false\n",
    "dependant.service": f"[Unit]\nRequires=base.service\nAfter=base.service\n{_SLEEPS}",
    "conditioned.service": f"[Unit]\nConditionPathExists=/nowhere/at/all\n{_SLEEPS}",
    "healthy.service": _SLEEPS,
    # systemd drops the start of one of the two
    "circle-a.service": f"[Unit]\nAfter=circle-b.service\n{_SLEEPS}",
    "circle-b.service": f"[Unit]\nAfter=circle-a.service\n{_SLEEPS}",
    # and here, where the circle leads through a target
    "circle-c.service": f"[Unit]\nAfter=circle.target\n{_SLEEPS}",
    "circle-d.service": f"[Unit]\nAfter=circle-c.service\n{_SLEEPS}",
    "circle.target": "[Unit]\nAfter=circle-d.service\n",
    # restarted once, then told not to be; too often; and stopped by hand after a restart
    "prevented.service": "[Service]\nRestart=on-failure\nRestartPreventExitStatus=9\n"
    "ExecStart=/bin/sh -c 'test -e /run/prevented && exit 9; touch /run/prevented; exit 1'\n",
    "limited.service": "[Service]\nExecStart=/bin/sh -c 'exit 1'\nRestart=on-failure\n",
    "stubborn.service": "[Service]\nRestart=on-failure\n"
    "ExecStart=/bin/sh -c 'test -e /run/stubborn || { touch /run/stubborn; exit 1; }; "
    "trap \"exit 5\" TERM; touch /run/stubborn-runs; while :; do sleep 0.1; done'\n",
}  # fmt: skip
_OBSERVERS = ("units", "unit_insides", "unit_lines")
_INSTALL = "[Install]\nWantedBy=multi-user.target\n"
_VENDOR = "usr/lib/systemd/system"
_FILES = {
    "etc/systemd/system-preset/10-image.preset": "enable preset-only.service\n",
    # what is required is not left out of a circle
    "etc/systemd/system/multi-user.target.d/10.conf": "[Unit]\nRequires=circle.target\n",
    # a circle that nobody asks for at boot
    "etc/systemd/system/late.target": "[Unit]\nWants=late-a.service late-b.service\n",
    "etc/systemd/system/late-a.service": f"[Unit]\nAfter=late-b.service\n{_SLEEPS}",
    "etc/systemd/system/late-b.service": f"[Unit]\nAfter=late-a.service\n{_SLEEPS}",
    f"{_VENDOR}/preset-only.service": f"{_SLEEPS}{_INSTALL}",
    # no preset names them, and so `systemctl preset` enables them
    f"{_VENDOR}/default-only.service": f"{_SLEEPS}{_INSTALL}",
    f"{_VENDOR}/default-crash.service": "[Service]\nExecStart=/bin/sh -c 'exit 7'\n"
    f"Restart=always\nRestartSec=2\n{_INSTALL}",
    f"{_VENDOR}/default-works.service": "[Service]\n"
    f"ExecStart=/bin/sh -c 'exec 9>/run/works.lock; exec sleep infinity'\n{_INSTALL}",
}
_BY_PRESET = [Path(name).name for name in _FILES if name.startswith(_VENDOR)]


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    skip_without_namespaces()
    guest = Guest(tmp_path_factory.mktemp("guest"), _UNITS, _FILES)
    try:
        guest.wait_for(lambda: _is_up(guest), "everything that can start has started")
        guest.run("systemctl", "preset", *_BY_PRESET)
        guest.run("systemctl", "start", "--no-block", *_BY_PRESET)
        for unit in ("crashing.service", "default-crash.service"):
            guest.wait_for(partial(_has_restarted, guest, unit), f"{unit} restarted three times")
        guest.wait_for((guest.root / "run/stubborn-runs").exists, "the stubborn unit runs again")
        guest.run("systemctl", "stop", "stubborn.service")
        yield guest
    finally:
        guest.stop()


def _is_up(guest: Guest) -> bool:
    """The target is ordered after all it wants: then each was tried. `preset` reloads after."""
    return guest.run("systemctl", "is-active", "multi-user.target", check=False).returncode == 0


def _restarts(guest: Guest, unit: str) -> list[str]:
    """The runs after which systemd restarted a unit, by its own journal."""
    return [each["INVOCATION_ID"] for each in guest.entries(unit, _RESTART)]


def _has_restarted(guest: Guest, unit: str) -> bool:
    return len(_restarts(guest, unit)) >= 3


def _audit(guest: Guest, *options: str) -> tuple[int, dict[str, dict[str, object]]]:
    where = ["--systemd-bus", guest.bus, "--journal", str(guest.journal)]  # the last one counts
    done = subprocess.run(
        [sys.executable, "-m", "nodescope.cli.main", "audit", "--json", *where, *options],
        check=False,
        capture_output=True,
        timeout=300,
    )
    assert done.returncode in (0, 1), done.stderr.decode()
    findings = json.loads(done.stdout)
    return done.returncode, {each["name"]: each for each in findings if each["kind"] == "unit"}


def test_an_audit_says_of_each_unit_what_is_wrong_with_it(guest: Guest) -> None:
    code, found = _audit(guest, "--watch", "30s")
    ours = {*_UNITS, *_BY_PRESET}
    assert code == 1
    pair, wide = (_deleted(guest, *circle) for circle in _CIRCLES)
    assert {name: each["verdict"] for name, each in found.items() if name in ours} == {
        "crashing.service": "looping",
        "quick.service": "looping",
        "supervisor.service": "hidden_loop",
        "manager.service": "hidden_loop",
        "base.service": "failing",
        "dependant.service": "held_back",
        "conditioned.service": "held_back",
        "preset-only.service": "unused",
        "default-only.service": "unused",
        "default-crash.service": "looping",
        pair: "held_back",
        wide: "held_back",
        "prevented.service": "failing",
        "limited.service": "failing",
        "stubborn.service": "failing",
    }
    assert "dbus.service" not in found
    assert "exit code 3" in str(found["crashing.service"]["reason"])
    assert "exit code 4" in str(found["supervisor.service"]["reason"])
    assert "base.service" in str(found["dependant.service"]["reason"])
    assert "/nowhere/at/all" in str(found["conditioned.service"]["reason"])
    assert "10-image.preset:1" in str(found["preset-only.service"]["reason"])
    by_default = "nothing but the presets' default asks for it"
    assert by_default in str(found["default-crash.service"]["reason"])
    assert "circle-a.service after circle-b.service" in str(found[pair]["reason"])
    assert "circle.target after circle-d.service" in str(found[wide]["reason"])
    said = {name: str(found[f"{name}.service"]["reason"]) for name in _FAILED}
    assert said == _FAILED


_FAILED = {
    "prevented": "failed: ended with exit code 9",
    "limited": "failed, and systemd gave up: ended with exit code 1",
    "stubborn": "failed when it was stopped: ended with exit code 5",
}


def _deleted(guest: Guest, *circle: str) -> str:
    """Which unit of a circle systemd left out."""
    shown = guest.run("systemctl", "is-active", *circle, check=False).stdout.decode().split()
    (name,) = [unit for unit, state in zip(circle, shown, strict=True) if state == "inactive"]
    return name


def test_what_systemd_says_of_a_circle_is_an_event_and_an_answer(
    guest: Guest, tmp_path: Path
) -> None:
    """By its own line: nothing is known of the units' order without the bus."""
    places = Places(systemd_bus="unix:path=/nowhere/bus", journal=guest.journal)
    units = make(Setting(places, tmp_path))
    told: list[Event] = []

    def look() -> bool:
        said = units.observe(time.clock_gettime_ns(time.CLOCK_MONOTONIC))
        told.extend(event for event in said.events if event.kind == "unit_start_failed")
        return bool(told)

    try:
        look()
        guest.run("systemctl", "start", "late.target")
        guest.wait_for(look, "systemd said which one it left out", 60)
    finally:
        units.close()
    left_out = _deleted(guest, "late-a.service", "late-b.service")
    assert [(event.subject, event.message) for event in told] == [
        (left_out, "could not be started: ordering-cycle")
    ]
    survey = read_survey(Places(systemd_bus=guest.bus, journal=guest.journal))
    assert survey.units[left_out].why_not_started == "cycle_deleted"


def test_without_the_journal_an_audit_says_the_same_of_circles_and_limits(
    guest: Guest, tmp_path: Path
) -> None:
    _, found = _audit(guest, "--watch", "1s", "--journal", str(tmp_path / "nowhere"))
    for circle in _CIRCLES:
        assert found[_deleted(guest, *circle)]["verdict"] == "held_back"
    assert "gave up" in str(found["limited.service"]["reason"])
    for name in ("prevented", "stubborn"):
        assert "gave up" not in str(found[f"{name}.service"]["reason"])


def test_the_files_alone_tell_of_circles_and_of_defaults(guest: Guest, tmp_path: Path) -> None:
    """As of an image: nothing runs, and what is known is in the files."""
    image = tmp_path / "image"
    for relative in ("etc/systemd", "usr/lib/systemd/system"):
        shutil.copytree(guest.root / relative, image / relative, symlinks=True)
    done = subprocess.run(
        [sys.executable, "-m", "nodescope.cli.main", "audit", "--json", "--root", str(image)],
        check=False, capture_output=True, timeout=300,
    )  # fmt: skip
    ours = {*_UNITS, *_BY_PRESET}
    listed = [(each["name"], each["verdict"]) for each in json.loads(done.stdout)]
    assert ("healthy.service", "unasked") in listed  # no allow-list names it
    found = {name: verdict for name, verdict in listed if verdict != "unasked"}
    assert {name: verdict for name, verdict in found.items() if name in ours} == {
        "circle-a.service": "held_back",
        "circle-b.service": "held_back",
        "circle-c.service": "held_back",
        "circle-d.service": "held_back",
        "conditioned.service": "held_back",
        **dict.fromkeys(_BY_PRESET, "unused"),
    }


def test_a_recording_has_every_restart_with_its_time_and_exit_code(
    guest: Guest, tmp_path: Path
) -> None:
    archive = tmp_path / "archive"
    without = [name for name in catalogue.NAMES if name not in _OBSERVERS]
    log = tmp_path / "log"
    with open(log, "wb") as said:
        recorder = subprocess.Popen(
            [
                *(sys.executable, "-m", "nodescope.cli.main", "record", "--archive", str(archive)),
                *("--systemd-bus", guest.bus, "--journal", str(guest.journal)),
                *(option for name in without for option in ("--without", name)),
            ],
            stdout=said,
            stderr=said,
        )

    def is_recorded() -> bool:
        hidden = _recorded(archive, "unit_hidden_loop", "supervisor.service")
        logged = _recorded(archive, "unit_logs_ends", "manager.service")
        return len(_recorded(archive, "unit_restart")) >= 4 and bool(hidden and logged)

    try:
        what = "four restarts and the hidden loops are recorded"
        wait_for(is_recorded, what, 180, process=recorder, log=log)
    finally:
        recorder.send_signal(signal.SIGTERM)
        recorder.wait(120)
    assert recorder.returncode == 0, log.read_text()
    restarts = _recorded(archive, "unit_restart")
    details = [json.loads(event["details"]) for event in restarts]
    _check_restarts(guest, "crashing.service", details)
    ends = {e["INVOCATION_ID"]: e for e in guest.entries("crashing.service", _EXIT)}
    for event, detail in zip(restarts, details, strict=True):
        # RestartSec=2: a restart that is not well after the end of its run has a wrong time
        ended_us = int(ends[detail["invocation"]]["__MONOTONIC_TIMESTAMP"])
        assert event["time_ns"] // 1000 - ended_us > 500_000
    (logged,) = {event["subject"] for event in _recorded(archive, "unit_logs_ends", None)}
    said = json.loads(_recorded(archive, "unit_logs_ends", logged)[0]["details"])
    assert (logged, said["last_line"]) == ("manager.service", "Agent exited with code 6")
    assert f"Removing container {_ID}" in said["lines"]
    rows = _rows(archive)
    prefix = rows["crashing.service"]["cgroup"].removesuffix("/system.slice/crashing.service")
    told = [
        (event, json.loads(event["details"]))
        for event in _recorded(archive, "unit_hidden_loop", None)
    ]
    # another guest on this machine may have units of the same names
    ((loop, detail),) = [each for each in told if each[1]["cgroup"].startswith(f"{prefix}/")]
    assert loop["subject"] == "supervisor.service"
    assert "exit code 4" in loop["message"]
    assert detail["failed_ends"] >= 3
    assert f"{prefix}/init.scope" in Path(f"/proc/{guest.pid}/cgroup").read_text()
    assert rows["dependant.service"]["why_not_started"] == "dependency:base.service"
    assert rows["conditioned.service"]["why_not_started"].startswith("condition:")
    assert rows["healthy.service"]["why_not_started"] == "started"
    for circle in _CIRCLES:
        assert rows[_deleted(guest, *circle)]["why_not_started"] == "cycle_deleted"
    assert {name: rows[f"{name}.service"]["why_not_started"] for name in _FAILED} == {
        "prevented": "exec_failed:9",
        "limited": "start_limit",
        "stubborn": "exec_failed:5",
    }


def _recorded(
    archive: Path, kind: str, unit: str | None = "crashing.service"
) -> list[dict[str, Any]]:
    """Recorded events of a unit, or of any, with times of the monotonic clock."""
    try:
        return [
            event
            for segment in Archive.open(archive).segments()
            for event in segment.read("events").to_pylist()
            if event["kind"] == kind and unit in (None, event["subject"])
        ]
    except NodescopeError:
        return []  # nothing is written yet


def _rows(archive: Path) -> dict[str, dict[str, str]]:
    return {
        row["unit"]: row
        for segment in Archive.open(archive).segments()
        for row in segment.read("units").to_pylist()
    }


def _check_restarts(guest: Guest, unit: str, told: Sequence[Mapping[str, object]]) -> None:
    """Of the restarts between the first and the last that were told, none is missing or twice."""
    runs = [str(each["invocation"]) for each in told]
    guest.wait_for(lambda: runs[-1] in _restarts(guest, unit), "the journal has them, too")
    journalled = _restarts(guest, unit)
    first, last = journalled.index(runs[0]), journalled.index(runs[-1])
    assert runs == journalled[first : last + 1]
    assert [each["exit_kind"] for each in told] == ["exited"] * len(told)
    assert [each["exit_status"] for each in told] == [3] * len(told)


def _observe(units: Units) -> Iterator[Event]:
    for event in units.observe(time.clock_gettime_ns(time.CLOCK_MONOTONIC)).events:
        if event.kind == "unit_restart" and event.subject == "quick.service":
            yield event


@pytest.mark.parametrize("witness", ["bus", "journal", "both"])
def test_either_witness_will_do(guest: Guest, witness: str, tmp_path: Path) -> None:
    nowhere = "unix:path=/nowhere/bus"
    places = Places(
        systemd_bus=nowhere if witness == "journal" else guest.bus,
        journal=tmp_path / "nowhere" if witness == "bus" else guest.journal,
    )
    units = make(Setting(places, tmp_path))
    told: list[Event] = []

    def look() -> bool:
        told.extend(_observe(units))
        return len(told) >= 3

    try:
        guest.wait_for(look, f"the {witness} told of three restarts", 180)
    finally:
        units.close()
    _check_restarts(guest, "quick.service", [event.details.to_json() for event in told])


def test_a_unit_that_loops_already_is_told_once(guest: Guest, tmp_path: Path) -> None:
    """Its loop began before the recorder did; and the next recorder need not tell it again."""
    archive = tmp_path / "archive"
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    for loops in (1, 0):
        units = make(Setting(Places(systemd_bus=guest.bus, journal=guest.journal), archive))
        told: list[Event] = []

        def look(units: Units = units, told: list[Event] = told) -> bool:
            said = units.observe(time.clock_gettime_ns(time.CLOCK_MONOTONIC))
            told.extend(event for event in said.events if event.subject == "quick.service")
            return [event.kind for event in told].count("unit_restart") >= 5

        try:
            guest.wait_for(look, "five restarts were told", 180)
        finally:
            units.close()
        (first, *_) = [event for event in told if event.kind == "unit_restart"]
        found = [event for event in told if event.kind == "unit_loop"]
        assert [event.time_ns for event in found] == [first.time_ns] * loops
        now_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        keep(archive, Observation(events=told), now_ns, boot_id)


def test_a_journal_that_is_rotated_is_followed(guest: Guest, tmp_path: Path) -> None:
    places = Places(systemd_bus="unix:path=/nowhere/bus", journal=guest.journal)
    units = make(Setting(places, tmp_path))
    told: list[Event] = []

    def look(least: int) -> bool:
        told.extend(_observe(units))
        return len(told) >= least

    try:
        guest.wait_for(lambda: look(1), "a restart was told", 180)
        for _ in range(3):
            before = len(told)
            guest.run("journalctl", "--rotate")
            guest.run("journalctl", "--rotate")
            guest.wait_for(partial(look, before + 1), "one more was told", 180)
    finally:
        units.close()
    _check_restarts(guest, "quick.service", [event.details.to_json() for event in told])


def test_a_bus_that_goes_away_is_found_again(guest: Guest, tmp_path: Path) -> None:
    units = make(Setting(Places(systemd_bus=guest.bus, journal=tmp_path), tmp_path))
    told: list[Event] = []
    now = [time.clock_gettime_ns(time.CLOCK_MONOTONIC)]

    def look(least: int) -> bool:
        now[0] = max(now[0] + 31_000_000_000, time.clock_gettime_ns(time.CLOCK_MONOTONIC))
        try:
            observed = units.observe(now[0])
        except NodescopeError:
            return False  # the bus is not back yet
        told.extend(event for event in observed.events if event.kind == "unit_exit")
        return len(told) >= least

    try:
        units._since_us = 0  # the clock of this test runs ahead of the kernel's
        guest.wait_for(lambda: look(1), "an end was told", 180)
        guest.run("systemctl", "restart", "dbus.service")
        before = len(told)
        guest.wait_for(lambda: look(before + 2), "ends were told again", 180)
    finally:
        units.close()
    assert os.path.exists(f"/proc/{guest.pid}")
