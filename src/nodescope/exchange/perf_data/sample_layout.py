"""Where the samples of an event hold what, from its sample type.

The order of fields is that of `PERF_RECORD_SAMPLE` in `perf_event.h`. All up to
the call chain have a fixed size, unless counters of a whole group are read into
every sample (`PERF_SAMPLE_READ` with `PERF_FORMAT_GROUP`, `perf record -e '{…}:S'`): then
the samples say how many. What follows the chain is passed over by the record's size; the cgroup is
found from the end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from nodescope.errors import UsageError
from nodescope.exchange.perf_data.header import PerfEvent
from nodescope.perf.decode import RecordLayout

IP, TID, TIME, ADDR, READ, CALLCHAIN, ID, CPU, PERIOD = (1 << bit for bit in range(9))
STREAM_ID, RAW, BRANCH_STACK = 1 << 9, 1 << 10, 1 << 11
IDENTIFIER, CGROUP, DATA_PAGE_SIZE, CODE_PAGE_SIZE, AUX = (
    1 << 16, 1 << 21, 1 << 22, 1 << 23, 1 << 20,
)  # fmt: skip
_BEFORE_READ = (IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD)
_TRAILER = (TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER)
_FORMAT_GROUP = 1 << 3
_FORMAT_TIMES = (1 << 0, 1 << 1)  # enabled, running
_FORMAT_OF_MEMBER = (1 << 2, 1 << 4)  # id, lost
_FORMAT_EXTRAS = (*_FORMAT_TIMES, *_FORMAT_OF_MEMBER)


@dataclass(frozen=True, slots=True)
class EventLayout:
    """The layout of an event's records, and where they say which event they are of."""

    layout: RecordLayout
    id: int  # word of samples; 0: they do not say
    trailer_id: int  # words from the end of other records
    trailer_cpu: int
    group: int = 0  # word of the number of counters in each sample; 0: there are none
    group_words: int = 1  # of each counter

    def with_group(self, counters: int) -> EventLayout:
        """Return the layout of samples with so many counters before their call chain."""
        chain = self.layout.chain and self.layout.chain + counters * self.group_words
        return replace(self, layout=replace(self.layout, chain=chain), group=0)


def find_layout(event: PerfEvent) -> EventLayout:
    """Compute the layout; refuses by name what cannot be placed in time or in a process."""
    kind = event.sample_type
    if not kind & TIME or not kind & TID:
        missing = "time" if not kind & TIME else "process"
        raise UsageError(
            f"samples of event {event.label} do not carry their {missing}",
            hint="record with `perf record -T`, or system-wide with -a",
        )
    position: dict[int, int] = {}
    at = 1
    for bit in _BEFORE_READ:
        if kind & bit:
            position[bit] = at
            at += 1
    group = 0
    if kind & READ and event.read_format & _FORMAT_GROUP:
        group = at
        at += 1 + sum(bool(event.read_format & bit) for bit in _FORMAT_TIMES)
    elif kind & READ:
        at += 1 + sum(bool(event.read_format & bit) for bit in _FORMAT_EXTRAS)
    after_cgroup = sum(bool(kind & bit) for bit in (DATA_PAGE_SIZE, CODE_PAGE_SIZE))
    trailer = [bit for bit in _TRAILER if kind & bit] if event.sample_id_all else []

    def from_end(bit: int) -> int:
        return len(trailer) - trailer.index(bit) if bit in trailer else 0

    layout = RecordLayout(
        pid=position[TID],
        time=position[TIME],
        cpu=position.get(CPU, 0),
        chain=at if kind & CALLCHAIN else 0,
        ip=0 if kind & CALLCHAIN else position.get(IP, 0),
        cgroup=1 + after_cgroup if kind & CGROUP and not kind & AUX else 0,
        trailer=len(trailer),
        trailer_time=from_end(TIME),
        back=0,  # perf names return addresses themselves: a capture shows what perf shows
    )
    if not layout.chain and not layout.ip:
        raise UsageError(f"samples of event {event.label} carry no address")
    identifier = IDENTIFIER if kind & IDENTIFIER else ID
    return EventLayout(
        layout,
        position.get(identifier, 0),
        from_end(identifier),
        from_end(CPU),
        group,
        1 + sum(bool(event.read_format & bit) for bit in _FORMAT_OF_MEMBER),
    )
