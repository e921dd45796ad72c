"""From the process on a pegged core to who runs it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from nodescope.diagnosis.case import Case
from nodescope.diagnosis.links.owners import find_owner, why_link
from nodescope.diagnosis.story import Story
from nodescope.judgement.core_occupants import Occupants
from nodescope.judgement.pegged_cores import PeggedCore
from nodescope.recording.memory import recording_of
from nodescope.recording.window import Window
from nodescope.records.node_tables import CgroupNameRow, UnitRow

_UNIT = UnitRow(
    time_ns=1, unit="builder.service", file_state="enabled", preset="enabled",
    vendor="package builder", wanted_by="multi-user.target", successes=1, failures=0,
)  # fmt: skip
_OTHER = _UNIT.replace(unit="other.service", preset="disabled")
_BUILDER = "/system.slice/builder.service"


class _Recorded(Case):
    """What a recording would answer."""

    def __init__(self, cgroups: dict[str, int], names: dict[str, dict[str, Any]]) -> None:
        rows = [CgroupNameRow(time_ns=1, cgroup=path, **row) for path, row in names.items()]
        super().__init__(recording_of([*rows, _UNIT, _OTHER]), Window(0, 10))
        self._counts = Counter(cgroups)

    def cgroups_on(self, window: Window, cpu: int, comm: str) -> Occupants[str]:
        assert (window, cpu, comm) == (Window(2, 8), 1, "make")
        return Occupants(self._counts)


def _ask(cgroups: dict[str, int], names: dict[str, dict[str, Any]]) -> tuple[str, str] | None:
    story = Story()
    story.held, story.comm = PeggedCore(1, 2, 8, 0.99), "make"
    found = find_owner(_Recorded(cgroups, names), story)
    return None if found is None else (found[1].kind, found[1].name)


def test_a_unit_is_named_with_why_it_is_there() -> None:
    story = Story()
    story.held, story.comm = PeggedCore(1, 2, 8, 0.99), "make"
    found = find_owner(
        _Recorded({f"{_BUILDER}/jobs": 90, "/": 10}, {_BUILDER: {"unit": "builder.service"}}), story
    )
    assert found is not None
    owner, why = found[0]
    assert (owner.kind, owner.subject) == ("owner", "builder.service")
    assert "90% of its samples" in owner.statement
    assert "package builder" in why.statement
    assert "nothing but a default asks for it" in why.statement


@pytest.mark.parametrize(
    ("row", "named"),
    [
        ({"pod": "web-0", "namespace": "shop", "container": "nginx"},
         ("pod", "shop/web-0 (nginx)")),
        ({"container": "builder", "container_id": "f" * 64}, ("container", "builder")),
        ({"container_id": "f" * 64}, ("container", "f" * 12)),
        ({"unit": "session-3.scope"}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_pods_and_containers_are_named(row: dict[str, Any], named: tuple[str, str] | None) -> None:
    assert _ask({"/x": 5}, {"/x": row}) == named


def test_a_process_in_many_places_is_nobodys() -> None:
    assert _ask({_BUILDER: 70, "/x": 30}, {_BUILDER: {"unit": "builder.service"}}) is None


def test_samples_of_which_nobody_knows_the_cgroup_count_against_it() -> None:
    assert _ask({"": 30, _BUILDER: 70}, {_BUILDER: {"unit": "builder.service"}}) is None
    assert _ask({"": 99, _BUILDER: 1}, {_BUILDER: {"unit": "builder.service"}}) is None


def test_a_cgroup_too_young_for_a_name_is_known_by_its_path() -> None:
    above = {"/system.slice": {"unit": "system.slice"}}
    assert _ask({f"{_BUILDER}/jobs": 5}, above) == ("unit", "builder.service")


def test_a_cgroup_without_a_name_says_nothing() -> None:
    assert _ask({"/elsewhere": 9}, {_BUILDER: {"unit": "builder.service"}}) is None
    assert _ask({}, {}) is None


# -- why it is there -----------------------------------------------------------

_DEFAULT = "nothing but a default asks for it"
_IMAGE = _UNIT.replace(vendor="vendor")
_BY_PRESET = "enabled by the image's preset; from a package or the image; wanted by"


@pytest.mark.parametrize(
    ("unit", "said"),
    [
        (_IMAGE, f"{_BY_PRESET} multi-user.target; {_DEFAULT}"),
        (_IMAGE.replace(wanted_by="multi-user.target a.service"),
         f"{_BY_PRESET} multi-user.target a.service"),
        (_UNIT.replace(vendor="administrator"),
         "enabled; from the administrator; wanted by multi-user.target"),
        (_IMAGE.replace(preset="disabled"),
         "enabled; from a package or the image; wanted by multi-user.target"),
        (_IMAGE.replace(file_state="static"),
         "static; from a package or the image; wanted by multi-user.target"),
    ],
    ids=["default", "wanted", "administrator", "enabled by somebody", "static"],
)  # fmt: skip
def test_a_default_is_blamed_only_for_what_the_image_brought_and_enabled(
    unit: UnitRow, said: str
) -> None:
    assert why_link(unit, [unit, _OTHER], 0).statement == f"builder.service: {said}"


def test_without_a_preset_file_every_unit_reads_enabled_and_nothing_follows() -> None:
    statement = why_link(_IMAGE, [_IMAGE, _IMAGE.replace(unit="other.service")], 0).statement
    assert "preset" not in statement
    assert _DEFAULT not in statement
