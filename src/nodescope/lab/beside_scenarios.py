"""A unit's script makes and removes cgroups beside its own, by programs that end at once.

Nothing about the cgroups' names or places leads to the unit: only who made them does, and
each `mkdir` lives for milliseconds.
"""

from __future__ import annotations

from nodescope.lab import guest
from nodescope.lab.scenario import Scenario, ScenarioRun, Truth
from nodescope.lab.unit_files import make_neighbours, unit_file
from nodescope.lab.unit_stage import get_silent
from nodescope.lab.zombie_scenarios import (
    PILE,
    TOLD_S,
    last_cpu,
    pile,
    prepare_reader,
    read,
    start_guest,
)

EACH_TIME = 60
_FIRST = 1_000_000  # beyond the numbers of the pile
# A page of a file that stays keeps the cgroup; the twin removes the file before the cgroup.
_SCRIPT = """\
number={first}
while :; do
    for _ in $(seq {count}); do
        number=$((number + 1))
        beside={slice}/{name}-$number
        mkdir "$beside"
        sh -c 'echo 0 > "$1/cgroup.procs"; head -c 4096 /dev/zero > "$2"' - \\
            "$beside" "/tmp/{name}-$number"
        {after}
        rmdir "$beside"
    done
    sleep {pause}
done
"""


def _prepare(run: ScenarioRun) -> None:
    unit, name = f"{run.variation.name()}.service", run.variation.name()
    neighbours = make_neighbours(run.variation)
    run.names |= {"unit": unit, "cgroups": name}
    run.innocent = tuple(neighbours)
    folder = run.ground.folder("script")
    (folder / "script").write_text(_write_script(run, name))
    own = unit_file(f"/bin/sh {folder}/script")
    inside = start_guest(run, {**neighbours, unit: own}, [folder])
    services = run.ground.memory.mount / inside.slice.lstrip("/")
    if not run.healthy:
        pile(run, services, name)
    prepare_reader(run, services.parent)


def _write_script(run: ScenarioRun, name: str) -> str:
    mount = "/sys/fs/cgroup" if run.ground.memory.unified else "/sys/fs/cgroup/memory"
    return _SCRIPT.format(
        slice=f"{mount}/system.slice",
        name=name,
        count=EACH_TIME,
        first=_FIRST,
        pause=run.variation.seconds(2, 4),
        after=f'rm "/tmp/{name}-$number"' if run.healthy else "",
    )


def _act(run: ScenarioRun) -> Truth:
    held = read(run)
    if run.healthy:
        return get_silent(run, "cgroups-beside")
    return Truth(
        "cgroups-beside", healthy=False, finding=True, roots=(run.names["unit"],),
        root_kinds=("unit",), mechanisms=("memcg_walk_by_reclaim",), symptoms=("core_held",),
        well=run.innocent, cpu=last_cpu(), simulated=(PILE,), held=held,
        facts={"cgroups": run.names["cgroups"], "each_time": EACH_TIME},
    )  # fmt: skip


SCENARIOS = (
    Scenario("cgroups-beside", "a unit's script leaks cgroups beside its own, by short programs",
             6000, 50_000, "zombies", _prepare, _act, require=guest.require,
             before_s=TOLD_S, slow=True),
)  # fmt: skip
