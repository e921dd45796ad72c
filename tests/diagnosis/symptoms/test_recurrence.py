"""What is said of the times of a recurring incident: no more than is so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

from nodescope.arrays import F64
from nodescope.diagnosis.case import Case
from nodescope.diagnosis.finding import Finding, Symptom
from nodescope.diagnosis.symptoms import recurrence
from nodescope.diagnosis.symptoms.recurrence import describe_recurrence
from nodescope.judgement.pegged_cores import KernelSeconds
from nodescope.quantities import SECOND_NS
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window

START_NS = 1_700_000_000 * SECOND_NS
HOUR = 3600
LENGTH = 12 * HOUR
Say = Callable[..., list[str]]


class _Recorded(Case):
    """A case of which only the kernel's time is known."""

    def __init__(self, length: int, busiest: F64) -> None:
        super().__init__(Recording([]), Window(START_NS, START_NS + length * SECOND_NS))
        self._busiest = busiest

    def kernel_seconds(self, window: Window) -> KernelSeconds:
        seconds = KernelSeconds(window)
        seconds.most = self._busiest
        return seconds


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch) -> Say:
    """Describe events at some seconds of a recording with these metrics."""

    def describe(
        metrics: dict[str, F64], seconds: Sequence[int], p_values: Sequence[float] = ()
    ) -> list[str]:
        def read(*_: object) -> Iterator[tuple[str, F64]]:
            yield from list(metrics.items())[1:]

        monkeypatch.setattr(recurrence, "read_metrics", read)
        first, *others = [START_NS + each * SECOND_NS for each in seconds]
        finding = Finding(Symptom("nic_reset", first, "eth0", "reset"), [], repeats=others)
        finding.p_values = list(p_values)
        busiest = next(iter(metrics.values()))
        describe_recurrence(_Recorded(len(busiest), busiest), [finding])
        return finding.recurring

    return describe


def noise(seed: int, length: int = LENGTH) -> F64:
    random = np.random.default_rng(seed)
    values: F64 = np.convolve(random.normal(size=length + 79), 0.9 ** np.arange(80), "valid")
    return values


def raised(values: F64, seconds: Sequence[int], by: float, lag: int = -10) -> F64:
    values = values.copy()
    for second in seconds:
        values[second + lag : second + lag + 8] += by
    return values


def hourly(values: F64, by: float) -> F64:
    return raised(values, range(HOUR, len(values), HOUR), by)


EVENTS = (5000, 17_300, 30_100, 40_900)
ON_THE_HOUR = (2 * HOUR + 4, 5 * HOUR + 1, 7 * HOUR, 10 * HOUR + 3)


def test_what_stands_out_is_said_with_lag_and_times(say: Say) -> None:
    said = say(
        {"busiest": noise(1), "up": raised(noise(2), EVENTS, 30),
         "down": raised(noise(3), EVENTS, -30, 0), "still": noise(4), "flat": np.ones(LENGTH)},
        EVENTS,
    )  # fmt: skip
    assert said[0].startswith("kernel time of the busiest core does not stand out around them (p")
    up = next(line for line in said if line.startswith("up stands out "))
    assert " s before all 4 times (p = 2.3e-05)" in up
    down = next(line for line in said if line.startswith("down, being low, stands out "))
    assert " s after all 4 times" in down or "in the second of all 4 times" in down
    assert said[-1] == "4 metrics were looked at, 2 of them stand out"
    assert len(said) == 4


def test_the_clearest_are_listed_and_the_rest_counted(say: Say) -> None:
    metrics = {"busiest": noise(1)}
    metrics |= {f"up {by}": raised(noise(by), EVENTS, by) for by in range(20, 28)}
    said = say(metrics, EVENTS)
    assert sum(line.startswith("up ") for line in said) == 6
    assert said[-1] == "9 metrics were looked at, 8 of them stand out (2 not listed)"


def test_times_that_do_not_show_it_are_not_claimed(say: Say) -> None:
    three_of_four = raised(noise(2), EVENTS[:3], 30)
    three_of_four[EVENTS[3] - 40 : EVENTS[3]] -= 5
    said = " ".join(say({"busiest": noise(1), "up": three_of_four}, EVENTS))
    assert " s before 3 of the 4 times (p" in said

    many = tuple(range(1000, LENGTH - 1000, 1100))
    weak = raised(noise(6), many[::3], 12, -30)
    said = " ".join(say({"busiest": noise(1), "up": weak}, many))
    assert f" before the {len(many)} times on average (p" in said


