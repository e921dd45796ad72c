"""Set the restart policy of a container by its engine; undone exactly, retries included.

Arguments: `policy` (`no`, `always`, `unless-stopped`, `on-failure`) and, for `on-failure`,
`retries`. A container that loops ends by itself once its engine no longer restarts it: undo
starts it again, because it was started again and again before.
"""

from __future__ import annotations

import time

from nodescope.errors import RemedyError
from nodescope.judgement.container_loops import loops_by_counter
from nodescope.records.json import Json, JsonObject
from nodescope.remedy.actions.container_step import (
    engine_of,
    identifier_of,
    inspect,
    inspect_captured,
    is_on,
    why_not,
)
from nodescope.remedy.actions.operation import Captured, Standing, UndoOutcome
from nodescope.remedy.engine import Engine, as_remedy_errors
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep
from nodescope.remedy.rests_on.container_facts import describe_policy
from nodescope.sources.containers.docker import container_of
from nodescope.wire.json_fields import inner, text, whole

_POLICIES = ("no", "always", "unless-stopped", "on-failure")
_TRIES = 10
_BETWEEN_S = 0.1


class _SetRestartPolicy:
    """The operation."""

    def check(self, step: PlanStep, node: NodeAccess) -> str | None:
        """Refuse a policy that engines have not, and a container that is not changed here."""
        if step.arguments.get("policy") not in _POLICIES:
            return f"not a restart policy: {step.arguments.get('policy')!r}"
        retries = step.arguments.get("retries", "0")
        if not retries.isdecimal() or len(retries) > 6:
            return f"not a number of retries: {retries!r}"
        refused = why_not(step, node, ends=False)
        if refused is None and inner(inspect(step, node), "HostConfig").get("AutoRemove") is True:
            return f"{step.target.name} is removed by its engine once it stops (--rm)"
        return refused

    def capture(self, step: PlanStep, node: NodeAccess) -> Captured:
        """Read the policy, and whether the container lives by it."""
        inspected = inspect(step, node)
        container, _ = container_of(inspected, "inspection")
        loops = container.state == "restarting" or loops_by_counter(container, time.time_ns())
        return {"id": identifier_of(inspected), "loops": loops, **_policy(inspected)}

    def apply(self, step: PlanStep, node: NodeAccess, before: Captured) -> Captured:
        """Set it, and read it back."""
        engine = engine_of(step, node)
        with as_remedy_errors():
            _set_policy(engine, str(before["id"]), _wanted(step))
        now = _policy(inspect(step, node, str(before["id"])))
        if now != _wanted(step):
            raise RemedyError(
                f"{engine.runtime} accepted the restart policy, and did not take it over",
                hint="podman changes the policy of a container from version 5.1 on",
            )
        return now

    def stands(self, step: PlanStep, node: NodeAccess, before: Captured) -> Standing:
        """Decide by the policy that the engine reports."""
        now = inspect_captured(step, node, before)
        if now is None:
            return "other"
        if _policy(now) == _wanted(step):
            return "after"
        return "before" if _policy(now) == _captured(before) else "other"

    def undo(
        self, step: PlanStep, node: NodeAccess, before: Captured, after: Captured
    ) -> UndoOutcome:
        """Set the policy it had, unless somebody changed it since."""
        name = step.target.name or ""
        now = inspect_captured(step, node, before)
        if now is None:
            return UndoOutcome((), (f"container {name} was removed since; it is not made again",))
        if _policy(now) not in (_wanted(step), _captured(before)):
            shown = describe_policy(now)
            return UndoOutcome((), (f"container {name}: somebody set the policy {shown} since",))
        engine, identifier = engine_of(step, node), str(before["id"])
        with as_remedy_errors():
            _set_policy(engine, identifier, _captured(before))
            # Read again: a run that ended before the policy was back is not started by it.
            if before.get("loops") is True and not is_on(inspect(step, node, identifier)):
                engine.start(identifier)
        restored = describe_policy(inspect(step, node, identifier))
        return UndoOutcome((f"restart policy of container {name} is {restored}",))


def _policy(inspected: JsonObject) -> dict[str, Json]:
    policy = inner(inner(inspected, "HostConfig"), "RestartPolicy")
    name = text(policy, "Name") or "no"  # an engine may leave it empty
    return {"policy": name, "retries": whole(policy, "MaximumRetryCount") or 0}


def _wanted(step: PlanStep) -> dict[str, Json]:
    retries = int(step.arguments.get("retries", "0"))
    return {"policy": step.arguments["policy"], "retries": retries}


def _captured(before: Captured) -> dict[str, Json]:
    return {"policy": before.get("policy"), "retries": before.get("retries")}


def _set_policy(engine: Engine, identifier: str, policy: dict[str, Json]) -> None:
    """Have the engine set a policy, again if it refuses.

    One that loops may end while dockerd updates it, which is then refused and changes nothing.
    """
    named = {"Name": policy["policy"], "MaximumRetryCount": policy["retries"]}
    for _ in range(_TRIES - 1):
        try:
            return engine.update(identifier, {"RestartPolicy": named})
        except RemedyError:
            time.sleep(_BETWEEN_S)
    return engine.update(identifier, {"RestartPolicy": named})


OPERATION = _SetRestartPolicy()
