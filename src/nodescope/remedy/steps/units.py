"""Steps that stop a unit and keep it from coming back.

What starts it again is stopped first: sockets, timers and path units that trigger it. Then it
is stopped, then disabled if it is enabled. Disabling does not help where a link that came with
the image, a preset or another unit pulls it in: there it is masked, or, where its file lies in
/etc itself, kept off by a drop-in. Files of vendors are never touched.
"""

from __future__ import annotations

from nodescope.errors import SourceError
from nodescope.records.action import Target
from nodescope.remedy.actions.mask_unit import OFF_DROP_IN
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep, Predicted
from nodescope.remedy.proposals import Proposal
from nodescope.remedy.steps.expansion import Expansion, join, refuse
from nodescope.remedy.unit_links import find_enabling_links
from nodescope.sources.systemd.unit import Unit

STOP_TIMEOUT_S = 90  # systemd's own default before it kills
_OFF = frozenset({"inactive", "failed"})


def expand_stop_unit(proposal: Proposal, node: NodeAccess) -> Expansion:
    """Return the steps that stop a unit, now and at every boot."""
    target = proposal.action.target
    if target is None or target.name is None:
        return Expansion(cannot=("the unit behind it is not known by name",))
    name = target.name
    found = node.manager.read_units([name]).get(name)
    if found is None:
        where = f"; it runs under its own systemd, below {target.within}" if target.within else ""
        hint = " (`--systemd-bus` names another)" if target.within else ""
        return refuse(target, f"the systemd that was asked does not know {name}{where}{hint}")
    if found.file_state == "transient":
        return refuse(
            Target("unit", name), "it has no unit file: a program made it; stop that program"
        )
    why = proposal.why
    triggers = [each for each in _triggers(found, node) if each.active not in _OFF]
    parts = [_stop_and_keep_off(each, node, f"it starts {name} again: {why}") for each in triggers]
    return join([*parts, _stop_and_keep_off(found, node, why)])


def _stop_and_keep_off(unit: Unit, node: NodeAccess, why: str) -> Expansion:
    steps = [_stop(unit, why)]
    if unit.enabled:
        steps.append(_disable(unit, node))
    if not unit.enabled or _is_pulled_in(unit):
        steps.append(_mask(unit))
    return Expansion(tuple(steps))


def _triggers(unit: Unit, node: NodeAccess) -> list[Unit]:
    """Return the sockets, timers and path units that start a unit."""
    names = [name for name in unit.dependants or () if _is_trigger(name)]
    try:
        known = node.manager.read_units(names)
    except SourceError:
        return []
    stem = unit.name.rpartition(".")[0]
    return [each for each in known.values()
            if each.triggers == unit.name or each.name.rpartition(".")[0] == stem]  # fmt: skip


def _is_trigger(name: str) -> bool:
    return name.endswith((".socket", ".timer", ".path"))


def _is_pulled_in(unit: Unit) -> bool:
    """Decide whether something other than its own links in /etc starts it at boot."""
    return unit.image_wants or unit.file_state == "generated"


def _stop(unit: Unit, why: str) -> PlanStep:
    loops = unit.restarts or 0
    predicts: tuple[Predicted, ...] = ()
    if loops:
        because = f"systemd restarted it {loops} times; stopped, it restarts no more"
        predicts = (Predicted("restarts", 0, 0, 0, because),)
    return PlanStep(
        "stop_unit", Target("unit", unit.name), why, {"timeout_s": str(STOP_TIMEOUT_S)},
        (f"unit {unit.name}: {unit.active} ({unit.sub}) → inactive",),
        ("systemctl", "stop", "--", unit.name),
        "start it again, as it ran before", predicts,
    )  # fmt: skip


def _disable(unit: Unit, node: NodeAccess) -> PlanStep:
    links = find_enabling_links(node.unit_root, unit.name)
    changes = [f"{path} (link): removed" for path in links] or [f"links of {unit.name}: removed"]
    return PlanStep(
        "disable_unit", Target("unit", unit.name), "so that it does not start at the next boot",
        {}, tuple(changes), ("systemctl", "disable", "--", unit.name),
        "put the same links back, with their owner and times",
    )  # fmt: skip


def _mask(unit: Unit) -> PlanStep:
    own = (unit.fragment or "").startswith("/etc/systemd/system/")
    folder = f"/etc/systemd/system/{unit.name}"
    if own:
        changes = (f"{folder}.d/{OFF_DROP_IN}: written, with a condition that is never met",)
    else:
        changes = (f"{folder}: made, a link to /dev/null",)
    return PlanStep(
        "mask_unit", Target("unit", unit.name), "so that nothing else starts it again",
        {}, changes, ("systemctl", "mask", "--", unit.name), "remove what was made",
    )  # fmt: skip
