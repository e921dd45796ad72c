"""Coverage by its properties, over any parts and gaps."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from nodescope.archive.description import Description, Start, TableExtent
from nodescope.archive.layout import name_segment
from nodescope.recording.coverage import Coverage, NotObserved, find_coverage
from nodescope.recording.memory import MemoryPart, MemoryWriter
from nodescope.recording.part import Parts
from nodescope.recording.window import Window
from nodescope.records.node_tables import SourceCostRow, UnitRow
from nodescope.records.recorder_tables import Gap

MOST = 1000


def part(
    number: int, from_ns: int, to_ns: int, *, run: int = 1, gaps: tuple[Gap, ...] = ()
) -> MemoryPart:
    """A part that has core times."""
    start = Start(name_segment(number, 0), "boot", run, number == 1, 1, from_ns, from_ns)
    tables = {"cores": TableExtent(1, 1)}
    return MemoryPart(
        Description(start, from_ns, to_ns, from_ns, to_ns, ((0, 0),), tables, gaps=gaps), {}
    )


def gap(from_ns: int, to_ns: int, source: str = "cores") -> Gap:
    return Gap(from_ns=from_ns, to_ns=to_ns, source=source, reason="not read")


times = st.integers(0, MOST)
windows = st.tuples(times, times).map(lambda pair: Window(min(pair), max(pair) + 1))
gap_lists = st.lists(windows.map(lambda span: gap(span.from_ns, span.to_ns)), max_size=5)


@st.composite
def recorded(draw: st.DrawFn) -> list[MemoryPart]:
    """Parts one after the other, of one run or of several, perhaps with time between."""
    parts: list[MemoryPart] = []
    at, run = 0, 1
    for number in range(1, draw(st.integers(0, 5)) + 1):
        at += draw(st.integers(0, 60))
        length = draw(st.integers(0, 200))
        run += draw(st.booleans())
        parts.append(part(number, at, at + length, run=run, gaps=tuple(draw(gap_lists))))
        at += length + 1
    return parts


def with_gap(parts: Parts, added: Gap) -> Parts:
    first = parts[0].description
    changed = MemoryPart(replace(first, gaps=(*first.gaps, added)), {})
    return [changed, *parts[1:]]


def observed(coverage: Coverage) -> set[int]:
    return {moment for span in coverage.spans for moment in range(span.from_ns, span.to_ns)}


@given(recorded(), windows)
def test_spans_are_in_order_apart_and_inside_the_window(parts: Parts, window: Window) -> None:
    found = find_coverage(parts, "cores", window)
    for before, after in pairwise(found.spans):
        assert before.to_ns < after.from_ns
    for span in found.spans:
        assert window.from_ns <= span.from_ns < span.to_ns <= window.to_ns
    assert found.observed_ns == len(observed(found))
    assert found.complete == (found.observed_ns == window.length_ns)


@given(recorded(), windows)
def test_what_is_missing_is_all_that_was_not_observed(parts: Parts, window: Window) -> None:
    found = find_coverage(parts, "cores", window)
    missing = {at for span in found.missing for at in range(span.from_ns, span.to_ns)}
    assert missing | observed(found) == set(range(window.from_ns, window.to_ns))
    assert not missing & observed(found)
    assert all(found.holds(at) == (at in observed(found)) for at in (window.from_ns, *missing))


@given(recorded().filter(bool), windows, windows)
def test_a_gap_never_adds_coverage(parts: Parts, window: Window, blind: Window) -> None:
    before = observed(find_coverage(parts, "cores", window))
    after = observed(
        find_coverage(with_gap(parts, gap(blind.from_ns, blind.to_ns)), "cores", window)
    )
    assert after <= before
    # A gap is noted in the part it is about, or in the one after it.
    if parts[0].wall_from_ns <= window.from_ns <= parts[0].wall_to_ns:
        assert after == before - set(range(blind.from_ns, blind.to_ns))


@given(recorded(), windows, windows)
def test_a_part_of_a_window_is_covered_as_the_whole_is(
    parts: Parts, window: Window, inner: Window
) -> None:
    bare = [MemoryPart(replace(each.description, gaps=()), {}) for each in parts]
    both = Window(min(window.from_ns, inner.from_ns), max(window.to_ns, inner.to_ns))
    whole, part = (observed(find_coverage(bare, "cores", each)) for each in (both, inner))
    assert part == {at for at in whole if inner.holds(at)}


def test_time_between_two_parts_is_covered_only_within_a_run() -> None:
    window = Window(0, 100)
    one = [part(1, 0, 40), part(2, 50, 99)]
    assert find_coverage(one, "cores", window).complete
    two = [part(1, 0, 40), part(2, 50, 99, run=2)]
    assert find_coverage(two, "cores", window).missing == (Window(41, 50),)


def test_a_part_without_the_table_is_a_hole_between_parts_that_have_it() -> None:
    silent = part(2, 40, 60)
    silent = MemoryPart(replace(silent.description, tables={}), {})
    found = find_coverage([part(1, 0, 30), silent, part(3, 70, 99)], "cores", Window(0, 100))
    assert found.missing == (Window(31, 70),)


def test_gaps_of_other_tables_of_single_cores_and_of_lost_records_leave_it_covered() -> None:
    others = (
        gap(10, 20, "units"),
        gap(10, 20).replace(cpu=3),
        gap(10, 20).replace(lost=7),
    )
    window = Window(0, 100)
    assert find_coverage([part(1, 0, 99, gaps=others)], "cores", window).complete
    everything = find_coverage([part(1, 0, 99, gaps=(gap(10, 20, "all"),))], "cores", window)
    assert everything.missing == (Window(10, 20),)


class StandingClock:
    now = 0

    def monotonic_ns(self) -> int:
        return self.now

    def wall_ns(self) -> int:
        return self.now


def test_a_part_that_has_told_no_costs_yet_is_judged_by_its_run() -> None:
    clock = StandingClock()
    writer = MemoryWriter({"boot_id": "b"}, clock, 1)
    for start, tells in ((0, True), (200, False)):
        clock.now = start
        for now in (start, start + 99):
            writer.append("heartbeats", {"time_ns": [now], "wall_ns": [now]})
        if tells:
            row = SourceCostRow(time_ns=start, source="units")
            writer.append(row.table().name, {"time_ns": [row.time_ns], "source": [row.source]})
        writer.seal_segment()
    recording = writer.finish()
    assert recording.rows(UnitRow, Window(200, 300)) == []
    assert recording.coverage("units", Window(200, 300)).complete
    assert not recording.coverage("pressure", Window(200, 300))


def test_not_observed_is_false_and_says_of_what() -> None:
    answer = NotObserved("units", Window(1, 2))
    assert not answer
    assert (answer.what, answer.window) == ("units", Window(1, 2))
