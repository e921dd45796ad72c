"""Packet work of each core and the interrupts that ask for it, and cores that are starved.

Interrupts and soft interrupts are read by one observer and in this order: what
asks for work first, then what does it. Read the other way round, work done in
between would look like work not done.
"""

from __future__ import annotations

from pathlib import Path

from nodescope.errors import MalformedSource, SourceError, UsageError
from nodescope.ingest.observation import Observation
from nodescope.quantities import SECOND_NS, parse_cpu_list
from nodescope.recorder.observer import Setting
from nodescope.recorder.watches.interrupts import InterruptWatch
from nodescope.recorder.watches.napi_threads import NapiWatch
from nodescope.recorder.watches.starvation import CoreReading, Episode, StarvationWatch
from nodescope.records.event import Event
from nodescope.records.event_details import StarvedCoreDetails
from nodescope.records.node_tables import SoftnetRow
from nodescope.records.recorder_tables import CORE_STATES
from nodescope.sources.kernel_files import KeptFile, read_text
from nodescope.sources.network.softirqs import Softirqs, parse_softirqs
from nodescope.sources.network.softnet_stat import SoftnetCore, parse_softnet_line
from nodescope.sources.node.identity import read_online_cpus
from nodescope.sources.node.proc_stat import read_cores
from nodescope.sources.places import Places

_IDLE = [CORE_STATES.index(state) + 1 for state in ("idle", "iowait")]
_WHY = {
    "backlog": "up to {episode.backlog} packets lay in its queue",
    "interrupt": "a device interrupted it and no soft interrupt followed",
    "silence": "no soft interrupt ran on it while it was busy",
    "thread": "{names} waited for it and was hardly let run",
}


class SoftnetObserver:
    """A row for each core whose numbers moved; an event for each that starves."""

    interval_ns = SECOND_NS
    patient = False

    def __init__(self, setting: Setting) -> None:
        self._places = setting.places
        self._files: tuple[KeptFile, KeptFile] | None = None
        self._interrupts = InterruptWatch(setting.places)
        self._threads = NapiWatch(setting.places.proc)
        self._watch = StarvationWatch(read_cores_apart(setting.places))
        self._whole = True
        self._lines: list[bytes] = []
        self._cores: list[SoftnetCore] = []
        self._reported: dict[int, tuple[int, int, int, SoftnetCore]] = {}  # by core

    def begin_segment(self) -> None:
        self._whole = True

    def observe(self, now_ns: int) -> Observation:
        said = Observation()
        softnet_file, softirqs_file = self._open()
        self._interrupts.observe(now_ns, said, whole=self._whole)
        cores = self._parse_softnet(softnet_file.read(), softnet_file.path)
        softirqs = parse_softirqs(softirqs_file.read(), softirqs_file.path)
        self._judge(now_ns, cores, softirqs, said)
        for core in cores:
            self._say(now_ns, core, softirqs, said)
        self._whole = False
        return said

    def close(self) -> None:
        self._interrupts.close()
        for file in self._files or ():
            file.close()
        self._files = None

    def _open(self) -> tuple[KeptFile, KeptFile]:
        if self._files is None:
            softirqs = KeptFile(self._places.proc / "softirqs")
            try:
                self._files = KeptFile(self._places.proc / "net/softnet_stat"), softirqs
            except SourceError:
                softirqs.close()
                raise
        return self._files

    def _parse_softnet(self, content: bytes, path: Path) -> list[SoftnetCore]:
        """Only the lines that changed are parsed again."""
        lines = content.splitlines()
        told = len(lines) > 0 and len(lines[0].split()) > 12
        if told and len(lines) == len(self._lines):
            self._cores = [
                core if line == before else parse_softnet_line(line, position, (), path)
                for position, (core, line, before) in enumerate(
                    zip(self._cores, lines, self._lines, strict=True)
                )
            ]
        else:
            online = () if told else read_online_cpus(self._places.sys)
            self._cores = [
                parse_softnet_line(line, position, online, path)
                for position, line in enumerate(lines)
            ]
        self._lines = lines
        return self._cores

    def _judge(
        self, now_ns: int, cores: list[SoftnetCore], softirqs: Softirqs, said: Observation
    ) -> None:
        received = self._interrupts.received
        threads = self._threads.find_held_up(now_ns)
        try:
            readings = [
                CoreReading(
                    core.cpu,
                    softirqs.net_rx[core.cpu],
                    core.processed,
                    softirqs.every[core.cpu],
                    received[core.cpu],
                    core.backlog,
                    tuple(threads.get(core.cpu, ())),
                )
                for core in cores
            ]
        except KeyError as error:
            path = self._places.proc / "softirqs"
            raise MalformedSource(path, f"no column for core {error}") from error
        suspects = self._watch.note(now_ns, readings)
        for episode in self._watch.decide(self._read_idle(suspects) if suspects else {}):
            said.events.append(_event(episode))

    def _read_idle(self, suspects: list[int]) -> dict[int, int]:
        wanted = set(suspects)
        return {
            row[0]: sum(row[column] for column in _IDLE)
            for row in read_cores(self._places.proc).tolist()
            if row[0] in wanted
        }

    def _say(self, now_ns: int, core: SoftnetCore, softirqs: Softirqs, said: Observation) -> None:
        cpu = core.cpu
        net_rx, net_tx = softirqs.net_rx[cpu], softirqs.net_tx[cpu]
        starved_ns = self._watch.starved_ns(cpu)
        found = (net_rx, net_tx, starved_ns, core)  # what moves most is compared first
        if found == self._reported.get(cpu) and not self._whole:
            return
        self._reported[cpu] = found
        row = SoftnetRow(
            time_ns=now_ns,
            cpu=cpu,
            processed=core.processed,
            dropped=core.dropped,
            squeezed=core.squeezed,
            backlog=core.backlog,
            net_rx=net_rx,
            net_tx=net_tx,
            starved_ns=starved_ns,
        )
        said.add(row)


def read_cores_apart(places: Places) -> set[int]:
    """The cores that scheduling leaves alone."""
    apart: set[int] = set()
    for name in ("isolated", "nohz_full"):
        try:
            apart.update(parse_cpu_list(read_text(places.sys / f"devices/system/cpu/{name}") or ""))
        except UsageError:  # `(null)`, on kernels that can and were not told to
            continue
    return apart


def _event(episode: Episode) -> Event:
    seconds = round(episode.length_ns / SECOND_NS, 1)
    names = ", ".join(episode.threads)
    why = "; ".join(_WHY[each].format(episode=episode, names=names) for each in episode.evidence)
    still = "" if episode.over else " and still does"
    return Event(
        episode.from_ns,
        "core_starved",
        f"cpu{episode.cpu}",
        f"core {episode.cpu} served no packets for {seconds} s{still}: {why}",
        cpu=episode.cpu,
        details=StarvedCoreDetails(
            core=episode.cpu,
            seconds=seconds,
            over=episode.over,
            evidence=episode.evidence,
            backlog=episode.backlog,
            interrupts=episode.interrupts,
            threads=episode.threads,
        ),
    )


def make(setting: Setting) -> SoftnetObserver:
    """The observer."""
    return SoftnetObserver(setting)
