"""`nodescope fix` from plan to undo, as a person types it, on a real systemd."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.remedy.node_state import differences, read_guest
from tests.systemd_guest import Guest, skip_without_namespaces

from nodescope.archive.layout import create_archive
from nodescope.recording.pending_marks import read_waiting
from nodescope.records.event_details import FixStepDetails
from nodescope.remedy.journal import FIXES_FOLDER
from nodescope.remedy.node_lock import locked_node

pytestmark = [
    pytest.mark.root,
    pytest.mark.live,
    pytest.mark.beside,
    pytest.mark.slow,
    pytest.mark.debian("systemd", "dbus", "iproute2"),
    pytest.mark.timeout(600),
]

_UNIT = "looping-agent.service"
_AGENT = (
    "[Unit]\nStartLimitIntervalSec=0\n[Service]\nExecStart=/bin/sh -c 'exit 3'\n"
    "Restart=always\nRestartSec=500ms\n[Install]\nWantedBy=multi-user.target\n"
)


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    skip_without_namespaces()
    guest = Guest(tmp_path_factory.mktemp("guest"), {_UNIT: _AGENT}, {})
    try:
        guest.wait_for(lambda: _is_booted(guest), "the guest has booted")
        # A plan rests on a certain run of a unit, unless the unit is known to loop.
        guest.wait_for(lambda: _restarts(guest) >= 5, "the agent is known to loop")
        yield guest
    finally:
        guest.stop()


def _is_booted(guest: Guest) -> bool:
    shown = guest.run("systemctl", "is-system-running", check=False)
    return shown.stdout.strip() in (b"running", b"degraded")


def _restarts(guest: Guest) -> int:
    shown = guest.run("systemctl", "show", "--property=NRestarts", "--value", _UNIT)
    return int(shown.stdout or b"0")


def _fix(guest: Guest, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nodescope", "fix", *arguments, "--systemd-bus", guest.bus]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=200
    )


def test_a_looping_unit_is_stopped_for_good_and_comes_back_by_undo(
    guest: Guest, tmp_path: Path
) -> None:
    before = read_guest(guest)
    made = _fix(guest, "plan", "--unit", _UNIT, "--json")
    assert made.returncode == 0, made.stderr
    document = json.loads(made.stdout)
    archive = tmp_path / "archive"
    create_archive(archive, 1, {})
    document["archive"] = str(archive)
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(document))

    shown = _fix(guest, "apply", str(plan))
    assert shown.returncode == 0, shown.stderr
    assert "dry run: nothing was changed" in shown.stdout
    assert differences(before, read_guest(guest)) == {}
    assert not (guest.root / FIXES_FOLDER).exists()

    done = _fix(guest, "apply", str(plan), "--yes", "--json")
    assert done.returncode == 0, done.stderr
    steps = json.loads(done.stdout)["steps"]
    assert [each["outcome"] for each in steps] == ["applied"] * len(document["steps"])
    off = guest.run("systemctl", "is-active", _UNIT, check=False)
    assert off.stdout.strip() in (b"inactive", b"failed")
    assert guest.run("systemctl", "is-enabled", _UNIT, check=False).stdout.strip() in (
        b"disabled",
        b"masked",
    )

    with locked_node(guest.root / FIXES_FOLDER):
        busy = _fix(guest, "undo", str(plan), "--yes")
    assert busy.returncode == 2
    assert "another `nodescope fix` works on this node: pid" in busy.stderr

    listed = json.loads(_fix(guest, "status", "--json").stdout)
    assert listed["working_pid"] is None
    (only,) = listed["plans"]
    assert (only["plan"], only["done"]) == (document["id"], len(steps))

    back = _fix(guest, "undo", document["id"], "--yes")
    assert back.returncode == 0, back.stderr
    assert "everything that can come back is as before" in back.stdout
    assert differences(before, read_guest(guest)) == {}
    guest.wait_for(
        lambda: (
            guest.run("systemctl", "show", "--property=NRestarts", "--value", _UNIT).stdout.strip()
            not in (b"", b"0")
        ),
        "the agent loops again",
    )

    events = [event.get(FixStepDetails) for event in read_waiting(archive)]
    assert [each.outcome for each in events] == ["applied"] * len(steps)
    assert {each.plan for each in events} == {document["id"]}
    assert [each.number for each in events] == list(range(1, len(steps) + 1))


def test_a_plan_for_another_run_of_the_unit_is_not_begun(guest: Guest, tmp_path: Path) -> None:
    made = _fix(guest, "plan", "--unit", _UNIT, "--json")
    plan = tmp_path / "plan.json"
    plan.write_text(made.stdout)
    guest.run("systemctl", "disable", _UNIT)
    before = read_guest(guest)
    stale = _fix(guest, "apply", str(plan), "--yes")
    assert stale.returncode == 2, stale.stdout
    assert "no longer fits this node" in stale.stderr
    assert differences(before, read_guest(guest)) == {}
