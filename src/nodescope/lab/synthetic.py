"""The story in true proportions, made by a script: **synthetic**, no machine ran it.

A node of 96 cores, twelve hours: `ecs-agent`, a container of the base image, ends
every 21 s and leaves a memory cgroup behind each time (`synthetic_loop`); kubelet reads
statistics and walks them all; now and then that holds core 39, which serves queue 5 of
eth0, for six seconds, and the driver resets the device; a job fails on it. Everything is
written through the archive's own writer, at the rate and in the tables a recorder
would use. `Shape.healthy` is the same node without the loop, the zombies and what
follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from nodescope.archive.interning import Interner
from nodescope.archive.retention import Retention
from nodescope.archive.writer import ArchiveWriter
from nodescope.ingest.event_rows import event_rows
from nodescope.ingest.job_events import job_event
from nodescope.ingest.kernel_events import KernelEvents, kernel_log_row, line_of
from nodescope.ingest.samples import SampleRows, intern_samples
from nodescope.ingest.unit_rows import unit_row
from nodescope.lab.scenario import Truth
from nodescope.lab.synthetic_loop import SyntheticLoop
from nodescope.numbering import Sequences
from nodescope.quantities import SECOND_NS
from nodescope.records.columns import columns_by_table
from nodescope.records.event import Event
from nodescope.records.node_tables import (
    DyingParentRow,
    MemoryCgroupsRow,
    MemoryRow,
    NicQueueRow,
    NicRow,
)
from nodescope.records.recorder_tables import CoreRow, HeartbeatRow
from nodescope.records.table import Row
from nodescope.sources.jobs.ray import FailedJob
from nodescope.sources.kernel_log.kmsg import Record
from nodescope.sources.systemd.lives import Life
from nodescope.sources.systemd.unit import Unit

SEGMENT_S = 120
TICK_NS = 100_000
END_WALL_NS = 1_780_000_000 * SECOND_NS
TICKS_PER_S = 100  # of /proc/stat
_JOB_FAILED = "the job failed: RaySystemError: connection lost"


@dataclass(frozen=True, slots=True)
class Shape:
    """The proportions of the node and of its incident."""

    cores: int = 96
    seconds: int = 12 * 3600
    dying: int = 68_440  # at the last reset
    visible: int = 240
    loop_s: int = 21
    held_core: int = 39
    held_s: int = 6
    queue: int = 5
    queues: int = 32
    resets: tuple[int, ...] = (2 * 3600 + 671, 6 * 3600 + 2405, 11 * 3600 + 1333)  # seconds
    busy: float = 0.11
    healthy: bool = False
    seed: int = 39

    @property
    def uptime_s(self) -> int:
        """At the end; at the last reset as many loops as there were zombies."""
        return self.dying * self.loop_s + self.seconds - max(self.resets)

    def small(self) -> Shape:
        """The same in little, for a test: two segments before, one with the reset."""
        return replace(self, cores=8, held_core=3, queue=1, queues=4, seconds=1200, resets=(1000,))


def story_truth(shape: Shape) -> Truth:
    """Return the conclusions that a diagnosis of the story must reach."""
    simulated = ("all of it: written by a script",)
    if shape.healthy:
        return Truth("synthetic", healthy=True, finding=False, simulated=simulated)
    return Truth(
        "synthetic", healthy=False, finding=True, roots=("ecs.service",),
        mechanisms=("memcg_walk_by_read",), cpu=shape.held_core, simulated=simulated,
    )  # fmt: skip


@dataclass(slots=True)
class HandClock:
    """A clock that stands where it is put."""

    monotonic: int
    offset: int

    def monotonic_ns(self) -> int:
        return self.monotonic

    def wall_ns(self) -> int:
        return self.monotonic + self.offset


# comm, cgroup, frames: `k:` is the kernel's. What a node of this kind runs.
_USER = "/usr/bin/"
_WALK = (
    "kubelet",
    ("kubelet!main.main", "kubelet!cadvisor/manager.housekeeping",
     "kubelet!libcontainer/cgroups/fs.getStats", "k:entry_SYSCALL_64_after_hwframe",
     "k:do_syscall_64", "k:ksys_read", "k:vfs_read", "k:seq_read", "k:memcg_numa_stat_show",
     "k:mem_cgroup_node_nr_lru_pages", "k:mem_cgroup_nr_lru_pages"),
)  # fmt: skip
_USUAL: tuple[tuple[str, float, tuple[str, ...]], ...] = (
    ("python3", 0.62, ("python3!_PyEval_EvalFrameDefault", "libtorch.so!at::native::mm")),
    ("python3", 0.12, ("python3!_PyEval_EvalFrameDefault", "libtorch.so!c10::parallel_for")),
    ("python3", 0.04, ("python3!_PyEval_EvalFrameDefault", "k:entry_SYSCALL_64_after_hwframe",
                       "k:do_syscall_64", "k:ksys_read", "k:vfs_read", "k:filemap_read",
                       "k:copy_page_to_iter")),
    ("raylet", 0.05, ("raylet!boost::asio::io_context::run", "raylet!ray::NodeManager::Poll")),
    ("containerd", 0.04, ("containerd!runtime.mcall", "containerd!ttrpc.serve")),
    ("kubelet", 0.004, ("kubelet!main.main", "kubelet!runtime.gcBgMarkWorker")),
    ("kubelet", 0.002, ("kubelet!main.main", "k:entry_SYSCALL_64_after_hwframe",
                        "k:do_syscall_64", "k:ksys_read", "k:vfs_read", "k:seq_read")),
    ("ksoftirqd/5", 0.02, ("k:kthread", "k:run_ksoftirqd", "k:handle_softirqs",
                           "k:net_rx_action", "k:ena_io_poll")),
    ("python3", 0.06, ("python3!_PyEval_EvalFrameDefault", "k:asm_exc_page_fault",
                       "k:exc_page_fault", "k:handle_mm_fault", "k:do_anonymous_page")),
    ("systemd", 0.004, ("systemd!sd_event_run", "k:entry_SYSCALL_64_after_hwframe",
                        "k:do_syscall_64", "k:do_epoll_wait")),
)  # fmt: skip


def write_story(
    path: Path, shape: Shape, progress: Callable[[int, int], None] = lambda done, total: None
) -> None:
    """Write the recording; the truth is written beside it by whoever asked."""
    offset = END_WALL_NS - shape.uptime_s * SECOND_NS
    clock = HandClock((shape.uptime_s - shape.seconds) * SECOND_NS, offset)
    node = {"name": "ip-10-0-39-1", "boot_id": "synthetic", "synthetic": True, "cpus": shape.cores}
    keep = Retention(10**18, 1 << 50)
    with ArchiveWriter.open(path, node=node, clock=clock, tick_ns=TICK_NS, retention=keep) as out:
        story = _Story(shape, clock, out)
        for start in range(0, shape.seconds, SEGMENT_S):
            progress(start, shape.seconds)
            story.segment(start, min(SEGMENT_S, shape.seconds - start))
            out.seal_segment()


class _Story:
    """Writes one segment after another."""

    def __init__(self, shape: Shape, clock: HandClock, out: ArchiveWriter) -> None:
        self.shape = shape
        self.clock = clock
        self.out = out
        self.random = np.random.default_rng(shape.seed)
        self.zero_ns = clock.monotonic  # of the recording
        self.ticks = np.zeros((shape.cores, 10), np.int64)
        self.net_rx = np.zeros(shape.cores, np.int64)
        self.starved = np.zeros(shape.cores, np.int64)
        before = (shape.uptime_s - shape.seconds) // shape.loop_s
        self.kernel = KernelEvents()
        self.loop = SyntheticLoop(shape.loop_s, before, self.at, clock.offset)
        self.comms = sorted({each[0] for each in _USUAL} | {_WALK[0]})
        self.frames: list[tuple[str, str, bool]] = [("[unknown]", "[unknown]", False)]
        self.paths = Sequences()
        for stack in (*(each[2] for each in _USUAL), _WALK[1]):
            self.paths.append(tuple(self._frame(text) for text in stack))

    def _frame(self, text: str) -> int:
        module, _, name = text.partition("!")
        frame = ("[kernel]", text[2:], True) if text[:2] == "k:" else (_USER + module, name, False)
        if frame not in self.frames:
            self.frames.append(frame)
        return self.frames.index(frame)

    def at(self, second: float) -> int:
        """A second of the recording on the monotonic clock."""
        return self.zero_ns + round(second * SECOND_NS)

    def held(self, second: int) -> bool:
        """Return whether the core is pegged in that second."""
        return not self.shape.healthy and any(
            reset - self.shape.held_s <= second < reset for reset in self.shape.resets
        )

    def segment(self, start: int, length: int) -> None:
        """Everything of two minutes."""
        self.clock.monotonic = self.at(start)
        self._heartbeats(start, length)
        self._samples(start, length)
        self._cores(start, length)
        self._network(start, length)
        self._memory(start, length)
        self._units(start)
        self._containers(start, length)
        self._kernel_log(start, length)
        self.clock.monotonic = self.at(start + length)

    def _append(self, rows: Iterable[Row]) -> None:
        for table, columns in columns_by_table(rows).items():
            self.out.append(table, columns)

    def _heartbeats(self, start: int, length: int) -> None:
        for second in range(start, start + length, 5):
            at = self.at(second)
            self._append([
                HeartbeatRow(time_ns=at, wall_ns=at + self.clock.offset,
                             cpu_ns=second * 10_000_000, rss_bytes=100_000_000, written_bytes=0,
                             samples=0, lost=0, late_ns=0, frequency_hz=97)
            ])  # fmt: skip

    # -- samples and cores -------------------------------------------------

    def _samples(self, start: int, length: int) -> None:
        shape, random = self.shape, self.random
        count = random.poisson(shape.busy * shape.cores * 97 * length)
        weights = np.array([each[1] for each in _USUAL])
        kind = random.choice(len(_USUAL), count, p=weights / weights.sum())
        time = np.sort(random.random(count)) * length
        cpu = random.integers(0, shape.cores, count)
        comm = np.array([self.comms.index(each[0]) for each in _USUAL])[kind]
        mode = np.array([each[2][-1].startswith("k:") for each in _USUAL], np.int64)[kind]
        path = kind + 1
        extra_time = np.concatenate(
            [second - start + np.arange(97) / 97 for second in range(start, start + length)
             if self.held(second)] or [np.empty(0)]
        )  # fmt: skip
        if len(extra_time):
            inside = np.isin(
                (time + start).astype(int), np.unique((extra_time + start).astype(int))
            )
            kept = ~(inside & (cpu == shape.held_core))
            time, cpu, comm, mode, path = (each[kept] for each in (time, cpu, comm, mode, path))
            more = len(extra_time)
            time = np.concatenate((time, extra_time))
            cpu = np.concatenate((cpu, np.full(more, shape.held_core)))
            comm = np.concatenate((comm, np.full(more, self.comms.index(_WALK[0]))))
            mode = np.concatenate((mode, np.ones(more, np.int64)))
            path = np.concatenate((path, np.full(more, len(_USUAL) + 1)))
        pid = 1000 + comm * 10
        rows = SampleRows(
            (self.at(start) + time * SECOND_NS).astype(np.int64),
            cpu, pid, pid, comm, mode, path, np.zeros(len(path), np.int64),
            (np.zeros(len(cpu), np.int32), ["/"]),
        )  # fmt: skip
        interner = Interner(self.frames, self.paths, self.comms)
        for table, columns in intern_samples(interner, rows, TICK_NS).items():
            self.out.append(table, columns)

    def _cores(self, start: int, length: int) -> None:
        shape = self.shape
        rows = []
        for second in range(start, start + length):
            busy = self.random.binomial(TICKS_PER_S, shape.busy, shape.cores)
            system = self.random.binomial(busy, 0.15)
            if self.held(second - 1):
                busy[shape.held_core] = system[shape.held_core] = TICKS_PER_S
            self.ticks[:, 0] += busy - system
            self.ticks[:, 2] += system
            self.ticks[:, 3] += TICKS_PER_S - busy
            rows.append(self.ticks.copy())
        whole = np.concatenate(rows)
        cpu = np.tile(np.arange(shape.cores, dtype=np.int16), length)
        time_ns = np.repeat(self.at(start) + np.arange(length) * SECOND_NS, shape.cores)
        columns = dict(zip(CoreRow.names(), (cpu, time_ns, *whole.T), strict=True))
        self.out.append("cores", columns)

    # -- the node ----------------------------------------------------------

    def _network(self, start: int, length: int) -> None:
        shape, at = self.shape, self.at(start)
        self._append([
            NicRow(time_ns=at, nic="eth0", driver="ena", version="2.12.0g", bus="0000:20:03.0",
                   up=True, carrier=True, carrier_changes=2, rx_queues=shape.queues,
                   tx_queues=shape.queues, tx_timeouts=self._resets_before(start))
        ])  # fmt: skip
        self._append(
            NicQueueRow(time_ns=at, nic="eth0", queue=queue, direction="rx+tx", irq=80 + queue,
                        irq_name=f"eth0-Tx-Rx-{queue}", affinity=str(core), effective=str(core))
            for queue in range(shape.queues)
            for core in [self._core_of(queue)]
        )  # fmt: skip
        rows, starved = [], []
        for second in range(start, start + length):
            moved = self.random.poisson(200, shape.cores)
            if self.held(second):
                moved[shape.held_core] = 0
            if self.held(second - 1):
                self.starved[shape.held_core] += SECOND_NS
            self.net_rx += moved
            rows.append(self.net_rx.copy())
            starved.append(self.starved.copy())
        whole = np.concatenate(rows)
        self.out.append("softnet", {
            "time_ns": np.repeat(at + np.arange(length) * SECOND_NS, shape.cores),
            "cpu": np.tile(np.arange(shape.cores, dtype=np.int16), length),
            "processed": whole, "dropped": np.zeros_like(whole), "squeezed": whole // 1000,
            "net_rx": whole, "net_tx": whole // 10, "starved_ns": np.concatenate(starved),
        })  # fmt: skip

    def _core_of(self, queue: int) -> int:
        if queue == self.shape.queue:
            return self.shape.held_core
        return (
            (queue * 3) % self.shape.cores
            if (queue * 3) % self.shape.cores != (self.shape.held_core)
            else 0
        )

    def _resets_before(self, second: int) -> int:
        return 0 if self.shape.healthy else sum(reset < second for reset in self.shape.resets)

    def _zombies(self, second: int) -> int:
        if self.shape.healthy:
            return 17
        loops = (max(self.shape.resets) - second) // self.shape.loop_s
        return self.shape.dying - loops

    def _memory(self, start: int, length: int) -> None:
        shape = self.shape
        for second in range(start, start + length, 10):
            at, dying = self.at(second), self._zombies(second)
            self._append([
                MemoryCgroupsRow(time_ns=at, version="v1", tracked=dying + shape.visible,
                                 visible=shape.visible, dying=dying)
            ])  # fmt: skip
            faults = 2_000_000 + second * 900 + int(self.random.integers(0, 300))
            self._append([
                MemoryRow(time_ns=at, name="pgfault", value=faults),
                MemoryRow(time_ns=at, name="Percpu", value=251_000 * dying),
                MemoryRow(time_ns=at, name="compact_stall", value=3),
            ])  # fmt: skip
        if not shape.healthy:
            self._append([
                DyingParentRow(time_ns=self.at(start), path="/ecs", dying=self._zombies(start),
                               kind="shmem", held_bytes=4096 * self._zombies(start))
            ])  # fmt: skip
            self._append(self.loop.churn(start, start + length))

    def _units(self, start: int) -> None:
        """The image has presets: `disable *`, and `enable ecs.service`."""
        units = [
            _running_unit("kubelet.service", 812, vendor="administrator"),
            _running_unit("containerd.service", 700, wanted_by="kubelet.service"),
            _running_unit("docker.service", 720),
        ]
        if not self.shape.healthy:
            units.append(_running_unit("ecs.service", 901, preset="enabled"))
        at = self.at(start)
        self._append(unit_row(unit, Life(unit.name, starts=1), at) for unit in units)

    def _containers(self, start: int, length: int) -> None:
        if not self.shape.healthy:
            self._append(self.loop.containers(start, start + length))
            self._tell(self.loop.events(start, start + length))

    def _kernel_log(self, start: int, length: int) -> None:
        shape = self.shape
        self._log(start, start, 6, "IPv6: ADDRCONF(NETDEV_CHANGE): veth0: link becomes ready")
        if shape.healthy:
            return
        for number, reset in enumerate(shape.resets):
            if not start <= reset < start + length:
                continue
            paused = (
                f"TX q {shape.queue} is paused for too long (threshold 5000000). Time since last "
                f"napi {shape.held_s * 1_000_000} usec. napi scheduled: 1"
            )
            lines = (
                (reset, paused),
                (reset + 0.2, "Trigger reset is on"),
                (reset + 0.9, "Device reset completed successfully"),
            )
            for sequence, (second, text) in enumerate(lines, start + 1 + number * 10):
                self._log(second, sequence, 4, f"ena 0000:20:03.0 eth0: {text}")
            failed_ns = self.at(reset + 9)
            job = FailedJob(f"raysubmit_{number}", failed_ns + self.clock.offset, _JOB_FAILED)
            self._tell([job_event(job, failed_ns)])

    def _log(self, second: float, sequence: int, level: int, text: str) -> None:
        """Write a line of the kernel's log, and the event it makes."""
        time_ns = self.at(second)
        record = Record(sequence, time_ns, level, 0, text)
        events: list[Event] = []
        self.kernel.add(events, line_of(record, time_ns))
        self._append([kernel_log_row(record, time_ns)])
        self._tell(events)

    def _tell(self, events: list[Event]) -> None:
        self._append(event_rows(events))


def _running_unit(
    name: str, pid: int, *, vendor: str = "vendor", preset: str = "disabled", wanted_by: str = ""
) -> Unit:
    """Return a unit of the image that runs and was started once."""
    return Unit(
        name, load="loaded", active="active", sub="running", result="success", restarts=0,
        main_pid=pid, file_state="enabled", preset=preset, vendor=vendor,
        wanted_by=(*wanted_by.split(), "multi-user.target"), why_not_started="started",
        cgroup=f"/system.slice/{name}",
    )  # fmt: skip
