"""Signs that a machine serves somebody: the lab does not touch it unasked.

A test machine is one of which its user says so, or one that nothing speaks against: its
own first process is in sight, which is no init system, and nobody runs containers on it.
That `/.dockerenv` is there says little: virtual machines are made from images, too. But
only in the machine's own pid namespace is the second process `kthreadd`, since 2.6.22.
"""

from __future__ import annotations

import os

from nodescope.sources.kernel_files import read_text
from nodescope.sources.places import Places

CONSENT = "NODESCOPE_LAB_YES"  # environment: as good as `--yes`
# As the kernel names them, in 15 letters. `init` is that of SysV, OpenRC, BusyBox, Upstart, …
_INIT_SYSTEMS = frozenset({
    "systemd", "init", "openrc-init", "runit", "runit-init", "s6-svscan", "dinit", "finit",
    "shepherd", "procd",
})  # fmt: skip
_RUN_FOR_OTHERS = frozenset({
    "kubelet", "kubelite", "k3s-server", "k3s-agent", "k0s", "rke2", "containerd",
    "containerd-shim", "dockerd", "crio", "conmon", "nomad", "amazon-ecs-init",
})  # fmt: skip


def has_consent() -> bool:
    """Return whether the environment says that this is a test machine."""
    return os.environ.get(CONSENT) == "1"


def find_signs(places: Places) -> list[str]:
    """Return the signs that the machine serves somebody, in words; none on a test machine."""
    if read_text(places.proc / "2/comm") != "kthreadd":
        return ["this is a container, and what else runs on its machine is not in sight"]
    signs = []
    first = read_text(places.proc / "1/comm")
    if first is None:
        signs.append("what its first process is cannot be read")
    elif first in _INIT_SYSTEMS:
        signs.append(f"its first process is {first}")
    signs += [f"{name} runs on it" for name in sorted(_find_runners(places))]
    return signs


def _find_runners(places: Places) -> set[str]:
    """Names of processes that run what others give them."""
    names = {read_text(path) for path in places.proc.glob("[0-9]*/comm")}
    return {name for name in names if name in _RUN_FOR_OTHERS}
