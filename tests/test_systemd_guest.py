from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from tests.systemd_guest import Guest, skip_without_namespaces


@pytest.mark.live
@pytest.mark.beside
@pytest.mark.root
@pytest.mark.debian("systemd", "dbus", "iproute2")
def test_a_guest_that_died_ends_every_wait(tmp_path: Path) -> None:
    skip_without_namespaces()
    guest = Guest(tmp_path, {}, {})
    try:
        os.kill(guest.pid, signal.SIGKILL)
        with pytest.raises(AssertionError, match=r"ended with exit code \d+ before: a unit starts"):
            guest.wait_for(lambda: False, "a unit starts", 250.0)
    finally:
        guest.stop()
