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

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodescope.archive.interning import Interner
from nodescope.archive.retention import Retention
from nodescope.archive.writer import ArchiveWriter
from nodescope.lab.scenario import Truth
from nodescope.lab.synthetic_loop import SyntheticLoop
from nodescope.numbering import Sequences

SECOND = 1_000_000_000
SEGMENT_S = 120
TICK_NS = 100_000
END_WALL_NS = 1_780_000_000 * SECOND
TICKS_PER_S = 100  # of /proc/stat
I64 = NDArray[np.int64]


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
    """What a diagnosis of it must say."""
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
    offset = END_WALL_NS - shape.uptime_s * SECOND
    clock = HandClock((shape.uptime_s - shape.seconds) * SECOND, offset)
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
        return self.zero_ns + round(second * SECOND)

    def held(self, second: int) -> bool:
        """Whether the core is held in that second."""
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

    def _append(self, table: str, rows: list[dict[str, Any]]) -> None:
        if rows:
            names = dict.fromkeys(name for row in rows for name in row)
            self.out.append(table, {name: [row.get(name) for row in rows] for name in names})

    def _heartbeats(self, start: int, length: int) -> None:
        for second in range(start, start + length, 5):
            at = self.at(second)
            self._append("heartbeats", [
                dict(time_ns=at, wall_ns=at + self.clock.offset, cpu_ns=second * 10_000_000,
                     rss_bytes=100_000_000, written_bytes=0, samples=0, lost=0, late_ns=0,
                     frequency_hz=97)
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
        interner = Interner(self.frames, self.paths, self.comms)
        profile = interner.intern(comm, mode, path, np.zeros(len(path), np.int64))
        for table, columns in interner.take_new_rows().items():
            self.out.append(table, columns)
        pid = 1000 + comm * 10
        self.out.append("samples", {
            "cpu": cpu.astype(np.int16),
            "tick": ((self.at(start) + time * SECOND) // TICK_NS).astype(np.int64),
            "pid": pid.astype(np.int32),
            "thread": np.zeros(len(cpu), np.int32),
            "cgroup": (np.zeros(len(cpu), np.int32), ["/"]),
            "profile": profile.astype(np.int32),
        })  # fmt: skip

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
        states = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest",
                  "guest_nice")  # fmt: skip
        columns: dict[str, Any] = {
            "cpu": np.tile(np.arange(shape.cores, dtype=np.int16), length),
            "time_ns": np.repeat(self.at(start) + np.arange(length) * SECOND, shape.cores),
        }
        self.out.append("cores", columns | {name: whole[:, at] for at, name in enumerate(states)})

    # -- the node ----------------------------------------------------------

    def _network(self, start: int, length: int) -> None:
        shape, at = self.shape, self.at(start)
        self._append("nics", [
            dict(time_ns=at, nic="eth0", driver="ena", version="2.12.0g", bus="0000:20:03.0",
                 up=True, carrier=True, carrier_changes=2, rx_queues=shape.queues,
                 tx_queues=shape.queues, tx_timeouts=self._resets_before(start))
        ])  # fmt: skip
        self._append("nic_queues", [
            dict(time_ns=at, nic="eth0", queue=queue, direction="rx+tx", irq=80 + queue,
                 irq_name=f"eth0-Tx-Rx-{queue}", affinity=str(core), effective=str(core))
            for queue in range(shape.queues)
            for core in [self._core_of(queue)]
        ])  # fmt: skip
        rows, starved = [], []
        for second in range(start, start + length):
            moved = self.random.poisson(200, shape.cores)
            if self.held(second):
                moved[shape.held_core] = 0
            if self.held(second - 1):
                self.starved[shape.held_core] += SECOND
            self.net_rx += moved
            rows.append(self.net_rx.copy())
            starved.append(self.starved.copy())
        whole = np.concatenate(rows)
        self.out.append("softnet", {
            "time_ns": np.repeat(at + np.arange(length) * SECOND, shape.cores),
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
            self._append("memory_cgroups", [
                dict(time_ns=at, version="v1", tracked=dying + shape.visible,
                     visible=shape.visible, dying=dying)
            ])  # fmt: skip
            faults = 2_000_000 + second * 900 + int(self.random.integers(0, 300))
            self._append("memory", [
                dict(time_ns=at, name="pgfault", value=faults),
                dict(time_ns=at, name="Percpu", value=251_000 * dying),
                dict(time_ns=at, name="compact_stall", value=3),
            ])  # fmt: skip
        if not shape.healthy:
            self._append("dying_parents", [
                dict(time_ns=self.at(start), path="/ecs", dying=self._zombies(start),
                     kind="shmem", held_bytes=4096 * self._zombies(start))
            ])  # fmt: skip
            self._append("cgroup_churn", self.loop.churn(start, start + length))

    def _units(self, start: int) -> None:
        """The image has presets: `disable *`, and `enable ecs.service`."""
        healthy = dict(load="loaded", active="active", sub="running", result="success", restarts=0,
                       file_state="enabled", preset="disabled", why_not_started="started",
                       failures=0, successes=0, starts=1)  # fmt: skip
        rows: list[dict[str, Any]] = [
            dict(healthy, unit="kubelet.service", vendor="administrator",
                 wanted_by="multi-user.target", main_pid=812),
            dict(healthy, unit="containerd.service", vendor="vendor",
                 wanted_by="kubelet.service multi-user.target", main_pid=700),
            dict(healthy, unit="docker.service", vendor="vendor", wanted_by="multi-user.target",
                 main_pid=720),
        ]  # fmt: skip
        if not self.shape.healthy:
            rows.append(
                dict(healthy, unit="ecs.service", vendor="vendor", preset="enabled",
                     wanted_by="multi-user.target", main_pid=901)
            )  # fmt: skip
        for row in rows:
            row |= {"time_ns": self.at(start), "cgroup": f"/system.slice/{row['unit']}"}
        self._append("units", rows)

    def _containers(self, start: int, length: int) -> None:
        if not self.shape.healthy:
            self._append("containers", self.loop.containers(start, start + length))
            self._append("events", self.loop.events(start, start + length))

    def _kernel_log(self, start: int, length: int) -> None:
        shape = self.shape
        self._append("kernel_log", [
            dict(time_ns=self.at(start), sequence=start, level=6, facility=0, user=False,
                 text="IPv6: ADDRCONF(NETDEV_CHANGE): veth0: link becomes ready")
        ])  # fmt: skip
        if shape.healthy:
            return
        for number, reset in enumerate(shape.resets):
            if not start <= reset < start + length:
                continue
            paused = (
                f"TX q {shape.queue} is paused for too long (threshold 5000000). Time since last "
                f"napi {shape.held_s * 1_000_000} usec. napi scheduled: 1"
            )
            lines = [
                (reset, "nic_tx_timeout", paused,
                 f'{{"driver":"ena","queue":{shape.queue},"napi_scheduled":true}}'),
                (reset + 0.2, "nic_reset", "Trigger reset is on", '{"driver":"ena"}'),
                (reset + 0.9, "nic_reset_done", "Device reset completed successfully",
                 '{"driver":"ena"}'),
            ]  # fmt: skip
            self._append("kernel_log", [
                dict(time_ns=self.at(second), sequence=start + 1 + number * 10 + place, level=4,
                     facility=0, user=False, text=f"ena 0000:20:03.0 eth0: {text}")
                for place, (second, _, text, _) in enumerate(lines)
            ])  # fmt: skip
            self._append("events", [
                dict(time_ns=self.at(second), kind=kind, subject="eth0", message=text,
                     details=details)
                for second, kind, text, details in lines
            ])  # fmt: skip
            self._append("events", [
                dict(time_ns=self.at(reset + 9), kind="job_failed", subject=f"raysubmit_{number}",
                     message="the job failed: RaySystemError: connection lost", details=None)
            ])  # fmt: skip
