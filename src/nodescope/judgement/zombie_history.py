"""How zombies moved in a recording: the tables `memory_cgroups` and `cgroup_churn`."""

from __future__ import annotations

from dataclasses import dataclass

from nodescope.judgement.cgroup_churn import Churn, read_churn
from nodescope.judgement.zombie_reading import read_dying
from nodescope.judgement.zombies import Nature, Trend, find_nature, find_trend
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window


@dataclass(frozen=True, slots=True)
class History:
    """Counts on the wall clock, and what became of cgroups that were removed meanwhile."""

    times_ns: list[int]
    dying: list[int]
    churned: list[Churn]  # by maker, where that was recorded

    @property
    def removed(self) -> int:
        """How many cgroups were removed by everybody, as far as that is known."""
        return sum(each.removed for each in self.churned)

    @property
    def unreleased(self) -> int:
        """How many were left behind at the end."""
        return sum(each.unreleased or 0 for each in self.churned)

    @property
    def trend(self) -> Trend | None:
        """How they moved."""
        return find_trend(self.times_ns, self.dying)

    @property
    def nature(self) -> Nature:
        """Leak or cache."""
        return find_nature(self.times_ns, self.dying, self.removed, self.unreleased)


def read_history(recording: Recording, window: Window) -> History:
    """Read what was recorded in a window."""
    counted = read_dying(recording, window)
    return History(
        [moment for moment, _ in counted],
        [dying for _, dying in counted],
        read_churn(recording, window),
    )
