"""The recorder on this machine, for real: its own process, real rings, real load."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kernel_log import write_line
from tests.recorder_process import (
    KERNEL_BUSY,
    NODESCOPE,
    RecorderProcess,
    column,
    event_kinds,
    fill_up,
    find_faketime,
    gap_reasons,
    recording,
    said,
    stacks_of,
    status,
)

from nodescope.archive.reader import Archive
from nodescope.archive.retention import read_frozen
from nodescope.recorder.freeze import AROUND_NS

pytestmark = pytest.mark.root

# Runs code that it maps from a file which is no binary, as a strange loader would.
STRANGE_CODE = """
import ctypes, mmap, os, sys, time
path, end = sys.argv[1], time.monotonic() + float(sys.argv[2])
with open(path, "wb") as file:  # mov rcx, 2^27; dec rcx; jnz -5; ret
    file.write(b"\\x48\\xc7\\xc1\\x00\\x00\\x00\\x08\\x48\\xff\\xc9\\x75\\xfb\\xc3".ljust(4096))
access = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
code = mmap.mmap(os.open(path, os.O_RDWR), 4096, prot=access)
run = ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
while time.monotonic() < end:
    run()
"""


def test_a_busy_program_is_found_with_its_kernel_functions(tmp_path: Path) -> None:
    cpu = max(os.sched_getaffinity(0))
    with recording(tmp_path / "archive", "--flush", "500ms"):
        subprocess.run(["cp", sys.executable, tmp_path / "busybody"], check=True)
        subprocess.run([tmp_path / "busybody", "-c", KERNEL_BUSY, str(cpu), "2"], check=True)
    found = stacks_of(tmp_path / "archive", "busybody")
    assert "[kernel]!entry_SYSCALL_64_after_hwframe" in found
    assert any("chacha" in name or "get_random_bytes_user" in name for name in found), found
    shown = status(tmp_path / "archive")
    assert shown["samples"] > 150
    assert shown["lost"] == 0
    assert shown["recording"] is None
    assert shown["recorder"]["rss_bytes"] > 0
    assert 0 < shown["recorder"]["cpu_ratio"] < 1


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="its machine code is of x86-64")
def test_code_of_a_file_that_is_no_binary_is_unnamed_for_a_counted_reason(tmp_path: Path) -> None:
    archive, strange = tmp_path / "archive", tmp_path / "strange"
    with recording(archive, "--flush", "500ms", "--without", "all"):
        subprocess.run([sys.executable, "-c", STRANGE_CODE, strange, "2"], check=True)
    (segment,) = Archive.open(archive).segments()
    frames = segment.read("frames").to_pylist()
    names = {frame["name"] for frame in frames if frame["module"] == str(strange)}
    assert names
    assert all(name.startswith("+0x") for name in names)
    last = segment.read("heartbeats", ["unresolved"]).column("unresolved").to_pylist()[-1]
    assert json.loads(last)["not ELF"] >= len(names)


def test_one_core_held_in_the_kernel_is_plainly_there(tmp_path: Path) -> None:
    """A kernel-busy process pinned to a core shows as >= 95 % system in those seconds.

    The bar of 3 s is measured by `benchmarks.core_view`; here the load of other
    tests may take the core away, so it is held as firmly and as long as it takes.
    """
    cpu = max(os.sched_getaffinity(0))
    archive = tmp_path / "archive"
    with recording(archive, "--flush", "500ms"):
        busy = subprocess.run(
            [sys.executable, "-c", KERNEL_BUSY, str(cpu), "8"],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
    begin, end = (int(word) for word in busy.stdout.split())
    (segment,) = Archive.open(archive).segments()
    mine = column(segment, "cores", "cpu") == cpu
    times = column(segment, "cores", "time_ns")[mine]
    system = np.diff(column(segment, "cores", "system")[mine])
    total = np.sum(
        [
            np.diff(column(segment, "cores", name)[mine])
            for name in ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
        ],
        axis=0,
    )
    inside = (times[:-1] > begin) & (times[1:] < end)
    assert inside.any()
    shares = system[inside] / total[inside]
    assert np.median(shares) >= 0.95, shares


def test_sigterm_seals_the_open_segment(tmp_path: Path) -> None:
    # Without observers: the kernel's log has lines of before, whose events come first.
    with recording(tmp_path / "archive", "--flush", "200ms", "--without", "all") as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(90) == 0
    assert list((tmp_path / "archive" / "open").iterdir()) == []
    (segment,) = Archive.open(tmp_path / "archive").segments()
    kinds = segment.read("events", ["kind"]).column("kind").to_pylist()
    assert kinds[0] == "recorder_started"
    assert kinds[-1] == "recorder_stopped"


def test_a_duration_ends_by_itself(tmp_path: Path) -> None:
    process = RecorderProcess(tmp_path / "archive", "--duration", "1s")
    assert process.wait(90) == 0, said(tmp_path / "archive")
    shown = status(tmp_path / "archive")
    assert shown["segments"] == 1
    assert shown["to_ns"] - shown["from_ns"] > 0.8e9


def test_a_second_recorder_is_refused_by_name(tmp_path: Path) -> None:
    with recording(tmp_path / "archive", "--flush", "200ms") as process:
        second = RecorderProcess(tmp_path / "archive", "--duration", "1s")
        assert second.wait(90) == 2
        message = said(tmp_path / "archive")
        assert str(process.pid) in message
        assert "hint:" in message


def test_a_stopped_recorder_shows_as_what_it_was(tmp_path: Path) -> None:
    with recording(tmp_path / "archive", "--flush", "500ms") as process:
        process.send_signal(signal.SIGSTOP)
        time.sleep(4)
        process.send_signal(signal.SIGCONT)
        process.wait_for(lambda: status(tmp_path / "archive")["gaps"], "a gap is recorded")
    gap = max(status(tmp_path / "archive")["gaps"], key=lambda gap: gap["to_ns"] - gap["from_ns"])
    assert gap["source"] == "cores"
    assert "not run for" in gap["reason"]
    assert gap["to_ns"] - gap["from_ns"] > 3e9
    # The rings went on: samples of those seconds are there.
    (segment,) = Archive.open(tmp_path / "archive").segments()
    assert column(segment, "heartbeats", "late_ns").max() > 2e9
    assert status(tmp_path / "archive")["lost"] == 0


def test_a_loss_lies_where_it_was(tmp_path: Path) -> None:
    """A recorder that is stopped cannot empty its rings, and these are too small."""
    archive, cpu = tmp_path / "archive", max(os.sched_getaffinity(0))
    options = ("--ring-size", "8KiB", "--without", "all", "--flush", "1s")
    with recording(archive, *options) as process:
        busy = subprocess.Popen([sys.executable, "-c", KERNEL_BUSY, str(cpu), "100"])
        try:
            time.sleep(1)
            stopped_ns = time.time_ns()
            process.send_signal(signal.SIGSTOP)
            time.sleep(4)
            resumed_ns = time.time_ns()
            process.send_signal(signal.SIGCONT)
            process.wait_for(lambda: losses(archive, cpu), "a loss is recorded")
        finally:
            busy.kill()
            busy.wait()
    gap = max(losses(archive, cpu), key=lambda gap: gap["to_ns"] - gap["from_ns"])
    assert gap["from_ns"] <= stopped_ns + 1e9  # by then the ring was full
    assert gap["to_ns"] >= resumed_ns
    assert gap["lost"] > 100
    lost = sum(gap["lost"] or 0 for gap in status(archive)["gaps"])
    assert lost == status(archive)["lost"]


def losses(archive: Path, cpu: int) -> list[dict[str, Any]]:
    return [gap for gap in status(archive)["gaps"] if gap["lost"] and gap["cpu"] == cpu]


def test_an_interruption_is_one_gap(tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    process = RecorderProcess(archive, "--flush", "300ms", "--without", "all")
    process.wait_until_it_records()
    process.kill()
    process.wait()
    time.sleep(1.5)
    assert RecorderProcess(archive, "--duration", "500ms", "--without", "all").wait(90) == 0
    (gap,) = [gap for gap in status(archive)["gaps"] if gap["source"] == "all"]
    assert gap["reason"] == "the recorder was not running and had been killed"
    assert gap["to_ns"] - gap["from_ns"] > 1.5e9


def test_history_of_the_kernels_log_freezes_nothing(tmp_path: Path) -> None:
    write_line("history-test: ena 0000:90:00.0 hist0: Trigger reset is on")
    started_ns = time.time_ns()
    archive = tmp_path / "archive"
    assert RecorderProcess(archive, "--duration", "3s", "--flush", "1s").wait(90) == 0
    subjects = {
        subject
        for segment in Archive.open(archive).segments()
        for subject in segment.read("events", ["subject"]).column("subject").to_pylist()
    }
    assert "hist0" in subjects  # it is in the recording, and yet nothing is kept for it
    early = [each for each in read_frozen(archive) if each.from_ns + AROUND_NS < started_ns]
    assert early == []


def test_killed_at_any_moment_only_the_last_flush_is_missing(tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    seen: dict[Path, bytes] = {}
    random = np.random.default_rng(7)
    for _ in range(6):
        process = RecorderProcess(
            archive, "--flush", "300ms", "--segment", "1s", "--core-interval", "50ms"
        )
        process.wait_until_it_records()
        time.sleep(random.uniform(0.1, 1.6))
        process.kill()
        process.wait()
        killed_ns = time.time_ns()
        for path, content in seen.items():
            assert path.read_bytes() == content
        listing = Archive.open(archive).listing()
        assert not listing.damaged
        last = max(segment.wall_to_ns for segment in listing.segments)
        assert killed_ns - last < 10_000_000_000  # the bar itself: benchmarks.crashes
        seen = {path: path.read_bytes() for path in archive.glob("segments/[0-9]*/*")}
    assert RecorderProcess(archive, "--duration", "500ms").wait(90) == 0
    assert list((archive / "open").iterdir()) == []
    assert any("not running" in gap["reason"] for gap in status(archive)["gaps"])


def test_a_full_disk_pauses_and_resumes(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk], check=True)
    try:
        archive = disk / "archive"
        with recording(
            archive, "--flush", "200ms", "--segment", "600ms", "--core-interval", "10ms"
        ) as process:
            process.wait_for(lambda: any(archive.glob("segments/[0-9]*")), "a segment is sealed")
            sealed = {path: path.read_bytes() for path in archive.glob("segments/[0-9]*/*")}
            fill = disk / "fill"
            fill_up(fill)
            process.wait_for(lambda: "paused" in said(archive), "it pauses")
            fill.unlink()
            process.wait_for(lambda: gap_reasons(archive, "all"), "it records again")
        for path, content in sealed.items():
            assert path.read_bytes() == content
        assert any("room" in reason for reason in gap_reasons(archive, "all"))
        kinds = [
            kind
            for segment in Archive.open(archive).segments()
            for kind in segment.read("events", ["kind"]).column("kind").to_pylist()
        ]
        assert kinds.index("paused") < kinds.index("resumed")
        assert not Archive.open(archive).listing().damaged
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_clock_step_is_told_and_both_sides_keep_their_wall_time(tmp_path: Path) -> None:
    library = find_faketime()
    if library is None:
        pytest.skip("needs the Debian package libfaketime")
    stamp = tmp_path / "faketime"
    stamp.write_text("+0")
    archive = tmp_path / "archive"
    environment = {
        "LD_PRELOAD": library,
        "FAKETIME_TIMESTAMP_FILE": str(stamp),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    with recording(archive, "--flush", "300ms", **environment) as process:
        before = time.time_ns()
        stamp.write_text("+3600")
        process.wait_for(lambda: "clock_step" in event_kinds(archive), "a clock step")
    (segment,) = Archive.open(archive).segments()
    walls = segment.wall_ns(column(segment, "cores", "time_ns"))
    assert walls.min() < before + 2e9
    assert walls.max() > before + 3600e9
    (message,) = [
        row["message"] for row in segment.read("events").to_pylist() if row["kind"] == "clock_step"
    ]
    assert "forward by 1h" in message


@pytest.mark.beside
def test_over_budget_it_lowers_its_rate_once_and_says_so(tmp_path: Path) -> None:
    """A budget nobody can keep: at the first check after the grace period it goes down."""
    archive = tmp_path / "archive"
    with recording(archive, "--flush", "1s", "--budget-memory", "1MB") as process:
        process.wait_for(lambda: "rate_lowered" in event_kinds(archive), "a lower rate", 60)
        beats = len(heartbeats(archive))
        # A step has half a minute to show what it was worth: the next readings change nothing.
        process.wait_for(lambda: len(heartbeats(archive)) >= beats + 4, "four heartbeats more")
    assert event_kinds(archive).count("rate_lowered") == 1
    assert said(archive).count("sampling at 49 Hz instead of 97 Hz") == 1
    rates = {
        int(rate)
        for segment in Archive.open(archive).segments()
        for rate in column(segment, "heartbeats", "frequency_hz")
    }
    assert {97, 49} <= rates


def heartbeats(archive: Path) -> list[int]:
    return [
        int(time_ns)
        for segment in Archive.open(archive).segments()
        for time_ns in column(segment, "heartbeats", "time_ns")
    ]


def record_as_nobody(
    tmp_path: Path, options: Sequence[str], capabilities: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """A recorder without rights but these; it may read every file only for its interpreter."""
    os.chmod(tmp_path, 0o777)
    for parent in tmp_path.parents:
        if parent.stat().st_uid == os.geteuid() and len(parent.parts) > 2:
            os.chmod(parent, 0o755)
    kept = ",".join(f"+{name}" for name in ("dac_read_search", *capabilities))
    return subprocess.run(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs",
         f"--inh-caps={kept}", f"--ambient-caps={kept}", "prlimit", "--memlock=65536",
         *NODESCOPE, "record", "--archive", str(tmp_path / "archive"), *options],
        capture_output=True, text=True,
    )  # fmt: skip


def test_without_privileges_it_records_what_it_may(tmp_path: Path) -> None:
    options = ("--duration", "3s", "--flush", "500ms", "--segment", "1s", "--without", "all")
    run = record_as_nobody(tmp_path, options)
    assert run.returncode == 0, run.stderr
    shown = status(tmp_path / "archive")
    assert shown["samples"] == 0
    assert shown["tables"]["cores"]["rows"] > 0
    (gap,) = [gap for gap in shown["gaps"] if gap["source"] == "samples"]
    assert (gap["cpu"], gap["reason"]) == (None, "not permitted")
    recorded_ns = shown["to_ns"] - shown["from_ns"]
    assert gap["to_ns"] - gap["from_ns"] > 0.8 * recorded_ns
    assert run.stderr.count("no samples are taken") == 1
    assert "doctor" in run.stderr


def test_cores_whose_rings_may_not_be_locked_are_a_gap_that_lasts(tmp_path: Path) -> None:
    options = ("--duration", "3s", "--flush", "500ms", "--segment", "1s", "--without", "all")
    run = record_as_nobody(tmp_path, (*options, "--ring-size", "8MiB"), ["perfmon"])
    assert run.returncode == 0, run.stderr
    shown = status(tmp_path / "archive")
    gaps = [gap for gap in shown["gaps"] if gap["source"] == "samples"]
    cpus = [gap["cpu"] for gap in gaps]
    assert cpus
    assert len(set(cpus)) == len(cpus)
    assert {gap["reason"] for gap in gaps} == {"no more memory may be locked"}
    recorded_ns = shown["to_ns"] - shown["from_ns"]
    assert all(gap["to_ns"] - gap["from_ns"] > 0.8 * recorded_ns for gap in gaps)
    assert run.stderr.count("not sampled: no more memory may be locked") == 1
    assert "source_degraded" in event_kinds(tmp_path / "archive")


@pytest.fixture
def spare_cpu() -> Iterator[int]:
    """A core that may be taken offline; online again at the end."""
    cpu = max(os.sched_getaffinity(0))
    switch = Path(f"/sys/devices/system/cpu/cpu{cpu}/online")
    if cpu == 0 or not switch.exists():
        pytest.skip("no core here can be taken offline")
    try:
        switch.write_text("0")
        switch.write_text("1")
    except OSError as error:
        pytest.skip(f"cores cannot be taken offline here: {error.strerror}")
    yield cpu
    switch.write_text("1")


def test_a_core_that_goes_and_comes_is_followed(tmp_path: Path, spare_cpu: int) -> None:
    switch = Path(f"/sys/devices/system/cpu/cpu{spare_cpu}/online")
    archive = tmp_path / "archive"
    with recording(archive, "--flush", "300ms") as process:
        switch.write_text("0")
        process.wait_for(lambda: "cpu_offline" in event_kinds(archive), "the core is offline")
        switch.write_text("1")
        process.wait_for(lambda: "cpu_online" in event_kinds(archive), "the core is online")


def test_a_core_that_is_offline_only_for_a_moment_is_sampled_again(
    tmp_path: Path, spare_cpu: int
) -> None:
    switch = Path(f"/sys/devices/system/cpu/cpu{spare_cpu}/online")
    archive = tmp_path / "archive"

    def gap_ns() -> list[int]:
        return [
            row["to_ns"]
            for segment in Archive.open(archive).segments()
            for row in segment.read("gaps", ["to_ns", "source", "cpu"]).to_pylist()
            if row["source"] == "samples" and row["cpu"] == spare_cpu
        ]

    def sampled_after(moment: int) -> bool:
        return any(
            row["cpu"] == spare_cpu and row["tick"] * segment.tick_ns > moment
            for segment in Archive.open(archive).segments()
            for row in segment.read("samples", ["cpu", "tick"]).to_pylist()
        )

    with recording(archive, "--flush", "2s") as process:
        switch.write_text("0")
        switch.write_text("1")
        process.wait_for(gap_ns, "a gap of the core")
        busy = subprocess.Popen([sys.executable, "-c", KERNEL_BUSY, str(spare_cpu), "100"])
        try:
            process.wait_for(lambda: sampled_after(max(gap_ns())), "samples of it again")
        finally:
            busy.kill()
            busy.wait()
