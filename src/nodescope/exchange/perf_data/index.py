"""The records of a `perf.data` file in the order of their time.

Every core's records are written in order, but cores are written one after the
other, in rounds, so that a file is only roughly in order. All records are
sorted by time before any is decoded: what a thread was called, and what it had
mapped, when it was sampled then does not depend on which core wrote first.
Times take 8 bytes a record; the records themselves stay where they are.

What perf made up when it started (processes that ran already) carries no time
and comes first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from nodescope.archive.layout import MAX_TIME_NS
from nodescope.arrays import I64, Bool
from nodescope.errors import MalformedSource, UsageError
from nodescope.exchange.perf_data.header import CPUMODE_KERNEL, PerfEvent, PerfHeader
from nodescope.exchange.perf_data.records import FINISHED_ROUND, Records
from nodescope.exchange.perf_data.sample_layout import EventLayout, find_layout
from nodescope.perf.decode import (
    CGROUP,
    COMM,
    EXIT,
    FORK,
    LOST,
    LOST_SAMPLES,
    MMAP2,
    SAMPLE,
    THROTTLE,
)
from nodescope.quantities import DAY_NS, HOUR_NS

MMAP = 1
_MOST_COUNTERS = 1024  # of a group
_MISC_EXEC = 1 << 13  # of FORK: made up by perf, not born of its parent; of MMAP: data
_LONGEST_NS = 30 * DAY_NS  # no capture is longer: what is further away is damage
_MARGIN_NS = HOUR_NS  # by which other records may precede or follow all samples
# Words without the trailer, with the shortest name where there is one.
_LEAST = {MMAP: 6, LOST: 3, COMM: 3, EXIT: 4, THROTTLE: 4, FORK: 4, MMAP2: 10, LOST_SAMPLES: 2,
          CGROUP: 3}  # fmt: skip
_OWN_TIME = (EXIT, FORK)  # in their third word, trailer or not


@dataclass(slots=True)
class Index:
    """Rows of `Records` that count, sorted by time."""

    rows: I64
    time_ns: I64
    layout: EventLayout
    events: list[PerfEvent]  # whose samples are taken
    first_ns: int  # of all samples
    last_ns: int
    kernel_text: int | None = None  # where the kernel's first function was
    left_out: dict[str, int] = field(default_factory=dict)  # samples, by event
    malformed: int = 0
    out_of_order: int = 0

    def batches(self, size: I64, batch_words: int) -> Iterator[slice]:
        """Runs of rows with about that many words each."""
        ends = np.cumsum(size[self.rows])
        start = 0
        while start < len(self.rows):
            before = int(ends[start - 1]) if start else 0
            end = int(np.searchsorted(ends, before + batch_words, "left")) + 1
            yield slice(start, min(end, len(self.rows)))
            start = end


@dataclass(frozen=True, slots=True)
class Chosen:
    """The samples of a file that are taken, in file order."""

    rows: I64  # of `Records`
    time_ns: I64
    layout: EventLayout
    events: list[PerfEvent]
    left_out: dict[str, int]
    malformed: int


def choose_samples(records: Records, header: PerfHeader, path: str) -> Chosen:
    """Choose events, and find their samples' times."""
    layouts = _find_layouts(header, path)
    sample_rows = np.flatnonzero(records.kind == SAMPLE)
    owner, malformed = _owners(records, sample_rows, header.events, layouts, path)
    chosen = _choose_events(header.events, layouts, owner)
    if not chosen:
        raise MalformedSource(path, "it holds no samples")
    layout = layouts[chosen[0]]
    assert layout is not None
    counts = np.bincount(owner[owner >= 0], minlength=len(header.events))
    left_out = {
        header.events[number].label: int(count)
        for number, count in enumerate(counts)
        if count and number not in chosen
    }
    wanted = sample_rows[np.isin(owner, chosen)]
    if layout.group:
        wanted, layout, odd = _of_one_group(records, wanted, layout)
        malformed += odd
    whole = records.size[wanted] >= layout.layout.least
    malformed += int(len(whole) - np.count_nonzero(whole))
    wanted = wanted[whole]
    times = records.read_words(records.at[wanted] + layout.layout.time).astype(np.int64)
    possible = _plausible(times)
    malformed += int(len(possible) - np.count_nonzero(possible))
    wanted, times = wanted[possible], times[possible]
    if not len(wanted):
        raise MalformedSource(path, "it holds no samples that are whole")
    events = [header.events[number] for number in chosen]
    return Chosen(wanted, times, layout, events, left_out, malformed)


