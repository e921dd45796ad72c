"""Facts of a container that a plan rests on, as its engine reports them.

A subject is `RUNTIME NAME`, of a limit `RUNTIME NAME LIMIT`.
"""

from __future__ import annotations

import time

from nodescope.errors import SourceAbsent
from nodescope.judgement.container_loops import loops_by_counter
from nodescope.records.json import JsonObject
from nodescope.remedy.engine import open_engine
from nodescope.remedy.node_access import NodeAccess
from nodescope.sources.containers.docker import container_of
from nodescope.wire.json_fields import inner, text, whole

# By the name of the limit in a step: the field of the engine's `HostConfig`.
LIMITS = {"memory": "Memory", "tasks": "PidsLimit", "cpu": "NanoCpus"}


def read_container_id(subject: str, node: NodeAccess) -> str:
    """Return which container has the name."""
    return text(_inspect(subject, node), "Id") or ""


def read_container_image(subject: str, node: NodeAccess) -> str:
    """Return the image that the container was made from, by its digest."""
    return text(_inspect(subject, node), "Image") or ""


def read_container_state(subject: str, node: NodeAccess) -> str:
    """Return its state, and which run of it; of one that loops, that it does."""
    container, _ = container_of(_inspect(subject, node), "inspection")
    if loops_by_counter(container, time.time_ns()):
        return "loops"
    since = container.started_wall_ns if container.running else None
    return f"{container.state}" if since is None else f"{container.state} since {since}"


def read_container_policy(subject: str, node: NodeAccess) -> str:
    """Return its restart policy, with the retries that it allows."""
    return describe_policy(_inspect(subject, node))


def describe_policy(inspected: JsonObject) -> str:
    """Return the restart policy as `docker run --restart` takes it."""
    policy = inner(inner(inspected, "HostConfig"), "RestartPolicy")
    name, retries = text(policy, "Name") or "no", whole(policy, "MaximumRetryCount") or 0
    return f"{name}:{retries}" if retries else name


def read_container_limit(subject: str, node: NodeAccess) -> str:
    """Return the value of one limit; 0: there is none."""
    subject, _, limit = subject.rpartition(" ")
    host = inner(_inspect(subject, node), "HostConfig")
    return str(whole(host, LIMITS.get(limit, limit)) or 0)


def _inspect(subject: str, node: NodeAccess) -> JsonObject:
    runtime, _, name = subject.partition(" ")
    engine = open_engine(node, runtime)
    inspected = engine.inspect(name)
    if inspected is None:
        raise SourceAbsent(engine.path, f"no container {name}")
    return inspected
