"""Who fills a file system is named only if it writes then and not at other times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set

import pytest
from tests.diagnosis.told import at, event, record, solve_told

from nodescope.diagnosis.case import Case
from nodescope.diagnosis.finding import Root, Symptom
from nodescope.diagnosis.links.mount_writer import add_writer
from nodescope.diagnosis.story import Story
from nodescope.recording.window import Window
from nodescope.records.event import Event
from nodescope.records.witness_tables import LimitRow

FILLER = "/system.slice/filler.service"
OTHER = "/system.slice/other.service"


class Sampled(Case):
    """A case whose samples are told: how many of each cgroup while it fills, and around."""

    inside: Counter[str]
    outside: Counter[str]

    def cgroups_inside(self, window: Window, functions: Set[str]) -> Counter[str]:
        return self.inside if window.from_ns == at(100) else self.outside

    def sampled_ns(self, window: Window) -> int:
        return window.length_ns


def full(second: float, mount: str) -> Event:
    said = f"100.0% of the space of {mount} is in use"
    return event(second, "fs_full", mount, said, limit="disk", scope=mount)


def readings(mount: str) -> list[LimitRow]:
    told = ((0, 10), (100, 10), (110, 50), (120, 100))
    return [
        LimitRow(time_ns=at(second), name="disk", scope=mount, used=used, most=100)
        for second, used in told
    ]


def named(inside: dict[str, int], outside: dict[str, int]) -> tuple[Root | None, Story]:
    mount = "/data"
    recording = record([full(120, mount)], readings(mount))
    case = Sampled(recording, Window(at(0), at(900)))
    case.inside, case.outside = Counter(inside), Counter(outside)
    story = Story()
    symptom = Symptom("fs_full", at(120), mount, "full")
    return add_writer(case, story, symptom, readings(mount)), story


def test_who_writes_only_while_it_fills_is_named_by_the_time_alone() -> None:
    root, story = named({FILLER: 40, OTHER: 5}, {FILLER: 1, OTHER: 90})
    assert root == Root("unit", "filler.service")
    assert "only the time ties them" in story.links[0].statement
    assert story.links[0].strength < 2


@pytest.mark.parametrize(
    ("inside", "outside"),
    [
        ({"/": 95, FILLER: 24}, {}),  # nobody in particular
        ({OTHER: 40, FILLER: 10}, {OTHER: 2000}),  # writes as much at other times
        ({FILLER: 3, OTHER: 3, "/": 3}, {}),  # too few
    ],
)
def test_writers_of_other_times_and_places_are_not_named(
    inside: dict[str, int], outside: dict[str, int]
) -> None:
    root, story = named(inside, outside)
    assert root is None
    assert not story.links


def test_two_full_file_systems_are_two_findings_that_end_at_the_file_system() -> None:
    mounts = ("/data", "/scratch")
    found = solve_told([full(120, mount) for mount in mounts])
    assert sorted(each.chains[0].root.name for each in found.findings) == list(mounts)
    for finding in found.findings:
        assert finding.chains[0].root.kind == "file system"
        assert not finding.repeats
    (lack,) = [each for each in found.missing if each.what == "who fills it"]
    assert lack.consequence.startswith("who fills it was not recorded")
