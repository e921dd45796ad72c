"""A container that a real dockerd restarts for ever, beside one that is well."""

from __future__ import annotations

from nodescope.lab import docker_guest
from nodescope.lab.docker_guest import UNITS, DockerGuest
from nodescope.lab.processes import sleep_beside
from nodescope.lab.scenario import LastingTruth, Scenario, ScenarioRun, Truth
from nodescope.lab.unit_stage import get_guest
from nodescope.lab.zombie_scenarios import start_guest

_RUNTIMES = ("docker.service", "containerd.service")


def _prepare(run: ScenarioRun) -> None:
    inside = start_guest(run, UNITS)
    docker = DockerGuest(inside)
    well = run.variation.name()
    docker.run(well, ["sleep", "3600"])
    run.names |= {"container": run.variation.name()}
    run.innocent = (well, *_RUNTIMES)
    run.recorder_in += ["env", f"DOCKER_HOST=unix://{docker.path}"]


def _act(run: ScenarioRun) -> Truth:
    """Run a container that fails; the twin's does the same work once, and waits."""
    name, code = run.names["container"], run.variation.between(1, 120)
    works_s = run.variation.seconds(0.1, 0.8)
    ends = "sleep 3600" if run.healthy else f"exit {code}"
    docker = DockerGuest(get_guest(run))
    docker.run(name, ["sh", "-c", f"sleep {works_s}; {ends}"], restart="always")
    sleep_beside(run.lasting, run.strength)
    lasting = (LastingTruth(("container_loop",), "container", name),)
    return Truth(
        "container-loop", healthy=run.healthy, finding=False, well=run.innocent,
        conditions=() if run.healthy else lasting, facts={"exit_code": code},
    )  # fmt: skip


SCENARIOS = (
    Scenario("container-loop", "a container under a real dockerd fails and is started again", 25,
             120, "seconds", _prepare, _act, require=docker_guest.require, least=15, slow=True),
)  # fmt: skip
