"""A real unit of a real systemd that holds a core: its name is the end of the chain."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from tests.recorder_process import recording
from tests.systemd_guest import Guest, skip_without_namespaces

from nodescope.lab.score import solve

pytestmark = [
    pytest.mark.root,
    pytest.mark.live,
    pytest.mark.slow,
    pytest.mark.debian("systemd", "dbus", "iproute2"),
]

_CORE = max(os.sched_getaffinity(0))
_UNIT = (
    f"[Service]\nExecStart=/usr/bin/taskset -c {_CORE} dd if=/dev/zero of=/dev/null bs=64M\n"
    "RuntimeMaxSec=120\n"
)
_HELD_S = 6
_TICKS = os.sysconf("SC_CLK_TCK")


def _kernel_ticks(guest: Guest) -> int:
    shown = guest.run("systemctl", "show", "--property=MainPID", "--value", "builder.service")
    inside = shown.stdout.decode().strip()
    stat = guest.run("cat", f"/proc/{inside}/stat").stdout.decode()
    return int(stat.rpartition(")")[2].split()[12])


def test_a_unit_that_holds_a_core_is_named(tmp_path: Path) -> None:
    skip_without_namespaces()
    archive = tmp_path / "archive"
    files = {"etc/systemd/system/builder.service": _UNIT}
    guest = Guest(tmp_path / "guest", {}, files)
    try:
        with recording(archive, "--systemd-bus", guest.bus, "--journal", str(guest.journal)):
            time.sleep(3)  # of an idle core before it
            guest.run("systemctl", "start", "builder.service")
            guest.wait_for(lambda: _kernel_ticks(guest) > 0, "it has begun")
            began, ticks = time.monotonic(), _kernel_ticks(guest)
            time.sleep(_HELD_S)
            ticks, held_s = _kernel_ticks(guest) - ticks, time.monotonic() - began
            guest.run("systemctl", "stop", "builder.service")
            time.sleep(2)
    finally:
        guest.stop()
    share = ticks / _TICKS / held_s
    if share < 0.9:
        pytest.skip(f"the machine let it have {share:.0%} of the core it was to hold")
    (finding,) = solve(archive).findings
    chain = finding.chains[0]
    assert (chain.root.kind, chain.root.name) == ("unit", "builder.service")
    assert "task" in [link.kind for link in chain.links]
    assert any(link.kind == "owner" and "dd" in link.statement for link in chain.links)
