from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nodescope.cli.doctor import name_archive, render_checks
from nodescope.sources.access import Access, State
from nodescope.sources.access.verdict import ALL_CAPABILITIES

Nodescope = Callable[..., Any]

MAIN = "sys.exit(nodescope.cli.main.main())\n"
# The first run, as root, imports everything: this Python may live in a folder
# that only root can read.
AS_NOBODY = (
    """
import contextlib, io, os
with contextlib.redirect_stdout(io.StringIO()):
    nodescope.cli.main.main()
os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
"""
    + MAIN
)
SWITCHES = Path("/proc/sys/kernel")


def _switch(name: str) -> int:
    return int((SWITCHES / name).read_text())


@pytest.fixture
def refused(nodescope_process: Nodescope, tmp_path: Path) -> dict[str, dict[str, Any]]:
    """What doctor tells an unprivileged user, by source."""
    result = nodescope_process("doctor", "--json", "--archive", tmp_path, wrapper=AS_NOBODY)
    assert result.code == 1, result.err
    document = json.loads(result.out)
    assert document["uid"] == 65534
    assert document["healthy"] is False
    return {check["source"]: check for check in document["checks"]}


@pytest.mark.root
@pytest.mark.skipif(_switch("perf_event_paranoid") < 1, reason="perf events are free for all here")
def test_an_unprivileged_user_learns_what_allows_samples(
    refused: dict[str, dict[str, Any]],
) -> None:
    samples = refused["samples"]
    paranoid = _switch("perf_event_paranoid")
    assert samples["state"] == "denied"
    assert f"kernel.perf_event_paranoid is {paranoid}" in samples["why"]
    assert "CAP_PERFMON is missing" in samples["why"]
    sysctl, setcap = samples["commands"]
    assert sysctl == "sysctl -w kernel.perf_event_paranoid=-1"
    # Nobody may not be able to follow links to the interpreter, nor to look into this folder.
    expected = f"setcap {','.join(f'cap_{name}' for name in ALL_CAPABILITIES)}+ep "
    assert setcap.startswith(expected)
    target = setcap.removeprefix(expected).strip("'")
    assert os.path.samefile(target, sys.executable)
    assert samples["manifest"] == 'securityContext: {capabilities: {add: ["PERFMON"]}}'


@pytest.mark.root
def test_an_unprivileged_user_learns_what_allows_each_source_that_lacks_something(
    refused: dict[str, dict[str, Any]],
) -> None:
    lacking = [check for check in refused.values() if check["state"] in ("degraded", "denied")]
    # Where no systemd runs, no command helps; in a container its host's root would.
    helped = [check["commands"] or "mounted read-only" in check["manifest"] for check in lacking]
    assert all(helped), [check["source"] for check in lacking]
    churn = refused["cgroup_churn"]
    assert (churn["state"], "cap_perfmon" in churn["commands"][0]) == ("degraded", True), churn


@pytest.mark.root
def test_an_unprivileged_user_sees_neither_other_processes_nor_the_archive(
    refused: dict[str, dict[str, Any]],
) -> None:
    assert refused["process-binaries"]["state"] == "denied"
    assert "CAP_SYS_PTRACE is missing" in refused["process-binaries"]["why"]
    assert refused["archive"]["state"] == "denied"
    assert refused["core-time"]["state"] == "works"


@pytest.mark.root
@pytest.mark.skipif(
    _switch("kptr_restrict") == 0 and _switch("perf_event_paranoid") < 2,
    reason="kernel addresses are free for all here",
)
def test_an_unprivileged_user_sees_no_kernel_addresses(refused: dict[str, dict[str, Any]]) -> None:
    assert refused["kernel-symbols"]["state"] == "denied"
    switch = "kptr_restrict" if _switch("kptr_restrict") else "perf_event_paranoid"
    assert f"kernel.{switch} is" in refused["kernel-symbols"]["why"]


@pytest.mark.root
def test_dropping_one_capability_costs_what_it_gives(
    nodescope_process: Nodescope, tmp_path: Path
) -> None:
    # uid 0 without CAP_PERFMON and CAP_SYS_ADMIN, as in a container.
    drop = """
import ctypes, struct
libc = ctypes.CDLL(None, use_errno=True)
for capability in (21, 38):
    assert libc.prctl(24, capability, 0, 0, 0) == 0  # PR_CAPBSET_DROP
header = ctypes.create_string_buffer(struct.pack("<Ii", 0x20080522, 0))
data = ctypes.create_string_buffer(24)
assert libc.capget(header, data) == 0
words = list(struct.unpack("<6I", data.raw))
for capability in (21, 38):
    for word in range(3):
        words[(capability // 32) * 3 + word] &= ~(1 << capability % 32)
assert libc.capset(header, ctypes.create_string_buffer(struct.pack("<6I", *words))) == 0
"""
    result = nodescope_process("doctor", "--json", "--archive", tmp_path, wrapper=drop + MAIN)
    checks = {check["source"]: check for check in json.loads(result.out)["checks"]}
    if _switch("perf_event_paranoid") >= 1:
        assert result.code == 1
        assert checks["samples"]["state"] == "denied"
        assert checks["samples"]["commands"][-1] == "docker run --cap-add PERFMON …"
    assert checks["kernel-symbols"]["state"] == "works"
    assert checks["process-binaries"]["state"] == "works"


def test_the_table_groups_sources_by_what_allows_them() -> None:
    remedy = ("sysctl -w kernel.perf_event_paranoid=-1",)
    checks = [
        Access("samples", "CPU samples", State.DENIED, "paranoid is 2", remedy, "add: [PERFMON]"),
        Access("cycles", "cycles", State.DENIED, "needs samples", remedy, "add: [PERFMON]"),
        Access("core-time", "time of cores", State.WORKS, "2 cores"),
    ]
    assert render_checks(checks) == (
        "denied    CPU samples    paranoid is 2\n"
        "denied    cycles         needs samples\n"
        "works     time of cores  2 cores\n"
        "\n"
        "2 denied, 1 works\n"
        "\n"
        "To allow samples, cycles:\n"
        "  as root:    sysctl -w kernel.perf_event_paranoid=-1\n"
        "  Kubernetes: add: [PERFMON]"
    )


def test_a_terminal_gets_lines_that_fit() -> None:
    """Issue 13, point 15: the table of doctor was wider than the terminal."""
    checks = [
        Access("x", "what it is", State.WORKS, "short"),
        Access("y", "softnet: packet work of each core, and its starvation", State.DEGRADED,
               "one two three four five six seven eight nine ten"),
    ]  # fmt: skip
    lines = render_checks(checks, width=50).splitlines()
    assert lines[:5] == [
        "works     what it is  short",
        "degraded  softnet: packet work of each core, and",
        "          its starvation",
        "            one two three four five six seven",
        "            eight nine ten",
    ]
    whole = render_checks(checks).splitlines()
    assert whole[1].endswith("starvation  one two three four five six seven eight nine ten")


def test_commands_that_record_name_the_archive() -> None:
    """Issue 13, point 10."""
    commands = ("sudo nodescope record", "nodescope record --archive /other", "setcap x")
    named = name_archive(Access("x", "w", State.DENIED, "why", commands), Path("/my data"))
    assert named.commands == ("sudo nodescope record --archive '/my data'", *commands[1:])
    assert name_archive(named, None) is named


def test_setcap_comes_with_its_warning() -> None:
    check = Access("x", "what", State.DENIED, "why", ("setcap cap_perfmon+ep /usr/bin/python3",))
    assert "every script it runs" in render_checks([check])
