"""Interrupts of network devices by core: which there are, and where they moved."""

from __future__ import annotations

from collections import Counter

from nodescope.errors import MalformedSource, SourceError
from nodescope.ingest.observation import Observation
from nodescope.quantities import SECOND_NS
from nodescope.records.node_tables import InterruptRow
from nodescope.sources.network.interrupts import QueueInterrupt, assign, read_names
from nodescope.sources.network.irq_counts import CountReader, open_counts, parse_counts
from nodescope.sources.network.nics import is_threaded, list_nics, read_device
from nodescope.sources.places import Places

_FIND_NS = 60 * SECOND_NS  # a reset may give a device other interrupts


def read_queue_interrupts(places: Places) -> list[QueueInterrupt]:
    """All interrupts of the node's network devices."""
    devices = [read_device(places.sys, nic) for nic in list_nics(places.sys)]
    return assign(read_names(places.proc), devices) if devices else []


class InterruptWatch:
    """Reads the counts and says what moved."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._reader: CountReader | None = None
        self._receiving: frozenset[int] = frozenset()
        self._find_at_ns = 0
        self._texts: dict[int, bytes] = {}
        self._counts: dict[int, list[int]] = {}
        self.received: Counter[int] = Counter()
        """By core: how often a device asked it to receive, since the first reading."""

    def observe(self, now_ns: int, said: Observation, *, whole: bool) -> None:
        """Rows of `interrupts` for what moved, or for all."""
        if self._reader is None or now_ns >= self._find_at_ns:
            self._find(now_ns)
        if self._reader is None:
            return
        texts = self._reader.read()
        cpus = self._reader.cpus
        if len(texts) < len(self._texts):
            self._find_at_ns = now_ns  # some are gone: look again next time
        for irq, text in texts.items():
            if text == self._texts.get(irq) and not whole:
                continue
            counts = _parse(text, len(cpus))
            before = self._counts.get(irq)
            if before is None or len(before) != len(counts):
                before = counts
            self._counts[irq] = counts
            for cpu, count, earlier in zip(cpus, counts, before, strict=True):
                if count == earlier and not (whole and count):
                    continue
                said.add(InterruptRow(time_ns=now_ns, irq=irq, cpu=cpu, count=count))
                if irq in self._receiving:
                    self.received[cpu] += max(count - earlier, 0)
        self._texts = texts

    def close(self) -> None:
        """Give the descriptors back."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _find(self, now_ns: int) -> None:
        """Which interrupts there are now. Threads that serve packets need no soft interrupt."""
        self._find_at_ns = now_ns + _FIND_NS
        try:
            found = read_queue_interrupts(self._places)
        except SourceError:  # no sysfs in this container: packet work is told without them
            found = []
        threaded = {
            nic for nic in {each.nic for each in found} if is_threaded(self._places.sys, nic)
        }
        self._receiving = frozenset(
            each.irq for each in found if each.receives and each.nic not in threaded
        )
        irqs = [each.irq for each in found]
        if self._reader is not None and set(irqs) == set(self._counts):
            return
        self.close()
        self._texts = {}
        self._counts = {irq: count for irq, count in self._counts.items() if irq in irqs}
        if irqs:
            try:
                self._reader = open_counts(self._places.proc, self._places.sys, irqs)
            except SourceError:  # they changed under our eyes
                self._find_at_ns = now_ns


def _parse(text: bytes, cores: int) -> list[int]:
    try:
        counts = parse_counts(text)
    except ValueError as error:
        raise MalformedSource("interrupts", f"not counts: {text[:80]!r}") from error
    if len(counts) != cores:
        raise MalformedSource("interrupts", f"{len(counts)} counts for {cores} cores")
    return counts
