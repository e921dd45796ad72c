"""Wants one core whole, at real-time priority and in the kernel: `python busy_core.py CORE`."""

from __future__ import annotations

import os
import sys


def main() -> None:
    core = int(sys.argv[1])
    zeros, room = os.open("/dev/zero", os.O_RDONLY), bytearray(16 << 20)
    os.sched_setaffinity(0, {core})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
    print("busy", flush=True)
    while True:
        os.readv(zeros, [room])


if __name__ == "__main__":
    main()
