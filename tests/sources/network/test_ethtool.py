"""What drivers say of themselves, by ioctl."""

from __future__ import annotations

import os
import struct
import subprocess

import pytest

from nodescope.errors import SourceError
from nodescope.sources.network.ethtool import (
    DriverInfo,
    KernelEthtool,
    parse_driver,
    parse_names,
    parse_statistics,
)


def test_a_drivers_answer() -> None:
    answer = struct.pack("=I32s32s32s32s32s12s5I", 3, b"ena", b"2.10.0g", b"", b"0000:20:03.0",
                         b"", b"", *[0] * 5)  # fmt: skip
    assert parse_driver(answer) == DriverInfo("ena", "2.10.0g", None, "0000:20:03.0")
    with pytest.raises(SourceError):
        parse_driver(b"short")


def test_names_and_values() -> None:
    names = ["tx_timeout", "total_resets"]
    strings = struct.pack("=III32s32s", 0x1B, 1, 2, *(name.encode() for name in names))
    assert parse_names(strings) == names
    assert parse_statistics(struct.pack("=IIQQ", 0x1D, 2, 5, 1), names) == {
        "tx_timeout": 5,
        "total_resets": 1,
    }


def test_a_driver_that_changed_its_mind_is_asked_another_time() -> None:
    assert parse_statistics(struct.pack("=IIQQQ", 0x1D, 3, 5, 1, 1), ["a", "b"]) == {}


@pytest.mark.live
def test_the_kernel_answers_for_devices_with_and_without_a_driver() -> None:
    ethtool = KernelEthtool()
    try:
        assert ethtool.driver("no-such-device") is None
        assert ethtool.statistics("no-such-device") == {}
        assert ethtool.statistics("lo") == {}
    finally:
        ethtool.close()


@pytest.mark.live
@pytest.mark.root
@pytest.mark.debian("iproute2")
def test_a_real_driver_is_named_and_counts() -> None:
    nic = f"ns{os.getpid() % 1_000_000}"
    made = subprocess.run(
        ["ip", "link", "add", nic, "type", "veth", "peer", "name", f"{nic}p"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip(f"no veth here: {made.stderr.strip()}")
    ethtool = KernelEthtool()
    try:
        info = ethtool.driver(nic)
        assert info is not None
        assert info.driver == "veth"
        statistics = ethtool.statistics(nic)
        assert statistics["peer_ifindex"] > 0
        assert ethtool.statistics(nic) == statistics
    finally:
        ethtool.close()
        subprocess.run(["ip", "link", "del", nic], check=False)
