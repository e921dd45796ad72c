"""The CRI plugin of a real containerd, asked as a kubelet asks it: pods, attempts, removals.

Runs in a container host (`container_daemons`) beside its own containerd, which has no plugin.
Numbers of fields are those of `runtime.v1alpha2` (github.com/kubernetes/cri-api).
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

from tests.container_daemons import ContainerHost
from tests.waiting import wait_for

from nodescope.wire import protobuf
from nodescope.wire.grpc import GrpcConnection

_SOCKET = "/run/cri.sock"
_CONFIGURATION = f"""version = 2
root = "/opt/cri/lib"
state = "/opt/cri/run"
[grpc]
  address = "{_SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/library/pause:latest"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
"""
_FILES = "io.containerd.grpc.v1.cri"
_SERVICE = "/runtime.v1alpha2.RuntimeService/"
_OF_NODE, _OF_CONTAINER = 2, 1  # namespaces


class CriPlugin:
    """One plugin with one pod, whose container is started again and again."""

    def __init__(self, socket: Path, namespace: str, pod: str, uid: str) -> None:
        self.socket = socket
        self._connection = GrpcConnection(socket, 60.0, 1 << 20)
        self._labels = {
            "io.kubernetes.pod.name": pod,
            "io.kubernetes.pod.namespace": namespace,
            "io.kubernetes.pod.uid": uid,
        }
        text, data, number = protobuf.text_field, protobuf.bytes_field, protobuf.number_field
        namespaces = number(1, _OF_NODE) + number(2, _OF_CONTAINER)
        linux = text(1, f"/kubepods/burstable/pod{uid}") + data(2, data(1, namespaces))
        self._config = (
            data(1, text(1, pod) + text(2, uid) + text(3, namespace))
            + text(3, f"/var/log/pods/{namespace}_{pod}_{uid}")
            + _pairs(6, self._labels)
            + data(8, linux)
        )
        self._sandbox = self._ask("RunPodSandbox", data(1, self._config))

    def start(self, attempt: int, *command: str) -> str:
        """Start the container of the pod for the n-th time; its id."""
        text, data = protobuf.text_field, protobuf.bytes_field
        labels = self._labels | {"io.kubernetes.container.name": "app"}
        config = (
            data(1, text(1, "app") + protobuf.number_field(2, attempt))
            + data(2, text(1, "docker.io/library/looper:latest"))
            + b"".join(text(3, each) for each in command)
            + _pairs(9, labels)
            + text(11, f"app/{attempt}.log")
        )
        made = text(1, self._sandbox) + data(2, config) + data(3, self._config)
        identifier = self._ask("CreateContainer", made)
        self._ask("StartContainer", text(1, identifier))
        return identifier

    def remove(self, identifier: str) -> None:
        """Remove a container that ended, as the kubelet does with all but the last."""
        message = protobuf.text_field(1, identifier)
        method = f"{_SERVICE}RemoveContainer"  # refused until the plugin has seen the end
        wait_for(lambda: self._connection.call(method, message, {}) is not None, "its removal", 60)

    def close(self) -> None:
        self._connection.close()

    def _ask(self, method: str, message: bytes) -> str:
        answer = self._connection.call(_SERVICE + method, message, {})
        assert answer is not None, method
        return protobuf.text(protobuf.decode(answer), 1) or ""


def _pairs(field: int, pairs: Mapping[str, str]) -> bytes:
    text = protobuf.text_field
    return b"".join(
        protobuf.bytes_field(field, text(1, name) + text(2, value)) for name, value in pairs.items()
    )


@contextlib.contextmanager
def cri_plugin(
    host: ContainerHost, folder: Path, namespace: str, pod: str, uid: str
) -> Iterator[CriPlugin]:
    """Start the plugin and a pod; both end with the block, or with the host."""
    rootfs = host.places.inside("/opt/rootfs.tar").read_bytes()
    changes = quote('CMD ["/bin/sleep","100000"]')
    host.docker("POST", f"/images/create?fromSrc=-&repo=pause&changes={changes}", raw=rootfs)
    images = host.docker("GET", "/images/get?names=pause&names=looper")
    host.places.inside("/opt/images.tar").write_bytes(images)
    host.places.inside("/opt/cri.toml").write_text(_CONFIGURATION)
    host.run("mkdir", "-p", f"/opt/cri/lib/{_FILES}", "/var/lib/containerd")
    # Relative: it is also followed from outside of the host.
    host.run("ln", "-sfn", f"../../../opt/cri/lib/{_FILES}", f"/var/lib/containerd/{_FILES}")
    log = folder / "cri.log"
    start = "echo $$ > /opt/cri.pid; exec containerd -c /opt/cri.toml"
    with log.open("wb") as errors:
        daemon = subprocess.Popen(
            ["nsenter", "-t", str(host.pid), "-a", "--wd=/", "sh", "-c", start],
            stdout=errors,
            stderr=errors,
        )
    ctr = ("ctr", "-a", _SOCKET, "-n", "k8s.io")
    try:
        ready = "a containerd with its CRI plugin"
        wait_for(lambda: host.run(*ctr, "version", check=False), ready, process=daemon, log=log)
        host.run(*ctr, "images", "import", "--snapshotter", "native", "/opt/images.tar")
        plugin = CriPlugin(host.places.inside(_SOCKET), namespace, pod, uid)
        yield plugin
        plugin.close()
    finally:
        host.run("sh", "-c", "kill $(cat /opt/cri.pid)", check=False)
        daemon.wait(60)
