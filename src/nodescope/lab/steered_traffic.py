"""Packets for one core: `unshare --net --mount python -m nodescope.lab.steered_traffic CORE`.

Sends to itself over the loopback of its own network namespace, from any other core;
the kernel steers each packet to the core named (`rps_cpus`). It says `sending`, or
`impossible` and why, and goes on until it is killed; its namespaces go with it.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

from nodescope.lab.workers import say, settle

_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_STEERING = Path("/sys/class/net/lo/queues/rx-0/rps_cpus")
_PAUSE_S = 0.02


def render_mask(core: int) -> str:
    """One core as the kernel's masks have it: words of 32 bits, the highest first."""
    return f"{1 << core % 32:x}" + ",00000000" * (core // 32)


def _steer(core: int) -> None:
    subprocess.run(["mount", "-t", "sysfs", "sysfs", "/sys"], check=True)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", _IFF_UP))
    _STEERING.write_text(render_mask(core))


def main() -> None:
    """Steer, then send."""
    core = int(sys.argv[1])
    try:
        _steer(core)
    except (OSError, subprocess.CalledProcessError) as error:
        say(f"impossible: this kernel steers no packets: {error}")
        return
    settle("lab-traffic", -1, first=False)
    os.sched_setaffinity(0, os.sched_getaffinity(0) - {core})
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        receiver.bind(("127.0.0.1", 0))
        sender.connect(receiver.getsockname())
        say("sending")
        while True:
            sender.send(b"packet")
            time.sleep(_PAUSE_S)


if __name__ == "__main__":
    main()
