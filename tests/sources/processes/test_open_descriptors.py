from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from nodescope.sources.processes.open_descriptors import parse_holdings, read_holdings

_STREAMS = {"0": ("/dev/null", False), "1": ("socket:[7]", True), "2": ("socket:[7]", True)}


@pytest.mark.parametrize(
    ("target", "writes", "counts"),
    [
        ("socket:[8]", True, "socket"),
        ("socket:[7]", True, None),  # the journal's, once more
        ("pipe:[9]", True, None),
        ("anon_inode:[eventpoll]", True, None),
        ("anon_inode:inotify", False, "inotify"),
        ("anon_inode:bpf-prog", True, "bpf-prog"),
        ("/dev/null", True, None),
        ("/dev/urandom", False, None),
        ("/dev/random", True, "/dev/random"),
        ("/run/crond.pid", True, "/run/crond.pid"),
        ("/usr/bin/agent.sh", False, None),
        ("/memfd:jit (deleted)", True, None),
        ("/dev/pts/3", False, "/dev/pts/3"),
    ],
)
def test_what_counts(target: str, writes: bool, counts: str | None) -> None:
    held = parse_holdings({**_STREAMS, "3": (target, writes)})
    assert held == ({counts} if counts else set())


def test_a_terminal_counts_as_a_stream_too() -> None:
    assert parse_holdings({**_STREAMS, "0": ("/dev/tty1", True)}) == {"/dev/tty1"}


@pytest.mark.live
def test_what_a_process_really_holds(tmp_path: Path) -> None:
    pause = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with socket.socket() as held, open(tmp_path / "log", "wb") as log:
        for passed, seen in (((), ()), ((held, log), (str(tmp_path / "log"), "socket"))):
            with subprocess.Popen(
                pause,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[each.fileno() for each in passed],
            ) as process:
                assert read_holdings(Path("/proc"), [process.pid]) == seen
                process.communicate()
                assert read_holdings(Path("/proc"), [process.pid]) == ()  # it ended


@pytest.mark.root
@pytest.mark.live
def test_a_process_that_may_not_be_looked_into_is_not_known() -> None:
    """As nobody, this very process cannot be looked into."""
    look = (
        "import os, sys; from pathlib import Path\n"
        "from nodescope.sources.processes.open_descriptors import read_holdings\n"
        "os.setuid(65534)\n"
        "sys.exit(read_holdings(Path('/proc'), [int(sys.argv[1])]) is None)\n"
    )
    done = subprocess.run([sys.executable, "-c", look, str(os.getpid())], check=False, timeout=60)
    assert done.returncode == 1
