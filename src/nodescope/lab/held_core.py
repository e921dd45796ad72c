"""Holds one core in the kernel: `python -m nodescope.lab.held_core CORE SECONDS`.

A real-time task alone does not keep a core from its packets: soft interrupts run
on the way out of any interrupt. This one stays in the kernel with soft interrupts
held off, as a walk under a lock does: it runs a BPF program, which the kernel
runs that way, that copies 16 MiB of kernel memory until its time is over.

It says `ready`, or `impossible` and why. Then it holds the core once for each line it is
given, and says how long the kernel counts it as its own: `held 5.98`. It ends with its
input.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import struct
import sys
import time

from nodescope.lab.workers import say, settle
from nodescope.quantities import SECOND_NS

LONGEST_S = 10  # the kernel's own watchdogs wait for twenty
_SYSCALL = {"x86_64": 321, "aarch64": 280}
_MAP_CREATE, _PROG_LOAD, _PROG_TEST_RUN = 0, 5, 10
_ARRAY, _SOCKET_FILTER = 2, 1
_LOOKUP, _NOW_NS, _PROBE_READ_KERNEL = 1, 5, 113
_BYTES = 16 << 20
_MOST = 20_000  # copies, ten seconds' on any machine; the verifier walks through each
_ATTRIBUTES = 144
_PAUSE_S = 0.5  # between two rounds, so that the machine stays alive

_libc = ctypes.CDLL(None, use_errno=True)


def _bpf(command: int, attributes: bytes) -> int:
    buffer = ctypes.create_string_buffer(attributes, _ATTRIBUTES)
    result: int = _libc.syscall(_SYSCALL[platform.machine()], command, buffer, _ATTRIBUTES)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _instruction(code: int, dst: int = 0, src: int = 0, offset: int = 0, value: int = 0) -> bytes:
    return struct.pack("<BBhi", code, dst | src << 4, offset, value)


def _load(seconds: float) -> int:
    """A program that copies an array's one value onto itself, for so long."""
    array = _bpf(_MAP_CREATE, struct.pack("<IIII", _ARRAY, 4, _BYTES, 1))
    high, low = divmod(round(seconds * SECOND_NS), 1 << 31)
    i = _instruction
    code = b"".join(
        [
            i(0x85, 0, 0, 0, _NOW_NS),
            i(0xB7, 8, 0, 0, high), i(0x67, 8, 0, 0, 31),  # r8 = high << 31
            i(0x07, 8, 0, 0, low), i(0x0F, 8, 0),  # r8 = when to end
            i(0x62, 10, 0, -4, 0),  # the key, on the stack
            i(0x18, 1, 1, 0, array), i(0),  # r1 = array
            i(0xBF, 2, 10), i(0x07, 2, 0, 0, -4),  # r2 = address of the key
            i(0x85, 0, 0, 0, _LOOKUP),
            i(0x55, 0, 0, 2, 0),  # found: go on
            i(0xB7, 0, 0, 0, 0), i(0x95),
            i(0xBF, 6, 0),  # r6 = the value
            i(0xB7, 7, 0, 0, _MOST),
            i(0xBF, 1, 6), i(0xB7, 2, 0, 0, _BYTES), i(0xBF, 3, 6),
            i(0x85, 0, 0, 0, _PROBE_READ_KERNEL),
            i(0x07, 7, 0, 0, -1),
            i(0x85, 0, 0, 0, _NOW_NS),
            # The way out comes first: the verifier keeps the other in mind, and only 8192 such.
            i(0x2D, 8, 0, 2, 0),  # before r8: go on
            i(0xB7, 0, 0, 0, 0), i(0x95),
            i(0x55, 7, 0, -10, 0),  # once more
            i(0xB7, 0, 0, 0, 0), i(0x95),
        ]
    )  # fmt: skip
    text, licence = ctypes.create_string_buffer(code), ctypes.create_string_buffer(b"GPL")
    attributes = struct.pack(
        "<IIQQ", _SOCKET_FILTER, len(code) // 8, ctypes.addressof(text), ctypes.addressof(licence)
    )
    return _bpf(_PROG_LOAD, attributes)


def _run(program: int) -> float:
    """Run it once; for how many seconds the kernel counts this process in the kernel."""
    packet = ctypes.create_string_buffer(64)
    attributes = struct.pack("<IIIIQQI", program, 0, 64, 0, ctypes.addressof(packet), 0, 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_stime
    _bpf(_PROG_TEST_RUN, attributes)
    return resource.getrusage(resource.RUSAGE_SELF).ru_stime - before


def main() -> None:
    """Get ready; hold the core as often as asked."""
    core, seconds = int(sys.argv[1]), float(sys.argv[2])
    try:
        if platform.machine() not in _SYSCALL:
            raise OSError(f"no BPF for {platform.machine()} here")
        program = _load(min(seconds, LONGEST_S))
        settle("lab-holder", core)
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
    except OSError as error:
        say(f"impossible: a BPF program cannot hold a core here: {error}")
        return
    say("ready")
    for _ in sys.stdin:
        say(f"held {_run(program):.3f}")
        time.sleep(_PAUSE_S)


if __name__ == "__main__":
    main()
