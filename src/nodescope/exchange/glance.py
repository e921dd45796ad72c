"""A first look at a capture: when its samples were taken, straight from the file.

Records are walked once, and of samples only time, core, process and mode are
read: no names, no stacks, no archive. What needs those is asked of an import.
Text of `perf script` is imported aside, into an archive that is removed afterwards.
"""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nodescope.analysis.filter import Filter
from nodescope.arrays import I64, Bool
from nodescope.errors import UsageError
from nodescope.exchange.capture_names import parse_capture_name
from nodescope.exchange.import_files import import_files
from nodescope.exchange.import_formats import all_formats, find_format
from nodescope.exchange.perf_data.file import find_clock, mapped
from nodescope.exchange.perf_data.header import CPUMODE_KERNEL, MAGIC, read_header
from nodescope.exchange.perf_data.index import choose_samples
from nodescope.exchange.perf_data.records import find_records, saying_where_it_stopped

_CPU = np.uint64(0xFFFFFFFF)
_ZIP = b"PK\x03\x04"  # a bundle


@dataclass(frozen=True, slots=True)
class Glance:
    """The samples of a capture, in file order; `cpu` is -1 where the file does not tell."""

    path: Path
    node: str | None
    time_ns: I64  # of the wall
    cpu: I64
    pid: I64
    kernel: Bool
    stopped: str | None  # at which byte the file stopped being whole, and why
    is_open: bool = False

    @property
    def wall_from_ns(self) -> int:
        """When the first sample was taken."""
        return int(self.time_ns.min())

    @property
    def wall_to_ns(self) -> int:
        """When the last one was."""
        return int(self.time_ns.max())


def is_perf_data(path: Path) -> bool:
    """Return whether a path is a `perf.data` file, which can be looked at directly."""
    return _begins_with(path, MAGIC)


def is_recording(path: Path) -> bool:
    """Return whether a path is no capture: a folder, a bundle, or nothing that can be read."""
    return not path.is_file() or _begins_with(path, _ZIP)


def _begins_with(path: Path, magic: bytes) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(magic)) == magic
    except OSError:
        return False


@contextmanager
def import_aside(path: Path) -> Iterator[tuple[Path, str | None]]:
    """Import a capture into an archive that is removed afterwards; one without times is refused.

    The text beside the archive says where the file stopped being whole, if it did.
    """
    known = find_format(path)
    if not known.has_sample_times:
        timed = " and ".join(each.name for each in all_formats() if each.has_sample_times)
        raise UsageError(
            f"{path} is {known.name}, which does not say when samples were taken",
            hint=f"a heatmap is drawn of {timed}; to see the rest of it import it: "
            f"`{_import_command(path)}`",
        )
    with tempfile.TemporaryDirectory(prefix="nodescope-") as folder:
        archive = Path(folder) / "archive"
        stopped = [
            f"{path} is whole up to byte {each.stopped_at}: {each.stopped_why}"
            for each in import_files([path], archive).reports
            if each.stopped_at is not None
        ]
        yield archive, next(iter(stopped), None)


def read_glance(path: Path) -> Glance:
    """Look at a `perf.data` file."""
    with mapped(path) as (data, status):
        header = read_header(data, status.st_size, str(path))
        records = find_records(data, status.st_size, header)
        with saying_where_it_stopped(records, path):
            chosen = choose_samples(records, header, str(path))
        first_ns, last_ns = int(chosen.time_ns.min()), int(chosen.time_ns.max())
        clock, _ = find_clock(header, first_ns, last_ns, path, status.st_mtime_ns)
        layout, at = chosen.layout.layout, records.at[chosen.rows]
        cpu = np.full(len(at), -1, np.int64)
        if layout.cpu:
            cpu = (records.words[at + layout.cpu] & _CPU).astype(np.int64)
        pid = (records.words[at + layout.pid] & _CPU).astype(np.int64)
    named = parse_capture_name(path.name)
    stopped = None
    if records.stopped_at is not None:
        stopped = f"{path} is whole up to byte {records.stopped_at}: {records.stopped_why}"
    return Glance(
        path,
        header.hostname or (named.host if named else None),
        chosen.time_ns + clock.offset_ns,
        cpu,
        pid,
        records.misc[chosen.rows] & 7 == CPUMODE_KERNEL,
        stopped,
    )


def _import_command(path: Path) -> str:
    """Return the command that imports a file into an archive beside it."""
    archive = path.with_name(f"{path.name}.archive").absolute()
    return shlex.join(["nodescope", "import", str(path.absolute()), "--archive", str(archive)])


def choose_glanced(glance: Glance, chosen: Filter, from_ns: int, to_ns: int) -> I64:
    """When the samples of a file were taken that pass; refuses what only an import can tell."""
    if chosen != Filter(cpus=chosen.cpus, pids=chosen.pids, kernel=chosen.kernel):
        raise UsageError(
            "a file that is not imported has no names, cgroups or functions to choose by",
            hint=f"import it first: `{_import_command(glance.path)}`",
        )
    passing = (glance.time_ns >= from_ns) & (glance.time_ns < to_ns)
    if chosen.cpus is not None:
        passing &= np.isin(glance.cpu, sorted(chosen.cpus))
    if chosen.pids is not None:
        passing &= np.isin(glance.pid, sorted(chosen.pids))
    if chosen.kernel is not None:
        passing &= glance.kernel == chosen.kernel
    return glance.time_ns[passing]
