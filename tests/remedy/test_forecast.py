from __future__ import annotations

import random

from nodescope.quantities import SECOND_NS
from nodescope.remedy.proof.forecast import LeakSource, make_forecast
from nodescope.remedy.proof.verdict_words import render_forecast

BOUNDS = (2000, 10_000)
ECS = LeakSource("unit", "ecs.service", True, "enabled in the image")


def growing(minutes: int, per_minute: float, start: int = 0) -> list[tuple[int, int]]:
    chance = random.Random(3)
    counted = []
    level = float(start)
    for minute in range(minutes):
        counted.append((minute * 60 * SECOND_NS, int(level)))
        level += per_minute * chance.uniform(0.8, 1.2)
    return counted


def test_one_zombie_every_21_seconds() -> None:
    forecast = make_forecast(growing(600, 60 / 21), BOUNDS, (ECS,))
    warn, critical = forecast.node
    assert warn.will == critical.will == "will pass"
    assert warn.least_s is not None
    assert warn.likely_s is not None
    assert warn.longest_s is not None
    assert warn.least_s < warn.likely_s < warn.longest_s
    anew = forecast.replacement[0].likely_s
    assert anew is not None
    assert 11 < anew / 3600 < 12.5  # 2,000 × 21 s
    text = render_forecast(forecast)
    assert "ecs.service: starts again by itself" in text
    assert "warn (2,000): in" in text


def test_a_replacement_without_the_source_does_not_grow() -> None:
    gone = LeakSource("unit", "ecs.service", False, "disabled in the image")
    forecast = make_forecast(growing(600, 3), BOUNDS, (gone,))
    assert forecast.node[0].will == "will pass"
    assert [each.will for each in forecast.replacement] == ["does not grow"] * 2


def test_cannot_say_and_does_not_grow_are_answers() -> None:
    assert make_forecast(growing(5, 3), BOUNDS, ()).node[0].will == "cannot say"
    assert make_forecast(growing(600, 0, 500), BOUNDS, ()).node[0].will == "does not grow"
    assert make_forecast(growing(600, 0, 2500), BOUNDS, ()).node[0].will == "passed"
    teeth = [(at * 60 * SECOND_NS, 20 * (at % 50)) for at in range(600)]
    assert make_forecast(teeth, BOUNDS, (ECS,)).node[0].will == "does not grow"
    unnamed = make_forecast(growing(600, 3), BOUNDS, ())
    assert unnamed.replacement[0].will == "cannot say"
    far = make_forecast(growing(20, 1), BOUNDS, (ECS,))
    assert far.node[1].will == "cannot say"  # ten thousand minutes from twenty
