from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.container_daemons import container_host

pytestmark = [
    pytest.mark.live,
    pytest.mark.beside,
    pytest.mark.root,
    pytest.mark.debian("docker.io", "containerd", "busybox-static", "iproute2"),
]


@pytest.mark.parametrize("daemon", ["containerd", "dockerd"])
def test_a_daemon_that_died_ends_every_wait(daemon: str, tmp_path: Path) -> None:
    with container_host(tmp_path) as host:
        kill = f"kill -9 $(pidof {daemon})"
        host.run("sh", "-c", kill, check=False)  # its shell may be ended with the host
        with pytest.raises(AssertionError) as raised:
            host.wait_for(lambda: False, "a container starts", 250.0)
    assert "ended with exit code 1 before: a container starts" in str(raised.value)
    assert f"{daemon} ended with exit code 137" in str(raised.value)


def test_our_commands_run_inside_wherever_they_lie(tmp_path: Path) -> None:
    with container_host(tmp_path) as host:
        shown = host.run(sys.executable, "-m", "nodescope.cli.main", "--version")
    assert shown.startswith("nodescope ")
