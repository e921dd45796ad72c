"""The owner of a container, by its OCI spec and its labels.

Kubernetes' runtimes leave the pod's names as labels (containerd, docker) or as
annotations of the spec (`io.kubernetes.cri.*`, containerd's CRI plugin).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nodescope.records.json import JsonObject
from nodescope.sources.containers.cgroups import oci_cgroup
from nodescope.wire.json_fields import inner, parse_object, text

POD_SANDBOX = "POD"  # the name of the container that only holds a pod's namespaces


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose container it is, as far as it is said."""

    name: str | None = None
    image: str | None = None
    namespace: str | None = None
    pod: str | None = None
    cgroup: str | None = None  # where its runtime wants it, from the root of the runtime's tree


def parse_spec(content: bytes, path: str | Path) -> Identity:
    """An OCI spec (`config.json` of a bundle, or what containerd keeps of it)."""
    spec = parse_object(content, path)
    annotations = inner(spec, "annotations")
    cgroup = oci_cgroup(text(inner(spec, "linux"), "cgroupsPath"))
    kind = text(annotations, "io.kubernetes.cri.container-type")
    return Identity(
        name=POD_SANDBOX
        if kind == "sandbox"
        else text(annotations, "io.kubernetes.cri.container-name")
        or text(annotations, "io.kubernetes.container.name"),
        image=text(annotations, "io.kubernetes.cri.image-name"),
        namespace=text(annotations, "io.kubernetes.cri.sandbox-namespace")
        or text(annotations, "io.kubernetes.pod.namespace"),
        pod=text(annotations, "io.kubernetes.cri.sandbox-name")
        or text(annotations, "io.kubernetes.pod.name"),
        cgroup=cgroup,
    )


def identity_of_labels(labels: JsonObject) -> Identity:
    """The kubelet's labels, or nerdctl's."""
    sandbox = text(labels, "io.cri-containerd.kind") == "sandbox"
    return Identity(
        name=POD_SANDBOX
        if sandbox
        else text(labels, "io.kubernetes.container.name") or text(labels, "nerdctl/name"),
        namespace=text(labels, "io.kubernetes.pod.namespace"),
        pod=text(labels, "io.kubernetes.pod.name"),
    )
