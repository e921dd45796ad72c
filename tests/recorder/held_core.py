"""Holds one core in the kernel, again and again: `python held_core.py CORE SECONDS`.

A real-time task alone does not keep a core from its packets: soft interrupts run
on the way out of any interrupt. This one stays in the kernel with soft interrupts
held off, as a walk under a lock does: it runs a BPF program, which the kernel
runs that way, that copies 16 MiB of kernel memory many times over. Between two
rounds it sleeps for a moment, so that the machine stays alive.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
import time

_SYSCALL = {"x86_64": 321, "aarch64": 280}[platform.machine()]
_MAP_CREATE, _PROG_LOAD, _PROG_TEST_RUN = 0, 5, 10
_ARRAY, _SOCKET_FILTER = 2, 1
_LOOKUP, _PROBE_READ_KERNEL = 1, 113
_BYTES = 16 << 20
_MOST = 100_000  # copies; the verifier walks through each
_LONGEST_S = 10.0  # the kernel's own watchdogs wait for twenty
_ATTRIBUTES = 144

_libc = ctypes.CDLL(None, use_errno=True)


def _bpf(command: int, attributes: bytes) -> int:
    buffer = ctypes.create_string_buffer(attributes, _ATTRIBUTES)
    result: int = _libc.syscall(_SYSCALL, command, buffer, _ATTRIBUTES)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _instruction(code: int, dst: int = 0, src: int = 0, offset: int = 0, value: int = 0) -> bytes:
    return struct.pack("<BBhi", code, dst | src << 4, offset, value)


def _load(array: int, copies: int) -> int:
    """A program that copies the array's one value onto itself, `copies` times."""
    i = _instruction
    code = b"".join(
        [
            i(0x62, 10, 0, -4, 0),  # the key, on the stack
            i(0x18, 1, 1, 0, array), i(0),  # r1 = array
            i(0xBF, 2, 10), i(0x07, 2, 0, 0, -4),  # r2 = address of the key
            i(0x85, 0, 0, 0, _LOOKUP),
            i(0x55, 0, 0, 2, 0),  # found: go on
            i(0xB7, 0, 0, 0, 0), i(0x95),
            i(0xBF, 6, 0),  # r6 = the value
            i(0xB7, 7, 0, 0, copies),
            i(0xBF, 1, 6), i(0xB7, 2, 0, 0, _BYTES), i(0xBF, 3, 6),
            i(0x85, 0, 0, 0, _PROBE_READ_KERNEL),
            i(0x07, 7, 0, 0, -1),
            i(0x55, 7, 0, -6, 0),  # once more
            i(0xB7, 0, 0, 0, 0), i(0x95),
        ]
    )  # fmt: skip
    text, licence = ctypes.create_string_buffer(code), ctypes.create_string_buffer(b"GPL")
    attributes = struct.pack(
        "<IIQQ", _SOCKET_FILTER, len(code) // 8, ctypes.addressof(text), ctypes.addressof(licence)
    )
    return _bpf(_PROG_LOAD, attributes)


def _run(program: int) -> float:
    """Run it once; how long it took."""
    packet = ctypes.create_string_buffer(64)
    attributes = struct.pack("<IIIIQQI", program, 0, 64, 0, ctypes.addressof(packet), 0, 1)
    started = time.monotonic()
    _bpf(_PROG_TEST_RUN, attributes)
    return time.monotonic() - started


def main() -> None:
    core, seconds = int(sys.argv[1]), float(sys.argv[2])
    try:
        array = _bpf(_MAP_CREATE, struct.pack("<IIII", _ARRAY, 4, _BYTES, 1))
        program = _load(array, copies := 100)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOSYS, errno.EINVAL):
            raise
        print("impossible", error, flush=True)
        return
    os.sched_setaffinity(0, {core})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
    print("holding", flush=True)
    while True:
        took = _run(program)
        if not 0.8 * seconds < took < 1.5 * seconds:
            wanted = int(copies * min(seconds, _LONGEST_S) / took)
            copies = max(1, min(wanted, 16 * copies, _MOST))
            os.close(program)
            program = _load(array, copies)
        time.sleep(0.5)


if __name__ == "__main__":
    main()