def test_what_only_follows_the_clock_is_named_as_that(say: Say) -> None:
    metrics = {"busiest": noise(1)}
    metrics |= {f"job {number}": hourly(noise(10 + number), 25) for number in range(5)}
    said = say(metrics, ON_THE_HOUR)
    assert said[1].startswith("job 0, job 1, job 2 and 2 more stand out only as they do every hour")
    assert said[-1] == "6 metrics were looked at, 0 of them stand out"


def test_a_cause_is_said_to_stand_out_beyond_its_cycle(say: Say) -> None:
    cause = raised(hourly(noise(2), 8), ON_THE_HOUR, 25)
    said = say({"busiest": hourly(noise(1), 25), "cause": cause}, ON_THE_HOUR)
    line = next(line for line in said if line.startswith("cause stands out "))
    assert " s before all 4 times, beyond its hourly cycle (p = 0.0" in line
    # The kernel's time is told either way, once.
    assert sum("kernel time of the busiest core" in line for line in said) == 1
    assert said[1] == (
        "kernel time of the busiest core stands out only as it does every hour, incident or not"
    )
    assert said[-1] == "2 metrics were looked at, 1 of them stands out"


def test_one_of_many_that_follow_the_clock_is_not_sure(say: Say) -> None:
    # One in twenty of them would be as far beyond its cycle by chance.
    metrics = {"busiest": noise(1), "perhaps": raised(hourly(noise(2), 25), ON_THE_HOUR, 6.6)}
    metrics |= {f"job {number}": hourly(noise(10 + number), 25) for number in range(30)}
    said = say(metrics, ON_THE_HOUR)
    unsure = next(line for line in said if "too little was recorded to tell" in line)
    assert unsure.startswith("perhaps, job ")  # by chance
    assert " may stand out more than they do every hour anyway" in unsure
    assert not any("perhaps stands out" in line for line in said)


def test_too_few_periods_without_the_incident_are_said(say: Say) -> None:
    length = 5 * HOUR
    each_hour = [hour * HOUR for hour in range(1, 5)]
    metrics = {"busiest": noise(1, length), "job": hourly(noise(2, length), 25)}
    said = say(metrics, each_hour)
    assert any(line.startswith("job stands out ") for line in said)
    assert said[-1].startswith("they come at the same point of every hour, which was seen too")
    assert "same point" not in " ".join(say({"busiest": noise(1, length)}, each_hour))


def test_times_that_cannot_be_averaged_are_said(say: Say) -> None:
    values = raised(noise(2), EVENTS, 30)
    said = say({"busiest": values}, (*EVENTS, 30, LENGTH - 10, LENGTH + 20, -5))
    assert " s before 4 of the 8 times (p" in said[0]
    assert said[-1] == (
        "4 of the 8 times lie too near an end of the recording, or a gap in it, to be averaged"
    )
    assert say({"busiest": values}, (5000, 30, 60)) == [
        "2 of the 3 times lie too near an end of the recording, or a gap in it, to be averaged"
    ]


def test_nothing_is_said_of_once_or_twice_or_of_nothing_recorded(say: Say) -> None:
    assert say({"busiest": noise(1)}, EVENTS[:2]) == []
    assert say({"busiest": np.full(LENGTH, np.nan)}, EVENTS) == []
    assert say({"busiest": np.zeros(LENGTH)}, EVENTS) == []
    assert say({"busiest": noise(1, 200)}, (130, 140, 150)) == []
    # Three incidents in one second are one time.
    assert say({"busiest": noise(1)}, (5000, 5000, 5000)) == []


def test_the_tasks_are_combined_as_far_as_they_were_compared(say: Say) -> None:
    quiet = {"busiest": np.zeros(LENGTH)}
    assert say(quiet, EVENTS, [0.001]) == []
    (said,) = say(quiet, EVENTS, [1e-14] * 4)
    assert said == (
        "at all 4 times the task had more of the node than in up to half an hour before; "
        "together p < 1e-12 (Stouffer)"
    )
    (said,) = say(quiet, EVENTS, [0.01, 0.02, 0.04])
    assert said == (
        "at 3 of the 4 times the task had more of the node than in up to half an hour before "
        "(at the others less, or it was not compared); together p = 0.0002 (Stouffer)"
    )
    assert say(quiet, EVENTS[:2], [0.4, 0.7])[0].endswith(
        "together p = 0.6, which is no clear rise (Stouffer)"
    )
