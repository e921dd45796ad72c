"""What tests need of the machine, said once: a missing need is a skip that names itself."""

from __future__ import annotations

import os
import shutil

import pytest
from hypothesis import settings

# How long an example takes depends on the machine; a hang is what pytest-timeout is for.
# Without luck: a change that breaks nothing must not fail for other examples than yesterday's.
settings.register_profile("nodescope", deadline=None, derandomize=True)
settings.load_profile("nodescope")

# The program by which a Debian package is known to be there.
_PROGRAMS = {
    "busybox-static": "busybox",
    "chromium": "chromium",
    "containerd": "ctr",
    "docker.io": "dockerd",
    "gcc": "gcc",
    "dbus": "dbus-daemon",
    "g++": "g++",
    "golang-go": "go",
    "iproute2": "ip",
    "linux-perf": "perf",
    "rpm": "rpmbuild",
    "rustc": "rustc",
    "sysstat": "mpstat",
    "systemd": "systemd-analyze",
    "util-linux": "setpriv",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test of the live kernel may meet a machine that is busy: twice more, and it is said."""
    for item in items:
        if item.get_closest_marker("live") or item.get_closest_marker("root"):
            item.add_marker(pytest.mark.flaky(reruns=2, reruns_delay=2))


def pytest_runtest_setup(item: pytest.Item) -> None:
    os.environ.pop("COLUMNS", None)  # pytest-xdist sets it: what is printed must not depend on it
    if item.get_closest_marker("root") and os.geteuid() != 0:
        pytest.skip("needs root")
    for marker in item.iter_markers("debian"):
        for package in marker.args:
            if shutil.which(_PROGRAMS[package]) is None:
                pytest.skip(f"needs the Debian package {package}")
