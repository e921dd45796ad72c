from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.judgement.kept_cores import MODES, find_kept_cores
from nodescope.judgement.pegged_cores import PEGGED_NS, PeggedCore, find_pegged_cores
from nodescope.quantities import SECOND_NS
from nodescope.recording.memory import recording_of
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.recorder_tables import CORE_STATES, CoreRow

START = 100
Second = dict[str, int]
ALL = Window(0, 10_000 * SECOND_NS)
IDLE: Second = {"idle": 100}


def recorded(cores: list[list[Second]]) -> Recording:
    """Return a recording of cores that did this, a second each."""
    rows = []
    for cpu, seconds in enumerate(cores):
        ticks = dict.fromkeys(CORE_STATES, 0)
        for at, used in enumerate([{}, *seconds]):
            ticks = {state: count + used.get(state, 0) for state, count in ticks.items()}
            rows.append(CoreRow(cpu=cpu, time_ns=(START + at) * SECOND_NS, **ticks))
    return recording_of(rows)


def find(
    cores: list[list[Second]], least_ns: int = PEGGED_NS, window: Window = ALL
) -> list[PeggedCore]:
    return find_kept_cores(recorded(cores).core_readings(window), window, least_ns)


@pytest.mark.parametrize(
    ("second", "mode", "share"),
    [
        ({"user": 100}, "user", 1.0),
        ({"nice": 60, "user": 39, "idle": 1}, "user", 0.99),
        ({"system": 97, "user": 3}, "kernel", 0.97),
        ({"softirq": 92, "system": 8}, "softirq", 0.92),
        ({"irq": 95, "idle": 5}, "irq", 0.95),
        ({"steal": 99, "user": 1}, "steal", 0.99),
        ({"user": 55, "system": 45}, "user", 0.55),  # one thread that makes system calls
        ({"steal": 60, "system": 40}, "steal", 0.6),
    ],
)
def test_a_core_is_kept_in_the_mode_that_has_most_of_it(
    second: Second, mode: str, share: float
) -> None:
    (core,) = find([[IDLE, *[second] * 4, IDLE], [IDLE] * 6])
    assert (core.cpu, core.seconds, core.mode) == (0, 4.0, mode)
    assert core.share == pytest.approx(share)
    assert core.from_ns == (START + 1) * SECOND_NS


@pytest.mark.parametrize(
    "second",
    [
        {"user": 70, "idle": 30},
        {"user": 70, "iowait": 30},  # it waits for a disk: others may have the core
        {"user": 85, "idle": 15},  # busy, but a sixth of it is free
        {"steal": 50, "idle": 50},
        {},
    ],
)
def test_a_core_with_time_for_others_is_not_kept(second: Second) -> None:
    assert find([[second] * 9]) == []


def test_a_mode_that_is_long_enough_stands_for_itself_within_a_busy_hour() -> None:
    busy, soft = {"user": 95, "system": 5}, {"softirq": 96, "user": 4}
    spans = [(each.mode, each.seconds) for each in find([[busy] * 20 + [soft] * 5 + [busy] * 20])]
    assert spans == [("user", 20.0), ("softirq", 5.0), ("user", 20.0)]


def test_modes_that_take_turns_by_the_second_are_one_span() -> None:
    turns = [{"user": 90, "system": 10}, {"user": 20, "system": 80}, {"user": 60, "system": 40}]
    (core,) = find([turns * 3])
    assert (core.mode, core.seconds) == ("user", 9.0)
    assert core.share == pytest.approx(1.7 / 3)


def test_a_moment_of_idleness_ends_it() -> None:
    hog = {"user": 100}
    assert [each.seconds for each in find([[hog] * 4 + [IDLE] + [hog] * 5])] == [4.0, 5.0]


def test_only_what_reaches_into_the_window_is_returned() -> None:
    hog = {"user": 100}
    window = Window((START + 20) * SECOND_NS, (START + 30) * SECOND_NS)
    cores = [[hog] * 5 + [IDLE] * 30, [IDLE] * 18 + [hog] * 5 + [IDLE] * 12]
    assert [each.cpu for each in find(cores, window=window)] == [1]


def test_the_words_name_the_mode() -> None:
    (core,) = find([[{"steal": 100}] * 6])
    assert core.describe() == "100% taken by the hypervisor for 6 s"


SECONDS = st.fixed_dictionaries(
    {state: st.integers(0, 100) for state in ("user", "system", "softirq", "steal", "idle")}
)


@given(st.lists(SECONDS, min_size=4, max_size=20), st.integers(1, 5))
def test_kept_spans_do_not_overlap_and_have_no_time_for_others(
    seconds: list[Second], least: int
) -> None:
    found = find([seconds], least * SECOND_NS)
    ends = [START * SECOND_NS]
    for core in found:
        assert core.from_ns >= ends[-1]
        ends.append(core.to_ns)
        first, last = (int(each // SECOND_NS) - START for each in (core.from_ns, core.to_ns))
        inside = seconds[first:last]
        passed = sum(sum(each.values()) for each in inside)
        free = sum(each["idle"] for each in inside)
        assert free <= 0.1 * passed + 1e-9
        assert 1 / len(MODES) - 0.02 <= core.share <= 1.0


KERNEL = st.fixed_dictionaries(
    {state: st.integers(10, 100) for state in ("system", "softirq", "irq")}
)


@given(st.lists(KERNEL, min_size=4, max_size=20))
def test_a_core_that_the_kernel_pegs_is_kept_in_that_time(seconds: list[Second]) -> None:
    recording = recorded([[IDLE, *seconds, IDLE]])
    kept = find_kept_cores(recording.core_readings(ALL), ALL)
    (pegged,) = find_pegged_cores(recording.core_readings(ALL), ALL)
    assert kept
    assert all(pegged.from_ns <= each.from_ns < each.to_ns <= pegged.to_ns for each in kept)
    assert {each.mode for each in kept} <= {"kernel", "softirq", "irq"}
