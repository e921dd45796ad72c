"""Packets for a thread on one core: `unshare --net python threaded_traffic.py CORE`.

A pair of veth devices in a network namespace of its own; a thread of the kernel
(threaded NAPI) serves what arrives, and that thread may run on the core named only.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

_SIOCETHTOOL = 0x8946
_SET_SEGMENTATION, _SET_RECEIVE_OFFLOAD = 0x1F, 0x2C


def _set(nic: str, what: int, value: int) -> None:
    request = ctypes.create_string_buffer(struct.pack("=II", what, value))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        ifreq = struct.pack("=16sQ8x", nic.encode(), ctypes.addressof(request))
        fcntl.ioctl(any_socket, _SIOCETHTOOL, ifreq)


def _thread_of(nic: str) -> int | None:
    for comm in Path("/proc").glob("[0-9]*/comm"):
        try:
            if comm.read_text().startswith(f"napi/{nic}-"):
                return int(comm.parent.name)
        except OSError:  # ended meanwhile
            continue
    return None


def main() -> None:
    core = int(sys.argv[1])
    sending, receiving = f"a{os.getpid()}", f"b{os.getpid()}"
    for command in (
        ["link", "add", sending, "type", "veth", "peer", "name", receiving],
        ["link", "set", sending, "up"],
        ["link", "set", receiving, "up"],
    ):
        subprocess.run(["ip", *command], check=True)
    # veth polls only what it may merge, and merges nothing from a sender that segments late.
    _set(sending, _SET_SEGMENTATION, 0)
    _set(receiving, _SET_RECEIVE_OFFLOAD, 1)
    subprocess.run(["mount", "-t", "sysfs", "sysfs", "/sys"], check=True)
    try:
        Path(f"/sys/class/net/{receiving}/threaded").write_text("1")
    except OSError as error:
        print("impossible", error, flush=True)
        return
    thread = _thread_of(receiving)
    if thread is None:
        print("impossible", "no thread serves the device", flush=True)
        return
    os.sched_setaffinity(thread, {core})
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
        raw.bind((sending, 0))
        print("sending", flush=True)
        while True:
            try:
                raw.send(b"\xff" * 6 + b"\x02" * 6 + b"\x88\xb5" + bytes(50))
            except OSError:  # its queue is full: nobody takes them
                pass
            time.sleep(0.02)


if __name__ == "__main__":
    main()
