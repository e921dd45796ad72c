from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.judgement.pegged_cores import (
    BRIEF_NS,
    PEGGED_NS,
    READING_RATIO,
    KernelSeconds,
    PeggedCore,
    PeggedCoreStream,
    find_pegged_cores,
)
from nodescope.quantities import SECOND_NS
from nodescope.recording.core_readings import STATES as RECORDED
from nodescope.recording.memory import recording_of
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.recorder_tables import CORE_STATES, CoreRow

START = 100
Second = dict[str, int]
ALL = Window(0, 10_000 * SECOND_NS)


def recorded(cores: list[list[Second]]) -> Recording:
    """Return a recording of cores that did this, a second each."""
    rows = []
    for cpu, seconds in enumerate(cores):
        ticks = dict.fromkeys(CORE_STATES, 0)
        for at, used in enumerate([{}, *seconds]):
            ticks = {state: count + used.get(state, 0) for state, count in ticks.items()}
            rows.append(CoreRow(cpu=cpu, time_ns=(START + at) * SECOND_NS, **ticks))
    return recording_of(rows)


def find(cores: list[list[Second]], least_ns: int = PEGGED_NS) -> list[PeggedCore]:
    return find_pegged_cores(recorded(cores).core_readings(ALL), ALL, least_ns)


def stream(cores: list[list[Second]], least_ns: int = PEGGED_NS) -> list[PeggedCore]:
    """Judge the same as it happens."""
    live, ended = PeggedCoreStream(), []
    ticks = np.zeros((len(cores), len(RECORDED)), np.int64)
    for at, used in enumerate([[{}] * len(cores), *zip(*cores, strict=True)]):
        ticks = ticks + [[each.get(state, 0) for state in RECORDED] for each in used]
        ended += live.read((START + at) * SECOND_NS, np.arange(len(cores)), ticks)
    ended += live.end()
    found = [each for run in ended if (each := run.judge(least_ns)) is not None]
    return sorted(found, key=lambda each: (each.cpu, each.from_ns))


KERNEL: Second = {"system": 70, "softirq": 29, "user": 1}
BUSY: Second = {"user": 95, "system": 5}


def test_a_span_nearly_all_in_the_kernel_is_found_with_its_share() -> None:
    (core,) = find([[BUSY, KERNEL, KERNEL, KERNEL, BUSY], [BUSY] * 5])
    assert (core.cpu, core.seconds, core.share) == (0, 3.0, 0.99)
    assert core.from_ns == (START + 1) * SECOND_NS


@pytest.mark.parametrize(
    "second",
    [
        {"system": 85, "user": 15},  # busy in the kernel, not pegged: under nine tenths in all
        {"system": 40, "idle": 60},
        {"steal": 100},
        {},
    ],
)
def test_what_is_not_nearly_all_kernel_is_no_pegged_core(second: Second) -> None:
    assert find([[second] * 9]) == stream([[second] * 9]) == []


def test_what_the_hypervisor_took_counts_for_nobody() -> None:
    (core,) = find([[{"system": 40, "steal": 60}] * 4])
    assert core.share == 1.0


def test_a_moment_of_others_does_not_end_it() -> None:
    (core,) = find([[KERNEL, KERNEL, {"system": 81, "user": 19}, KERNEL, KERNEL]])
    assert core.seconds == 5.0


def test_how_short_it_may_be_depends_on_what_else_speaks_for_it() -> None:
    once = [[BUSY, KERNEL, BUSY]]
    assert find(once) == []
    assert len(find(once, BRIEF_NS)) == 1


@given(
    st.lists(
        st.lists(
            st.sampled_from([KERNEL, BUSY, {"system": 82, "user": 18}, {"irq": 30, "steal": 70}]),
            min_size=12, max_size=12,
        ),
        min_size=1, max_size=3,
    )
)  # fmt: skip
def test_live_and_recorded_one_incident_has_one_span_and_one_share(
    cores: list[list[Second]],
) -> None:
    for least_ns in (BRIEF_NS, PEGGED_NS):
        assert find(cores, least_ns) == stream(cores, least_ns)


def test_the_kernels_share_by_second() -> None:
    recording = recorded([[BUSY, KERNEL], [BUSY, BUSY]])
    window = Window(START * SECOND_NS, (START + 3) * SECOND_NS)
    seconds = KernelSeconds(window)
    assert not find_pegged_cores(recording.core_readings(window), window, seconds=seconds)
    most, mean = seconds.most, seconds.mean
    assert most[1:].tolist() == [0.05, 0.99]
    assert mean[2] == pytest.approx(0.52)
    assert np.isnan(most[0])
    assert most[2] >= READING_RATIO
