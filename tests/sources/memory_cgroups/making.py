"""Real dying cgroups, made by a process that visits each: for tests and benchmarks, as root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from nodescope.errors import SourceError
from nodescope.sources.memory_cgroups.hierarchy import find_memory_hierarchy
from nodescope.sources.places import Places

# Joins a cgroup, writes one page to a file, goes home, removes the cgroup; `count` 0: for ever.
MAKER = """
import itertools, os, sys, time
mount, parent, folder, count, pause = sys.argv[1:]
with open("/proc/self/comm", "w") as comm:
    comm.write(os.path.basename(parent)[:15])
lines = open("/proc/self/cgroup").read().splitlines()
home = next(l.split(":", 2)[2] for l in lines if "memory" in l.split(":")[1].split(","))

def join(cgroup):
    with open(cgroup + "/cgroup.procs", "w") as procs:
        procs.write("0")

for number in range(int(count)) if int(count) else itertools.count():
    cgroup = f"{parent}/run-{number}"
    os.mkdir(cgroup)
    join(cgroup)
    with open(f"{folder}/file-{number}", "wb", buffering=0) as file:
        file.write(b"x" * 4096)
        os.fsync(file.fileno())  # clean: reclaim can take it at once
    join(mount + home)
    os.rmdir(cgroup)
    time.sleep(float(pause))
"""

# Joins a cgroup and stays: reads a file of holes again and again, and lets its cache go.
READER = """
import os, sys
cgroup, path, size = sys.argv[1:]
with open(cgroup + "/cgroup.procs", "w") as procs:
    procs.write("0")
descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
os.ftruncate(descriptor, int(size))
piece = bytearray(1 << 20)
for number in range(1_000_000):
    for offset in range(0, int(size), len(piece)):
        os.preadv(descriptor, [piece], offset)
    if number == 0:
        print("read", flush=True)
    os.posix_fadvise(descriptor, 0, int(size) // 2, os.POSIX_FADV_DONTNEED)
"""


def v1_mount() -> str | None:
    """Where memory cgroups of v1 can be made on this machine; None if nowhere."""
    try:
        hierarchy = find_memory_hierarchy(Places())
    except SourceError:
        return None
    usable = not hierarchy.is_v2 and hierarchy.whole and os.access(hierarchy.mount, os.W_OK)
    return hierarchy.mount if usable else None


@dataclass
class Nursery:
    """A parent of dying cgroups, and the folder of files that pin them."""

    mount: str
    path: str
    folder: Path

    @property
    def directory(self) -> str:
        return self.mount + self.path

    def command(self, count: int, pause_s: float = 0.0) -> list[str]:
        arguments = [self.mount, self.directory, str(self.folder), str(count), str(pause_s)]
        return [sys.executable, "-c", MAKER, *arguments]

    def make(self, count: int) -> None:
        subprocess.run(self.command(count), check=True, timeout=250)

    @contextmanager
    def making(self, pause_s: float) -> Iterator[subprocess.Popen[bytes]]:
        """One after the other for as long as the block lasts."""
        process = subprocess.Popen(self.command(0, pause_s))
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    @contextmanager
    def reading(self, size_bytes: int) -> Iterator[None]:
        """A live process in the parent itself, with a large and changing page cache."""
        command = [sys.executable, "-c", READER, self.directory]
        command += [str(self.folder / "holes"), str(size_bytes)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline(), "it ended"  # it has read all once
                yield
            finally:
                process.kill()

    def forget(self) -> None:
        """Delete the files that pin dying ones, and let go what else holds them."""
        for path in self.folder.glob("file-*"):
            path.unlink()
        self.empty()

    def empty(self) -> None:
        """What is advised for page cache; also lets go what waits in lists of single cores."""
        with suppress(OSError):  # EAGAIN is fine
            Path(f"{self.directory}/memory.force_empty").write_text("0")


@contextmanager
def nursery(mount: str, name: str, folder: Path) -> Iterator[Nursery]:
    """A parent of that name, taken away again with everything in it."""
    made = Nursery(mount, f"/{name}-{os.getpid()}", folder)
    os.mkdir(made.directory)
    try:
        folder.mkdir()
        yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        made.empty()
        for _ in range(100):
            for child in [entry.path for entry in os.scandir(made.directory) if entry.is_dir()]:
                with suppress(OSError):
                    os.rmdir(child)
            try:
                os.rmdir(made.directory)
                break
            except OSError:  # a killed process takes a moment to leave
                time.sleep(0.1)
