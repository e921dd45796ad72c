"""From support to confidence."""

from __future__ import annotations

import pytest
from benchmarks.results import DOCS, read_state, render_docs

from nodescope.diagnosis.rules.calibration import OFFSET, SLOPE, calibrated
from nodescope.lab.calibrate import fit


def test_better_supported_is_surer_and_nothing_is_certain() -> None:
    said = [calibrated(support) for support in (0.0, 0.2, 0.5, 0.9, 1.0)]
    assert said == sorted(said)
    assert 0 < said[0] < said[-1] < 1


def test_the_fit_finds_what_is_so() -> None:
    scenarios = [f"{number}" for number in range(2000)]
    supports = [0.2] * 1000 + [0.6] * 1000
    true = [number % 10 == 0 for number in range(1000)]
    true += [number % 10 != 0 for number in range(1000)]
    offset, slope = fit(supports, true, scenarios)
    assert calibrated(0.2, offset, slope) == pytest.approx(0.1, abs=0.01)
    assert calibrated(0.6, offset, slope) == pytest.approx(0.9, abs=0.01)


def test_twenty_runs_of_one_scenario_are_one_witness() -> None:
    offset, slope = fit([0.7] * 20, [True] * 20, ["zombies"] * 20)
    assert calibrated(0.7, offset, slope) == pytest.approx(2 / 3, abs=0.01)
    apart = fit([0.7] * 20, [True] * 20, [f"{number}" for number in range(20)])
    assert calibrated(0.7, *apart) == pytest.approx(21 / 22, abs=0.01)


def test_the_better_supported_stays_the_surer() -> None:
    offset, slope = fit([0.6, 0.9] * 10, [True] * 20, [f"{number}" for number in range(20)])
    assert slope > 0.5
    assert calibrated(0.6, offset, slope) < calibrated(0.9, offset, slope) - 0.03


def test_what_is_in_use_is_what_was_fitted() -> None:
    fitted = read_state()["calibration"]["figures"]
    assert pytest.approx((fitted["offset"], fitted["slope"]), abs=0.01) == (OFFSET, SLOPE)


def test_the_docs_have_what_the_lab_measured() -> None:
    text = DOCS.read_text()
    assert render_docs(text, read_state()["lab"]) == text
