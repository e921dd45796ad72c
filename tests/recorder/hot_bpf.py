"""Loads BPF programs and runs them hot: `python -m tests.recorder.hot_bpf SECONDS NAME…`.

One after the other: each is loaded, run for so long, and unloaded, so that the next
is likely to be given its place. Says for each its name, when it was loaded and when its last run
ended, in nanoseconds of the monotonic clock.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import time

from nodescope.lab.held_core import _bpf, _instruction

_PROG_LOAD, _PROG_TEST_RUN = 5, 10
_SOCKET_FILTER = 1
_ROUNDS = 2_000  # the verifier walks through each
_REPEAT = 2_000


def _load(name: str, seed: int) -> int:
    i = _instruction
    # Arithmetic of its own: no helper is called, so that the samples are in the program itself.
    body = [i(0x27, 0, 0, 0, 3 + seed), i(0x07, 0, 0, 0, 7), i(0xA7, 0, 0, 0, 5)] * 4
    code = b"".join(
        [
            i(0xB7, 0, 0, 0, 1), i(0xB7, 7, 0, 0, _ROUNDS),
            *body,
            i(0x07, 7, 0, 0, -1),
            i(0x55, 7, 0, -len(body) - 2, 0),
            i(0xB7, 0, 0, 0, 0), i(0x95),
        ]
    )  # fmt: skip
    text, licence = ctypes.create_string_buffer(code), ctypes.create_string_buffer(b"GPL")
    attributes = struct.pack(
        "<IIQQIIQII16s", _SOCKET_FILTER, len(code) // 8, ctypes.addressof(text),
        ctypes.addressof(licence), 0, 0, 0, 0, 0, name.encode()[:15],
    )  # fmt: skip
    return _bpf(_PROG_LOAD, attributes)


def _run(program: int, seconds: float) -> None:
    packet = ctypes.create_string_buffer(64)
    attributes = struct.pack("<IIIIQQI", program, 0, 64, 0, ctypes.addressof(packet), 0, _REPEAT)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        _bpf(_PROG_TEST_RUN, attributes)


def main() -> None:
    """Run each in its turn."""
    seconds = float(sys.argv[1])
    for seed, name in enumerate(sys.argv[2:]):
        program = _load(name, seed)
        loaded = time.monotonic_ns()
        _run(program, seconds)
        print(name, loaded, time.monotonic_ns(), flush=True)
        os.close(program)


if __name__ == "__main__":
    main()
