from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from nodescope.lab import beside_scenarios
from nodescope.lab.cgroups import Controller
from nodescope.lab.ground import Ground
from nodescope.lab.scenario import ScenarioRun
from nodescope.lab.unit_stage import get_silent, read_used_s
from nodescope.lab.variation import Variation


class Place(Ground):
    """The ground of a run that makes nothing."""

    def __init__(self, *, unified: bool) -> None:
        self.memory = Controller("memory", Path("/sys/fs/cgroup/memory"), unified)


def make_run(*, healthy: bool = False, unified: bool = False, seed: int = 1) -> ScenarioRun:
    ground = Place(unified=unified)
    return ScenarioRun(ground, 6, healthy, "archive", print, Variation(seed))


def test_the_time_of_a_units_process_is_known_by_its_name() -> None:
    run = make_run()
    run.names["comm"] = Path("/proc/self/comm").read_text().strip()
    end = time.process_time() + 0.05
    while time.process_time() < end:
        os.getpid()
    assert read_used_s(run) > 0
    run.names["comm"] = "no such (name)"
    assert read_used_s(run) == 0


def test_a_healthy_twin_has_a_unit_that_is_well() -> None:
    run = make_run(healthy=True)
    run.innocent, run.names["unit"] = ("b.service",), "a.service"
    truth = get_silent(run, "task-limit")
    assert truth.healthy
    assert not truth.finding
    assert truth.well == ("b.service", "a.service")


@pytest.mark.parametrize("healthy", [False, True])
@pytest.mark.parametrize(
    ("unified", "place"),
    [(False, "/sys/fs/cgroup/memory/system.slice"), (True, "/sys/fs/cgroup/system.slice")],
)
def test_the_script_leaks_only_where_it_is_to(healthy: bool, unified: bool, place: str) -> None:
    script = beside_scenarios._write_script(make_run(healthy=healthy, unified=unified), "mail-api")
    subprocess.run(["sh", "-n"], input=script.encode(), check=True)
    assert f"beside={place}/mail-api-$number\n" in script
    assert ('rm "/tmp/mail-api-$number"' in script) is healthy
    assert str(beside_scenarios.EACH_TIME) in script
