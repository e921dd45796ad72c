"""`perf.data`, as `perf record` writes it: read as columns, without `perf`.

The way of a file: `perf_header` (events, features) → `perf_records` (where its
records are) → `perf_index` (in which order) → `sources.perf` (the recorder's own
decoding, attribution and symbols), batch by batch, with `perf_processes` and
`perf_symbols` in place of the running machine.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from nodescope.arrays import I64
from nodescope.exchange.capture_names import parse_capture_name
from nodescope.exchange.import_formats import ImportFormat, Peek, Progress
from nodescope.exchange.importer import add_estimate
from nodescope.exchange.perf_data.file import find_clock, guess_start, mapped
from nodescope.exchange.perf_data.header import MAGIC, PerfHeader, read_header
from nodescope.exchange.perf_data.index import Index, make_index
from nodescope.exchange.perf_data.processes import CapturedProcesses, complete_batch
from nodescope.exchange.perf_data.records import (
    Records,
    find_records,
    give_back,
    saying_where_it_stopped,
)
from nodescope.exchange.perf_data.symbols import CapturedModules, find_kernel
from nodescope.ingest.samples import SampleRows
from nodescope.ingest.sink import Capture, ImportNames, ImportReport, Sink
from nodescope.perf.decode import (
    LOST,
    LOST_SAMPLES,
    THROTTLE,
    RecordBatch,
    RingSamples,
    decode_records,
)
from nodescope.perf.stacks import Stacks
from nodescope.sources.cgroups.paths_by_id import CgroupPaths

NAME = "perf.data"
_BATCH_WORDS = 1 << 20  # 8 MiB of records
_MAX_PATHS = 1_000_000
_PEEK_BYTES = 1 << 20
_DEFAULT_MAX_STACK = 127  # kernel.perf_event_max_stack
_MAX_CPU = (1 << 15) - 1
_FORGET_BATCHES = 8


def _detect(head: bytes, path: Path) -> bool:
    del path
    return head.startswith((MAGIC, MAGIC[::-1]))


def _peek(path: Path) -> Peek:
    named = parse_capture_name(path.name)
    with mapped(path) as (data, status):
        header = read_header(data, status.st_size, str(path))
        if header.is_pipe:
            head = bytes(data[:_PEEK_BYTES])
            find_records(head, len(head), header)
    return Peek(
        header.hostname or (named.host if named else None),
        guess_start(header, path, status.st_mtime_ns),
    )


def _import(path: Path, sink: Sink, progress: Progress) -> ImportReport:
    with mapped(path) as (data, status):
        header = read_header(data, status.st_size, str(path))
        records = find_records(data, status.st_size, header)
        progress(status.st_size // 10)
        with saying_where_it_stopped(records, path):
            index = make_index(records, header, str(path))
        give_back(records.data)
        clock, source = find_clock(header, index.first_ns, index.last_ns, path, status.st_mtime_ns)
        named = parse_capture_name(path.name)
        sink.begin(
            Capture(
                clock,
                source,
                node={
                    "name": header.hostname or (named.host if named else None),
                    "kernel": header.kernel,
                    "machine": header.machine,
                    "cpus": header.cpus,
                    "memory_bytes": header.memory_bytes,
                },
                span_ns=index.last_ns - index.first_ns,
                frequency_hz=index.events[0].frequency_hz,
            )
        )
        estimated = header.clock is None and named is None
        report = ImportReport(str(path), NAME, malformed=index.malformed)
        report.out_of_order = index.out_of_order
        report.stopped_at, report.stopped_why = records.stopped_at, records.stopped_why
        work = _Importer(header, records, index, sink, report)
        try:
            for number, part in enumerate(index.batches(records.size, _BATCH_WORDS)):
                work.process(part)
                done = part.stop / len(index.rows)
                progress(int(status.st_size * (0.1 + 0.9 * done)))
                if number % _FORGET_BATCHES == _FORGET_BATCHES - 1:
                    give_back(records.data)
            work.finish()
            if estimated:
                add_estimate(sink, path, index.last_ns)
        finally:
            work.modules.close()
    return report


class _Importer:
    """One file, batch by batch."""

    def __init__(
        self, header: PerfHeader, records: Records, index: Index, sink: Sink, report: ImportReport
    ) -> None:
        self.modules = CapturedModules(header)
        self._records = records
        self._index = index
        self._sink = sink
        self._report = report
        kernel, why = find_kernel(header, index.kernel_text)
        if kernel is None:
            report.notes.append(f"kernel functions have no names: {why}")
        for label, count in index.left_out.items():
            report.notes.append(f"{count} samples of event {label} are left out")
        self._processes = CapturedProcesses()
        self._stacks = Stacks(self._processes, self.modules, kernel)
        self._cgroups = CgroupPaths(None)
        self._max_stack = min(
            (event.max_stack for event in index.events if event.max_stack),
            default=_DEFAULT_MAX_STACK,
        )
        self._lost = self._lost_samples = 0
        self._seen: dict[int, int] = {}  # cpu → time of its last sample

    def process(self, part: slice) -> None:
        """Decode, attribute, resolve and hand over one batch."""
        rows, times = self._index.rows[part], self._index.time_ns[part]
        records, layout = self._records, self._index.layout.layout
        unknown = np.full(len(rows), -1, np.int64)
        decoded = decode_records(records.data, records.words, records.at[rows], unknown, layout)
        self._report.malformed += decoded.malformed
        batch = complete_batch(decoded, records, rows, times, self.modules)
        for identifier, name in batch.cgroups:
            self._cgroups.learn(identifier, name)
        self._processes.expect(batch)
        samples = batch.samples
        attribution = self._processes.attribute(batch)
        paths = self._stacks.resolve(samples, attribution)
        self._sink.samples(
            SampleRows(
                time_ns=samples.time_ns,
                cpu=np.where(samples.cpu > _MAX_CPU, -1, samples.cpu),
                pid=samples.pid,
                tid=samples.tid,
                comm=attribution.comm.astype(np.int64),
                kernel_mode=samples.kernel_mode.astype(np.int64),
                user=paths.user,
                kernel=paths.kernel,
                cgroup=self._cgroup_column(samples),
            ),
            ImportNames(self._stacks.frames, self._stacks.paths, self._processes.comms),
        )
        depth = samples.kernel.lengths + samples.user.lengths
        self._report.truncated_stacks += int(np.count_nonzero(depth >= self._max_stack))
        self._tell_losses(batch, rows, times)
        if len(self._stacks.paths) > _MAX_PATHS:
            self._stacks.restart()

    def _cgroup_column(
        self, samples: RingSamples
    ) -> tuple[npt.NDArray[np.int32], list[str]] | None:
        if samples.cgroup is None:
            return None
        unique, inverse = np.unique(samples.cgroup, return_inverse=True)
        paths = [self._cgroups.path(identifier) for identifier in unique.tolist()]
        known = sorted({path for path in paths if path is not None})
        number = {path: row for row, path in enumerate(known)}
        numbers = np.array([-1 if path is None else number[path] for path in paths], np.int32)
        return numbers[inverse], known

    def _tell_losses(self, batch: RecordBatch, rows: I64, times: I64) -> None:
        """Records that tell of what is not there: rare, so one by one."""
        records = self._records
        kind = records.kind[rows]
        for row in np.flatnonzero(kind == LOST).tolist():
            count = self._word(rows[row], 2)
            self._lost += count
            cpu = self._cpu_of(rows[row])
            since = self._seen.get(cpu if cpu is not None else -1, self._index.first_ns)
            earlier = batch.samples.time_ns[
                (batch.samples.time_ns < times[row])
                & ((batch.samples.cpu == cpu) | np.bool_(cpu is None))
            ]
            since = int(earlier.max()) if len(earlier) else min(since, int(times[row]))
            self._gap(since, int(times[row]), cpu, count, "the ring was full")
        for row in np.flatnonzero(kind == LOST_SAMPLES).tolist():
            self._lost_samples += self._word(rows[row], 1)
        throttled = np.flatnonzero(kind == THROTTLE)
        self._report.throttled += len(throttled)
        if len(throttled):
            where = [self._cpu_of(rows[row]) for row in throttled.tolist()]
            self._sink.append(
                "events",
                {
                    "time_ns": times[throttled],
                    "kind": ["throttled"] * len(throttled),
                    "subject": ["perf" if cpu is None else f"cpu{cpu}" for cpu in where],
                    "message": ["the kernel throttled sampling"] * len(throttled),
                },
            )
        cpus, last = np.unique(batch.samples.cpu[::-1], return_index=True)  # they are in order
        latest = batch.samples.time_ns[::-1][last]
        self._seen.update(zip(cpus.tolist(), latest.tolist(), strict=True))

    def _word(self, row: int, place: int) -> int:
        """A count in a record; one that cannot be is damage, and counts as one."""
        count = int(self._records.words[int(self._records.at[row]) + place])
        return count if count < 1 << 40 else 1

    def _cpu_of(self, row: int) -> int | None:
        place = self._index.layout.trailer_cpu
        if not place:
            return None
        at = int(self._records.at[row]) + int(self._records.size[row]) - place
        cpu = int(self._records.words[at]) & 0xFFFFFFFF
        return cpu if cpu <= _MAX_CPU else None

    def _gap(self, from_ns: int, to_ns: int, cpu: int | None, lost: int, reason: str) -> None:
        self._sink.append(
            "gaps",
            {
                "from_ns": [from_ns],
                "to_ns": [to_ns],
                "source": ["samples"],
                "cpu": [cpu],
                "lost": [lost],
                "reason": [reason],
            },
        )

    def finish(self) -> None:
        """Add what is only known at the end."""
        # perf tells its losses twice: as they happen (LOST, of any record), and in sum at the
        # end (LOST_SAMPLES, v6.1). The larger is nearer to the truth.
        self._sink.lost(max(self._lost, self._lost_samples))
        if self._lost_samples > self._lost:
            self._gap(
                self._index.first_ns,
                self._index.last_ns,
                None,
                self._lost_samples - self._lost,
                "perf lost samples at times it does not tell",
            )
        missing = sum(self.modules.failures.values())
        if missing:
            self._report.notes.append(
                f"{missing} binaries are not here as they were: their functions are offsets"
            )


FORMAT = ImportFormat(NAME, _detect, _peek, _import, has_sample_times=True)
