"""The parts that all steps on containers share: which container, and whether it may be changed.

A step names its container; what it captures has the id, and every change is made by that id.
A container that something makes anew under the same name is gone by then, and coming back: the
step refuses, and names the maker if it can be known.
"""

from __future__ import annotations

from nodescope.errors import RemedyError, SourceError
from nodescope.records.json import JsonObject
from nodescope.remedy.actions.operation import Captured
from nodescope.remedy.engine import Engine, as_remedy_errors, labels_of, open_engine
from nodescope.remedy.guard.container_makers import find_maker
from nodescope.remedy.guard.container_surroundings import describe_pod, find_declared
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep
from nodescope.wire.json_fields import inner, text


def engine_of(step: PlanStep, node: NodeAccess) -> Engine:
    """Return the engine that runs the step's container."""
    with as_remedy_errors():
        return open_engine(node, step.target.runtime)


def inspect(step: PlanStep, node: NodeAccess, identifier: str | None = None) -> JsonObject:
    """Return what the engine knows of the container, by its id once that is captured."""
    engine = engine_of(step, node)
    with as_remedy_errors():
        inspected = engine.inspect(identifier or step.target.name or "")
    if inspected is None:
        raise RemedyError(f"{engine.runtime} has no container {identifier or step.target.name}")
    return inspected


def inspect_captured(step: PlanStep, node: NodeAccess, before: Captured) -> JsonObject | None:
    """Return the captured container as it is now; None if it was removed."""
    identifier = before.get("id")
    with as_remedy_errors():
        return engine_of(step, node).inspect(str(identifier))


def why_not(step: PlanStep, node: NodeAccess, *, ends: bool) -> str | None:
    """Return why the container cannot be changed here; None if it can."""
    name = step.target.name or ""
    if step.target.within:
        return describe_pod(step.target.within, name)
    try:
        engine = open_engine(node, step.target.runtime)
        inspected = engine.inspect(name)
    except SourceError as error:
        return str(error)
    if inspected is None:
        return f"{engine.runtime} has no container {name}"
    declared = find_declared(labels_of(inspected), name)
    if declared:
        return declared
    if ends and inner(inspected, "HostConfig").get("AutoRemove") is True:
        return f"{name} is removed by its engine once it stops (--rm): it could not come back"
    maker = find_maker(inspected, engine, node)
    return None if maker is None else maker.why


def is_on(inspected: JsonObject) -> bool:
    """Decide whether a container runs, or will be started again by its engine."""
    return text(inner(inspected, "State"), "Status") in ("running", "paused", "restarting")


def identifier_of(inspected: JsonObject) -> str:
    """Return the id of an inspected container."""
    identifier = text(inspected, "Id")
    if identifier is None or not identifier.isalnum():
        raise RemedyError("the engine reports a container without an id")
    return identifier
