"""Running a program and measuring it from outside.

CPU is what the kernel accounts to the process and its children when it is
waited for (wait4(2)): user and system time, from the first instruction to the
last, start-up included. Memory is sampled from `/proc/PID/status`, not taken
from `ru_maxrss`, because that inherits the size of whoever forked it. What
the kernel does for a profiler in interrupts (taking the sample, walking the
stack) is charged to whatever ran: no process time shows it, only the
throughput of the load does.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Reading:
    """A process and its descendants at one moment, `at_s` after its start."""

    at_s: float
    rss_bytes: int  # summed over the processes
    own_bytes: int  # of these, anonymous: no page of a file, which others share
    peak_bytes: int  # VmHWM, summed over the processes
    cpu_s: float  # user and system, in 10 ms ticks


@dataclass(slots=True)
class Measured:
    """A finished run."""

    returncode: int
    wall_s: float
    cpu_s: float
    stderr: str
    readings: list[Reading] = field(default_factory=list)

    @property
    def cpu_ratio(self) -> float:
        """Of one core, everything included."""
        return self.cpu_s / self.wall_s

    @property
    def peak_bytes(self) -> int:
        """The most the processes ever held, by the kernel's own high-water marks."""
        return max((reading.peak_bytes for reading in self.readings), default=0)

    def steady_ratio(self, after_s: float) -> float:
        """CPU of one core between a while after the start and the last reading."""
        late = [reading for reading in self.readings if reading.at_s >= after_s]
        if len(late) < 2:
            return float("nan")
        return (late[-1].cpu_s - late[0].cpu_s) / (late[-1].at_s - late[0].at_s)


@contextmanager
def compiled_modules(*commands: Sequence[str]) -> Iterator[None]:
    """Let Python keep its modules compiled, as an installed package has them.

    The commands are run once, so that what they import is compiled before anything is measured.
    """
    said = os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    try:
        for command in commands:
            subprocess.run(
                command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        yield
    finally:
        if said is not None:
            os.environ["PYTHONDONTWRITEBYTECODE"] = said


def run_measured(command: Sequence[str], interval_s: float = 1.0) -> Measured:
    """Run a program to its end, reading it once per interval."""
    started = time.monotonic()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    readings: list[Reading] = []
    said: list[bytes] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(interval_s):
            reading = read_tree(process.pid, time.monotonic() - started)
            if reading is not None:
                readings.append(reading)

    def listen() -> None:
        assert process.stderr is not None
        said.extend(process.stderr)

    threads = [threading.Thread(target=target, daemon=True) for target in (watch, listen)]
    for thread in threads:
        thread.start()
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except BaseException:
        process.kill()
        raise
    wall = time.monotonic() - started
    over.set()
    process.returncode = os.waitstatus_to_exitcode(status)
    for thread in threads:
        thread.join(5)
    text = b"".join(said).decode("utf-8", "replace")
    cpu = usage.ru_utime + usage.ru_stime
    return Measured(process.returncode, wall, cpu, text, readings)


def read_tree(pid: int, at_s: float) -> Reading | None:
    """A process with its living descendants; None once it is gone."""
    rss = own = peak = 0
    cpu = 0.0
    for each in [pid, *find_descendants(pid)]:
        try:
            status = Path(f"/proc/{each}/status").read_text()
            words = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            if each == pid:
                return None
            continue  # a descendant that just ended
        rss += _kilobytes(status, "VmRSS:") * 1024
        own += _kilobytes(status, "RssAnon:") * 1024
        peak += _kilobytes(status, "VmHWM:") * 1024
        # utime, stime, cutime, cstime; a living child's time is not yet its parent's.
        cpu += sum(int(word) for word in words[11:15]) / TICKS_PER_SECOND
    return Reading(at_s, rss, own, peak, cpu) if rss else None


def find_descendants(pid: int) -> list[int]:
    """Living descendants of a process, children of all its threads."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(word) for word in path.read_text().split()]
        except OSError:
            continue
        for child in children:
            found += [child, *find_descendants(child)]
    return found


def _kilobytes(status: str, field_name: str) -> int:
    for line in status.splitlines():
        if line.startswith(field_name):
            return int(line.split()[1])
    return 0


def slope_per_second(times: Sequence[float], values: Sequence[float]) -> float:
    """Theil–Sen: the median of the slopes between all pairs; outliers do not move it."""
    import numpy as np

    x, y = np.asarray(times), np.asarray(values, float)
    before, after = np.triu_indices(len(x), 1)
    if not len(before):
        return float("nan")
    return float(np.median((y[after] - y[before]) / (x[after] - x[before])))


def folder_bytes(folder: Path) -> tuple[int, int]:
    """The sizes of all files, and what files and folders take in allocated blocks."""
    paths = [folder, *folder.rglob("*")]
    status = [path.lstat() for path in paths]
    sizes = sum(each.st_size for path, each in zip(paths, status, strict=True) if path.is_file())
    return sizes, sum(each.st_blocks * 512 for each in status)


def read_busy_seconds() -> tuple[float, float]:
    """Core-seconds since boot that cores were not idle, and that the hypervisor took."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    user, nice, system, _idle, _iowait, irq, softirq, steal = (int(word) for word in fields[:8])
    busy = user + nice + system + irq + softirq
    return busy / TICKS_PER_SECOND, steal / TICKS_PER_SECOND
