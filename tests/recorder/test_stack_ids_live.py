"""What runs while both the recorder and `perf record` listen has the same stack ids in both."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.recorder_process import recording
from tests.stack_ids import count_stack_ids

from nodescope.exchange.import_files import import_files

pytestmark = [pytest.mark.root, pytest.mark.live, pytest.mark.debian("linux-perf", "gcc")]

NAME = "stack-ids-load"
PROGRAM = """
#include <sys/syscall.h>
#include <unistd.h>
#define OWN __attribute__((noinline))
OWN long spin(long n) { volatile long s = 0; while (n--) s += n; return s; }
OWN long ask(long n) { long s = 0; while (n--) s += syscall(SYS_getppid); return s; }
OWN long outer(long n) { return spin(n) + 1; }
OWN long deep(long n, long d) { return d ? deep(n, d - 1) + 1 : spin(n) + 1; }
int main(void) { for (;;) { outer(300000); deep(300000, 9); ask(3000); } }
"""


@contextmanager
def two_processes(folder: Path) -> Iterator[None]:
    """Run the program twice, each time at other addresses."""
    source, program = folder / "load.c", folder / NAME
    source.write_text(PROGRAM)
    build = ["gcc", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-pie"]
    subprocess.run([*build, "-fPIE", "-o", program, source], check=True)
    running = [subprocess.Popen([program]) for _ in range(2)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def test_ids_of_an_import_are_those_of_the_recorder(tmp_path: Path) -> None:
    capture, imported, live = tmp_path / "perf.data", tmp_path / "imported", tmp_path / "live"
    frequency = ["--frequency", "499", "--without", "all"]
    with recording(live, *frequency, "--budget-cpu", "90%"), two_processes(tmp_path):
        command = ["perf", "record", "-q", "-F", "499", "-g", "-a", "-o", str(capture)]
        subprocess.run([*command, "--", "sleep", "2"], check=True, capture_output=True)
    import_files([capture], imported)
    name = NAME[:15]
    recorded, brought_in = (count_stack_ids(archive, name) for archive in (live, imported))
    # Each saw moments that the other did not: stacks of interrupts, mostly.
    both = recorded.keys() & brought_in.keys()
    assert len(both) >= 3
    for counts in (recorded, brought_in):
        assert sum(counts.values()) > 100
        assert sum(counts[each] for each in both) > 0.9 * sum(counts.values())
