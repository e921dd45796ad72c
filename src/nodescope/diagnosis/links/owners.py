"""Whose the process on a pegged core is: the unit, container or pod that its cgroup is of."""

from __future__ import annotations

from collections.abc import Sequence

from nodescope.diagnosis.case import Case
from nodescope.diagnosis.evidence_views import view_top
from nodescope.diagnosis.finding import Link, Root
from nodescope.diagnosis.links.whose_cgroup import name_cgroup, read_root
from nodescope.diagnosis.story import Story
from nodescope.judgement.core_occupants import IN_ONE_CGROUP
from nodescope.judgement.unit_use import is_asked_by_preset_alone, is_enabled_by_preset
from nodescope.records.node_tables import UnitRow
from nodescope.records.view import Moment, View


def find_owner(case: Case, story: Story) -> tuple[list[Link], Root] | None:
    """Links from the process to who runs it; None where its cgroup says nothing."""
    held, comm = story.held, story.comm
    assert held is not None
    assert comm is not None
    main = case.cgroups_on(held.window, held.cpu, comm).find_main(IN_ONE_CGROUP)
    if main is None:
        return None
    path, _, share = main
    root = find_root(case, path, held.to_ns)
    if root is None:
        return None
    link = Link(
        "owner", root.name,
        f"{comm} is of {root.kind} {root.name}: {share:.0%} of its samples are in {path}",
        2.0 + 2.0 * share,
        view_top(held, "cgroup"),
        f"{comm} running so elsewhere, too",
    )  # fmt: skip
    links = [link]
    if root.kind == "unit":
        units = case.state(UnitRow, held.to_ns)
        unit = next((each for each in units if each.unit == root.name), None)
        if unit is not None:
            links.append(why_link(unit, units, held.to_ns))
    return links, root


def find_root(case: Case, cgroup: str, at_ns: int) -> Root | None:
    """Return the unit, container or pod that a cgroup is of; None if it is nobody's."""
    row = name_cgroup(case, cgroup, at_ns)
    return None if row is None else read_root(row)


def why_link(
    unit: UnitRow,
    units: Sequence[UnitRow],
    at_ns: int,
    runs: str | None = None,
) -> Link:
    """Why a unit is there: who enabled it, where it comes from, who wants it.

    `units` are all of the node: they show whether a preset says anything there.
    """
    by_preset = is_enabled_by_preset(unit, units)
    facts: list[str] = []
    if unit.file_state:
        by = " by the image's preset" if by_preset else ""
        facts.append(f"{unit.file_state}{by}")
    if unit.vendor:
        facts.append(f"from {_FROM.get(unit.vendor, unit.vendor)}")
    if unit.wanted_by:
        facts.append(f"wanted by {unit.wanted_by}")
    if unit.successes == 0 and (unit.failures or 0) > 0:
        facts.append("never succeeded since boot")
    running = f", which runs {runs}" if runs else ""
    alone = is_asked_by_preset_alone(unit, units)
    return Link(
        "why",
        unit.unit,
        f"{unit.unit}{running}: "
        + ("; ".join(facts) or "nothing is known of it")
        + ("; nothing but a default asks for it" if alone else ""),
        2.5 if facts else 0.5,
        View("audit", Moment(at_ns), unit=unit.unit),
        f"something that needs {unit.unit}",
        aside=True,
    )


# Where a unit's file lies, in words.
_FROM = {
    "vendor": "a package or the image",
    "administrator": "the administrator",
    "generator": "a generator",
    "runtime": "a program, until the next boot",
    "transient": "a program, while it runs",
}
