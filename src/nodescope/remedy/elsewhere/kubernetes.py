"""A rollout as objects of Kubernetes: one Lease and one Job per node, by wave, for review.

JSON, which `kubectl apply -f` takes as it is: a name cannot become more than a name there. A Job
is suspended (`suspend: true`): whoever rolls out lets a wave go by `kubectl patch`, and the next
one only when the one before is validated.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from nodescope.errors import UsageError
from nodescope.records.json import Json, JsonObject
from nodescope.remedy.elsewhere.rollout import Rollout, RolloutNode
from nodescope.remedy.plan import Plan

_ZONE = "topology.kubernetes.io/zone"
_OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
_CORDON = "nodescope.io/cordoned-by"
_CAUSE = "nodescope.io/cause"
_LEASE = "nodescope.io/lease"
LEASE_S = 900


def parse_nodes(document: JsonObject) -> list[RolloutNode]:
    """Return the nodes of `kubectl get nodes -o json`."""
    items = document.get("items")
    if not isinstance(items, Sequence) or isinstance(items, str):
        raise UsageError(
            "this is not a list of nodes", hint="make it by `kubectl get nodes -o json`"
        )
    return [_parse_node(item) for item in items if isinstance(item, Mapping)]


def _parse_node(item: JsonObject) -> RolloutNode:
    metadata, spec, status = (_object(item, each) for each in ("metadata", "spec", "status"))
    labels, notes = _object(metadata, "labels"), _object(metadata, "annotations")
    cordoned = spec.get("unschedulable") is True
    conditions = status.get("conditions")
    ready = any(
        isinstance(each, Mapping) and each.get("type") == "Ready" and each.get("status") == "True"
        for each in (conditions if isinstance(conditions, Sequence) else ())
    )
    return RolloutNode(
        name=str(metadata.get("name", "")),
        zone=str(labels.get(_ZONE) or labels.get(_OLD_ZONE) or "unknown"),
        cause=str(notes.get(_CAUSE, "")),
        ready=ready,
        cordoned_by=str(notes.get(_CORDON) or "somebody") if cordoned else "",
        lease=str(notes.get(_LEASE, "")),
    )


def _object(fields: JsonObject, name: str) -> JsonObject:
    value = fields.get(name)
    return value if isinstance(value, Mapping) else {}


def render_kubernetes(plan: Plan, rollout: Rollout, image: str, namespace: str) -> str:
    """Return the objects of a rollout as one JSON list, wave after wave."""
    items: list[Json] = []
    for number, wave in enumerate(rollout.waves, 1):
        for node in wave:
            items += [_lease(plan, node, namespace), _job(plan, node, number, image, namespace)]
    document: Json = {
        "apiVersion": "v1",
        "kind": "List",
        "metadata": {},
        "items": items,
    }
    return json.dumps(document, indent=2)


def _labels(plan: Plan, wave: int | None = None) -> dict[str, Json]:
    labels: dict[str, Json] = {"app.kubernetes.io/name": "nodescope", "nodescope.io/plan": plan.id}
    return labels if wave is None else labels | {"nodescope.io/wave": str(wave)}


def _object_name(plan: Plan, node: RolloutNode) -> str:
    """Return a name of at most 63 characters that no other node of the plan has."""
    digest = hashlib.sha256(node.name.encode()).hexdigest()[:10]
    return f"nodescope-fix-{plan.id}-{digest}"


def _lease(plan: Plan, node: RolloutNode, namespace: str) -> Json:
    metadata: Json = {
        "name": _object_name(plan, node), "namespace": namespace, "labels": _labels(plan),
    }  # fmt: skip
    return {
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata,
        "spec": {"holderIdentity": f"nodescope-fix-{plan.id}-{node.name}",
                 "leaseDurationSeconds": LEASE_S},
    }  # fmt: skip


def _job(plan: Plan, node: RolloutNode, wave: int, image: str, namespace: str) -> Json:
    units = sorted({each.target.name or "" for each in plan.steps if each.target.kind == "unit"})
    # The plan is made anew on each node: it is bound to facts of the node it was made on.
    places = ["--root", "/host"]
    wishes = [word for unit in units for word in ("--unit", unit)]
    makes = ["fix", "plan", *places, *wishes, "--output", "/plan/plan.json"]
    applies = ["fix", "apply", "/plan/plan.json", "--yes", *places]
    pod: Json = {
        "nodeName": node.name, "restartPolicy": "Never", "automountServiceAccountToken": False,
        "initContainers": [_container("plan", image, makes, read_only=True)],
        "containers": [_container("apply", image, applies, read_only=False)],
        "volumes": [{"name": "host", "hostPath": {"path": "/"}}, {"name": "plan", "emptyDir": {}}],
    }  # fmt: skip
    return {
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": _object_name(plan, node), "namespace": namespace,
                     "labels": _labels(plan, wave)},
        "spec": {"suspend": True, "backoffLimit": 0, "activeDeadlineSeconds": LEASE_S,
                 "template": {"metadata": {"labels": _labels(plan, wave)}, "spec": pod}},
    }  # fmt: skip


def _container(name: str, image: str, arguments: Sequence[str], *, read_only: bool) -> Json:
    return {
        "name": name, "image": image, "args": list(arguments),
        "securityContext": {"runAsUser": 0, "readOnlyRootFilesystem": True,
                            "allowPrivilegeEscalation": False},
        "volumeMounts": [
            {"name": "host", "mountPath": "/host", "readOnly": read_only},
            {"name": "plan", "mountPath": "/plan"},
        ],
    }  # fmt: skip
