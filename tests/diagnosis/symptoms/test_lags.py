"""Bounds on time: which report a pegged core may explain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nodescope.diagnosis.finding import Symptom
from nodescope.diagnosis.symptoms.incidents import NOT_EVENTS
from nodescope.diagnosis.symptoms.lags import LAGS, explains, patience_s
from nodescope.quantities import SECOND_NS
from nodescope.recording.window import Window
from nodescope.records.details import read_details
from nodescope.records.event import details_of_kind
from nodescope.records.event_kinds import EVENT_KINDS, SYMPTOM_RANKS

DOCS = Path(__file__).parents[3] / "docs" / "diagnosis.md"
HELD = Window(100 * SECOND_NS, 106 * SECOND_NS)


def report(kind: str, second: float, **details: Any) -> Symptom:
    told = read_details(details_of_kind(kind), details)
    return Symptom(kind, round(second * SECOND_NS), "it", "it was so", details=told)


def test_every_report_of_a_core_has_a_bound() -> None:
    of_cores = {kind for kind in SYMPTOM_RANKS if EVENT_KINDS[kind].way == "core"}
    assert set(LAGS) - {"hung_task"} == of_cores - set(NOT_EVENTS)


@pytest.mark.parametrize("kind", LAGS)
def test_a_cause_comes_before_and_not_long_before(kind: str) -> None:
    lag = LAGS[kind].seconds
    assert [explains(HELD, report(kind, at)) for at in (100, 101, 106 + lag)] == [False, True, True]
    assert not explains(HELD, report(kind, 106 + lag + 0.1))


def test_what_is_only_counted_was_at_some_time_since_the_last_look() -> None:
    assert explains(HELD, report("nic_reset", 106 + 5 + 10, within_s=10.0))
    assert not explains(HELD, report("nic_reset", 106 + 5 + 10.1, within_s=10.0))
    for nonsense in ("10", -5.0, 1e9, None):
        assert not explains(HELD, report("nic_reset", 106 + 5.1, within_s=nonsense))


def test_starvation_is_told_with_its_beginning() -> None:
    assert explains(HELD, report("core_starved", 99.5, seconds=6.0))
    assert not explains(HELD, report("core_starved", 90.0, seconds=6.0))
    assert explains(HELD, report("core_starved", 101.0, seconds="?"))


@pytest.mark.parametrize(
    ("kind", "details", "seconds"),
    [
        ("nic_tx_timeout", {}, 5.0),
        ("nic_tx_timeout", {"threshold_ms": 8000}, 8.0),
        ("nic_tx_timeout", {"threshold_ms": "?", "driver": "ena"}, 5.0),
        ("nic_tx_timeout", {"driver": "mlx5_core"}, 15.0),
        ("nic_keepalive_lost", {"driver": "ena"}, 6.0),
    ],
)
def test_a_driver_waits_as_long_as_it_says(
    kind: str, details: dict[str, Any], seconds: float
) -> None:
    assert patience_s(report(kind, 0, **details)) == seconds


@pytest.mark.parametrize("kind", LAGS)
def test_the_docs_have_the_bound(kind: str) -> None:
    rows = [line.split("|") for line in DOCS.read_text().splitlines() if f"`{kind}`" in line]
    bounds = [row[2].strip() for row in rows if len(row) == 5]
    assert bounds == [str(LAGS[kind].seconds)]
