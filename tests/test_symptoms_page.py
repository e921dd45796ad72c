"""docs/symptoms.md names every kind of trouble, and only tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.sources.kernel_log.messages.formats import FORMATS
from tests.sources.systemd.test_service_reports import _REPORTS
from tests.test_rules_of_others import LINES as OTHERS

from nodescope.lab.catalogue import SCENARIOS
from nodescope.records.event_kinds import EVENT_KINDS
from nodescope.records.trouble_kinds import TROUBLE_KINDS
from nodescope.sources.limits import hardware_counts, kernel_counts

_PAGE = Path("docs/symptoms.md").read_text()
_OTHERS, _KINDS = (
    [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines()
     if line.startswith("|")][2:]
    for part in _PAGE.split("## Problems that others detect")[1].split("## Every kind")
)  # fmt: skip
_LINES = {known.kind for known in FORMATS} | {kind for _, _, kind, _ in _REPORTS}
_LINES |= {kind for *_, kind in OTHERS}
_COUNTED = "\n".join(
    path.read_text() for folder in ("observers", "watches")
    for path in Path("tests/recorder", folder).glob("*.py")
)  # fmt: skip


def _from_counts() -> set[str]:
    """Kinds of events that a counter makes; tests/sources/limits raise each of them."""
    return {*kernel_counts.KINDS.values(), *hardware_counts.KINDS.values()}


def _is_made_by_a_tested_observer(kind: str) -> bool:
    return any(
        f'"{kind}"' in path.read_text()
        and Path("tests/recorder", folder, f"test_{path.name}").exists()
        for folder in ("observers", "watches")
        for path in Path("src/nodescope/recorder", folder).glob("*.py")
    )


def _named(cell: str) -> list[str]:
    return re.findall(r"`(\w+)`", cell)


def test_every_kind_of_trouble_and_every_symptom_has_one_row() -> None:
    listed = [_named(row[0])[0] for row in _KINDS]
    expected = {kind.name for kind in EVENT_KINDS.values() if kind.rank is not None}
    expected |= {kind.name for kind in TROUBLE_KINDS}
    assert len(listed) == len({*listed})
    assert {*listed} == expected


@pytest.mark.parametrize("row", _KINDS, ids=lambda row: row[0])
def test_a_kind_is_described_as_it_is(row: list[str]) -> None:
    name, severity, known, tested, explained = row
    (kind,) = _named(name)
    assert severity == ("serious" if EVENT_KINDS[kind].serious else "notable")
    assert known
    assert explained
    assert ("line" in tested.split(", ")) == (kind in _LINES)
    assert tested
    if "counter" in tested:
        assert kind in _COUNTED or kind in _from_counts() or _is_made_by_a_tested_observer(kind)


def test_scenarios_that_are_named_exist() -> None:
    known = SCENARIOS.keys()
    named = re.findall(r"live \(lab: ([^)]+)\)", _PAGE)
    assert named
    assert {name for each in named for name in each.split(", ")} <= known


@pytest.mark.parametrize("row", _OTHERS, ids=lambda row: row[1][:40])
def test_each_problem_of_others_has_a_kind_or_a_reason(row: list[str]) -> None:
    who, _, kinds, tested, remarks = row
    assert who in ("NPD", "EKS")
    named = _named(kinds)
    assert {*named} <= EVENT_KINDS.keys()
    assert (tested and named) or (kinds == "—" and remarks)
    if "line" in tested:
        assert any(kind in _LINES for kind in named)
