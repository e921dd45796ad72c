"""A real recorder in a process of its own, and what it wrote: for tests and benchmarks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.waiting import wait_for

from nodescope.archive.reader import Archive, Segment

NODESCOPE = [sys.executable, "-m", "nodescope.cli.main"]
# Holds one core in the kernel for so many seconds, and prints from when to when.
KERNEL_BUSY = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.setpriority(os.PRIO_PROCESS, 0, -20)
source, end = os.open("/dev/urandom", os.O_RDONLY), time.monotonic() + float(sys.argv[2])
buffer = bytearray(8 << 20)
begin = time.monotonic_ns()
while time.monotonic() < end:
    os.readv(source, [buffer])
print(begin, time.monotonic_ns())
"""


class RecorderProcess(subprocess.Popen[bytes]):
    """A recorder that was started; what it reports goes to a file beside the archive."""

    def __init__(self, archive: Path, *options: str, **environment: str) -> None:
        self.archive = archive
        self.log = log_file(archive)
        with self.log.open("ab") as log:
            super().__init__(
                [*NODESCOPE, "record", "--archive", str(archive), *options],
                stderr=log,
                env=os.environ | environment,
            )

    def wait_for(self, condition: Callable[[], object], what: str, seconds: float = 90.0) -> None:
        """Wait until `condition` holds; fail at once when the recorder has ended."""
        wait_for(condition, what, seconds, process=self, log=self.log)

    def wait_until_it_records(self) -> None:
        """Wait for the first rows in the open segment."""
        streams = self.archive / "open"
        self.wait_for(lambda: any(streams.glob("*/heartbeats.arrows")), "the recorder records")


@contextmanager
def recording(archive: Path, *options: str, **environment: str) -> Iterator[RecorderProcess]:
    """Start a recorder, wait until it records, and stop it at the end, which must go well."""
    process = RecorderProcess(archive, *options, **environment)
    try:
        process.wait_until_it_records()
        yield process
    except BaseException:
        process.terminate()
        process.wait(90)
        raise
    process.terminate()
    code = process.wait(90)
    assert code == 0, f"the recorder ended with exit code {code}:\n{said(archive)}"


def log_file(archive: Path) -> Path:
    return archive.parent.parent / f"{archive.parent.name}.log"


def said(archive: Path) -> str:
    """Return what the archive's recorders reported."""
    return log_file(archive).read_text()


def status(archive: Path) -> dict[str, Any]:
    run = subprocess.run(
        [*NODESCOPE, "status", "--archive", str(archive), "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    document: dict[str, Any] = json.loads(run.stdout)
    return document


def column(segment: Segment, table: str, name: str) -> Any:
    return segment.read(table, [name]).column(name).to_numpy(zero_copy_only=False)


def stacks_of(archive: Path, comm: str) -> set[str]:
    """All functions seen under a comm, as `module!name`."""
    found: set[str] = set()
    for segment in Archive.open(archive).segments():
        profile, stacks, frames = (segment.read(name) for name in ("profile", "stacks", "frames"))
        depth, frame = (stacks.column(name).to_pylist() for name in ("depth", "frame"))
        names = [
            f"{module}!{name}"
            for module, name in zip(
                frames.column("module").to_pylist(), frames.column("name").to_pylist(), strict=True
            )
        ]
        for row, name in enumerate(profile.column("comm").to_pylist()):
            at = profile.column("stack")[row].as_py() if name == comm else -1
            wanted = depth[at] if at >= 0 else -1
            while at >= 0 and wanted >= 0:
                if depth[at] == wanted:
                    found.add(names[frame[at]])
                    wanted -= 1
                at -= 1
    return found


def gap_reasons(archive: Path, source: str) -> list[str]:
    return [gap["reason"] for gap in status(archive)["gaps"] if gap["source"] == source]


def event_kinds(archive: Path) -> list[str]:
    return [
        kind
        for segment in Archive.open(archive).segments()
        for kind in segment.read("events", ["kind"]).column("kind").to_pylist()
    ]


def fill_up(path: Path) -> None:
    # ENOSPC is what it is for.
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(b"\0" * 65536) == 65536:
            pass


def find_faketime() -> str | None:
    places = Path("/usr/lib").glob("*/faketime/libfaketime.so.1")
    return next((str(path) for path in places), None)
