"""A real unit of a real systemd that loops: a condition, with its owner, and what audit says."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.recorder_process import recording
from tests.systemd_guest import Guest, skip_without_namespaces

from nodescope.judgement.recorded_audit import RecordedAudit, audit_recording
from nodescope.lab.score import solve
from nodescope.recording.recording import Recording

pytestmark = [
    pytest.mark.root,
    pytest.mark.live,
    pytest.mark.slow,
    pytest.mark.debian("systemd", "dbus", "iproute2"),
]

_UNIT = (
    "[Unit]\nStartLimitIntervalSec=0\n"
    "[Service]\nExecStart=/bin/sh -c 'exit 7'\nRestart=always\nRestartSec=300ms\n"
)


def test_a_unit_that_loops_is_a_condition(tmp_path: Path) -> None:
    skip_without_namespaces()
    archive = tmp_path / "archive"
    guest = Guest(tmp_path / "guest", {}, {"etc/systemd/system/flaky.service": _UNIT})
    try:
        with recording(archive, "--systemd-bus", guest.bus, "--journal", str(guest.journal)):
            guest.run("systemctl", "start", "--no-block", "flaky.service")
            guest.wait_for(lambda: _restarts(guest) >= 6, "it was restarted six times")
    finally:
        guest.stop()
    found = solve(archive)
    (loop,) = (each for each in found.conditions if each.kind == "unit_loop")
    assert (loop.owner.kind, loop.owner.name) == ("unit", "flaky.service")
    assert loop.since_ns is not None
    assert "exit code 7" in loop.statement
    assert [step.kind for step in loop.steps] == ["look", "stop_unit"]
    kept = Recording.open(archive)
    known = audit_recording(kept, kept.extent.to_ns - 1)
    assert isinstance(known, RecordedAudit)
    verdicts = {each.name: each.verdict for each in known.audit.findings}
    assert verdicts["flaky.service"] == "looping"


def _restarts(guest: Guest) -> int:
    shown = guest.run("systemctl", "show", "--property=NRestarts", "--value", "flaky.service")
    return int(shown.stdout.decode().strip() or 0)