def _of_one_group(records: Records, rows: I64, layout: EventLayout) -> tuple[I64, EventLayout, int]:
    """Return the samples with as many counters as most have, their layout, and how many others."""
    rows = rows[records.size[rows] > layout.group]
    counters = records.read_words(records.at[rows] + layout.group).astype(np.int64)
    counters[(counters < 0) | (counters > _MOST_COUNTERS)] = 0
    most = int(np.bincount(counters).argmax()) if len(counters) else 0
    same = counters == most
    return rows[same], layout.with_group(most), int(len(same) - np.count_nonzero(same))


def make_index(records: Records, header: PerfHeader, path: str) -> Index:
    """Choose events, find all times, and sort."""
    chosen = choose_samples(records, header, path)
    layout, wanted, times = chosen.layout, chosen.rows, chosen.time_ns
    others, other_times, cut, text = _side_band(records, layout, wanted, times)
    rows = np.concatenate((others, wanted))
    time_ns = np.concatenate((other_times, times))
    order = np.argsort(time_ns, kind="stable")
    rows, time_ns = rows[order], time_ns[order]
    kept = _without_early_ends(records, layout, rows, time_ns)
    return Index(
        rows[kept],
        time_ns[kept],
        layout,
        chosen.events,
        int(times.min()),
        int(times.max()),
        text,
        chosen.left_out,
        chosen.malformed + cut,
        _count_late(records, wanted, times),
    )


def _find_layouts(header: PerfHeader, path: str) -> list[EventLayout | None]:
    if not header.events:
        raise MalformedSource(path, "it does not say which events it is of")
    layouts: list[EventLayout | None] = []
    refused: UsageError | None = None
    for event in header.events:
        try:
            layouts.append(find_layout(event))
        except UsageError as error:
            layouts.append(None)
            refused = refused or error
    if refused is not None and not any(layouts):
        raise MalformedSource(path, str(refused), hint=refused.hint)
    return layouts


def _owners(
    records: Records,
    rows: I64,
    events: list[PerfEvent],
    layouts: list[EventLayout | None],
    path: str,
) -> tuple[npt.NDArray[np.int64], int]:
    """Which event each sample is of, -1 where that cannot be told."""
    if len(events) == 1:
        return np.zeros(len(rows), np.int64), 0
    places = {layout.id for layout in layouts if layout is not None}
    if len(places) != 1:
        raise MalformedSource(path, "its events put their ids at different places")
    place = places.pop()
    if not place:
        same = {layout.layout for layout in layouts if layout is not None}
        if len(same) > 1:
            raise MalformedSource(path, "its samples do not say which event they are of")
        return np.zeros(len(rows), np.int64), 0
    known = sorted((identifier, number) for number, event in enumerate(events)
                   for identifier in event.ids)  # fmt: skip
    owner = np.full(len(rows), -1, np.int64)
    if known and len(rows):
        fits = records.size[rows] > place
        at = np.where(fits, records.at[rows] + place, 0)
        identifiers = np.array([one for one, _ in known], np.uint64)
        numbers = np.array([number for _, number in known], np.int64)
        found = records.read_words(at)
        position = np.minimum(np.searchsorted(identifiers, found), len(identifiers) - 1)
        right = fits & (identifiers[position] == found)
        owner[right] = numbers[position[right]]
    return owner, int(np.count_nonzero(owner < 0))


def _choose_events(
    events: list[PerfEvent], layouts: list[EventLayout | None], owner: I64
) -> list[int]:
    """The events whose samples say where CPU time went; else the first that has any.

    Mixed with others, such as page faults, a share would not be one of time.
    """
    present = [int(number) for number in np.unique(owner[owner >= 0])]
    usable = [number for number in present if layouts[number] is not None]
    timed = [number for number in usable if events[number].measures_cpu_time]
    first = (timed or usable)[:1]
    return [
        number
        for number in (timed if first and first == timed[:1] else first)
        if layouts[number] == layouts[first[0]]
    ]


def _plausible(times: I64) -> Bool:
    possible: Bool = (times > 0) & (times <= MAX_TIME_NS)
    if possible.any():
        middle = int(np.median(times[possible]))
        possible &= np.abs(np.where(possible, times, 0) - middle) < _LONGEST_NS
    return possible


