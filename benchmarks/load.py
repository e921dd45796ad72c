"""A load of many short processes that keeps every core busy: a build node in small.

Each round of a worker runs what builds and scripts run: shell pipelines, text
tools, compression, the start of an interpreter. One worker more than there
are cores, so that no core idles. `python -m benchmarks.load SECONDS` runs it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

ROUND = r"""
cd "$1"
while :; do
    ls -l /usr/bin | sort -k5n | tail -3
    grep -rc include /usr/include/linux | sort -t: -k2n | tail -1
    awk 'BEGIN { for (i = 0; i < 300000; i++) s += i % 7; print s }'
    /bin/true
    sh -c 'echo hi | cat'
    head -c 3000000 /dev/urandom | gzip -1 | wc -c
    "$2" -S -E -c 'print(sum(i * i for i in range(300000)))'
    find /usr/share/doc -name 'c*' | wc -l
done > /dev/null 2>&1
"""


@contextmanager
def many_short_processes() -> Iterator[None]:
    """The load, for as long as the context lasts."""
    # sys.executable may be a venv's shim; what it stands for starts quicker.
    interpreter = os.path.realpath(sys.executable)
    with tempfile.TemporaryDirectory(prefix="nodescope-load-") as folder:
        workers = [
            subprocess.Popen(
                ["/bin/bash", "-c", ROUND, "load", folder, interpreter], start_new_session=True
            )
            for _ in range((os.cpu_count() or 1) + 1)
        ]
        try:
            yield
            if any(worker.poll() is not None for worker in workers):
                raise SystemExit("the load ended before what it was for")
        finally:
            for worker in workers:
                os.killpg(worker.pid, 9)
                worker.wait()


def read_forks() -> int:
    """Processes and threads born since boot, from `/proc/stat`."""
    with open("/proc/stat", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("processes"))


if __name__ == "__main__":
    with many_short_processes():
        before = read_forks()
        seconds = float(sys.argv[1])
        time.sleep(seconds)
        print(f"{(read_forks() - before) / seconds:.0f} forks/s")