def _side_band(
    records: Records, layout: EventLayout, samples: I64, times: I64
) -> tuple[I64, I64, int, int | None]:
    """Rows of the other records that matter, their times, how many are cut, and `_text`."""
    kinds = np.zeros(256, np.int64)
    for number, least in _LEAST.items():
        kinds[number] = least + (0 if number in _OWN_TIME else layout.layout.trailer)
    rows = np.flatnonzero((records.kind != SAMPLE) & (records.kind < len(kinds)))
    rows = rows[kinds[records.kind[rows]] > 0]
    whole = records.size[rows] >= kinds[records.kind[rows]]
    cut = int(len(whole) - np.count_nonzero(whole))
    rows = rows[whole]
    kind, misc, at = records.kind[rows], records.misc[rows], records.at[rows]

    of_kernel = ((kind == MMAP) | (kind == MMAP2)) & (misc & 7 == CPUMODE_KERNEL)
    text = _find_kernel_text(records, rows[of_kernel])
    unwanted = of_kernel | (((kind == MMAP) | (kind == MMAP2)) & (misc & _MISC_EXEC != 0))
    unwanted |= (kind == FORK) & (misc & _MISC_EXEC != 0)
    rows, kind, at = rows[~unwanted], kind[~unwanted], at[~unwanted]

    own = np.isin(kind, _OWN_TIME)
    if layout.layout.trailer_time:
        place = np.where(own, at + 3, at + records.size[rows] - layout.layout.trailer_time)
        found = records.words[place].astype(np.int64)
    else:  # no `sample_id_all`: as late as the sample before it in the file
        latest = np.maximum.accumulate(times)
        before = np.searchsorted(samples, rows) - 1
        found = np.where(before >= 0, latest[np.maximum(before, 0)], 0)
    first_ns, last_ns = int(times.min()), int(times.max())
    near = (found > first_ns - _MARGIN_NS) & (found < last_ns + _MARGIN_NS)
    base = int(found[near].min(initial=first_ns)) - 1
    found = np.where(near, found, np.where(found < first_ns, base, last_ns + 1))
    return rows, found, cut, text


def _without_early_ends(records: Records, layout: EventLayout, rows: I64, times: I64) -> Bool:
    """All rows but the ends of threads that are sampled after them: their names must last.

    A thread still runs for a moment after the kernel has told of its end.
    """
    kept = np.ones(len(rows), bool)
    kind = records.kind[rows]
    ends, samples = np.flatnonzero(kind == EXIT), np.flatnonzero(kind == SAMPLE)
    if len(ends):
        at = records.at[rows[samples]] + layout.layout.pid
        tids = (records.read_words(at) >> np.uint64(32)).astype(np.int64)
        known, place = np.unique(tids[::-1], return_index=True)
        last_ns = times[samples][::-1][place]
        tid = (records.words[records.at[rows[ends]] + 2] & np.uint64(0xFFFFFFFF)).astype(np.int64)
        found = np.minimum(np.searchsorted(known, tid), len(known) - 1)
        kept[ends] = (known[found] != tid) | (last_ns[found] <= times[ends])
    return kept


def _find_kernel_text(records: Records, rows: I64) -> int | None:
    """The address of the symbol by which perf notes where the kernel was loaded."""
    for row in rows.tolist():
        at = int(records.at[row])
        name_at = 8 * (at + (5 if records.kind[row] == MMAP else 9))
        name = records.data[name_at : name_at + 32].split(b"\0", 1)[0]
        if name.startswith(b"[kernel.kallsyms]_"):
            return int(records.words[at + 4])
    return None


def _count_late(records: Records, samples: I64, times: I64) -> int:
    """Samples older than what the rounds of the file allow: perf would have to re-sort for them."""
    ends = np.flatnonzero(records.kind == FINISHED_ROUND)
    if not len(ends):
        return int(np.count_nonzero(times < np.maximum.accumulate(times)))
    latest = np.maximum.accumulate(times)
    turn = np.searchsorted(ends, samples)  # which round a sample is of
    last_of = np.searchsorted(samples, ends) - 1  # the last sample of each round
    reached = np.where(last_of >= 0, latest[np.maximum(last_of, 0)], 0)
    flushed = np.where(turn >= 2, reached[np.maximum(turn - 2, 0)], 0)
    return int(np.count_nonzero(times < flushed))
