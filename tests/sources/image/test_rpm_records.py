"""Packages by rpm's database: a real one, and damaged ones."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.cli.image_roots import make_rpm_database, rpm_header

from nodescope.errors import MalformedSource
from nodescope.sources.image.image_files import ImageFiles
from nodescope.sources.image.rpm_header import parse_header
from nodescope.sources.image.rpm_records import read_rpm

_UNIT = "/usr/lib/systemd/system/agent.service"
_SPEC = f"""\
Name: agent
Version: 2.5
Release: 3
Summary: x
License: x
BuildArch: noarch
Requires: daemon-base
%description
x
%install
mkdir -p %{{buildroot}}/usr/lib/systemd/system
echo x > %{{buildroot}}{_UNIT}
%post
systemctl enable agent.service || :
%files
{_UNIT}
"""


@pytest.mark.debian("rpm")
def test_a_database_that_rpm_wrote(tmp_path: Path) -> None:
    (tmp_path / "agent.spec").write_text(_SPEC)
    root = tmp_path / "root"
    (root / "var/lib/rpm").mkdir(parents=True)
    defined = ["--define", f"_topdir {tmp_path}", "--define", f"_rpmdir {tmp_path}/out"]
    subprocess.run(
        ["rpmbuild", "-bb", *defined, "agent.spec"], cwd=tmp_path, check=True, capture_output=True
    )
    (built,) = (tmp_path / "out").rglob("*.rpm")
    rpm = ["rpm", "--root", str(root), "--dbpath", "/var/lib/rpm"]
    subprocess.run(
        [*rpm, "-i", "--nodeps", "--noscripts", str(built)], check=True, capture_output=True
    )
    installed = read_rpm(ImageFiles(root), {_UNIT, "/etc/other"})
    assert installed is not None
    owner = installed.owner(_UNIT)
    assert owner is not None
    assert str(owner) == "agent 2.5-3"
    assert owner.source == "agent"
    assert "daemon-base" in owner.needs
    assert "agent" in owner.provides
    assert "systemctl enable agent.service" in owner.scripts
    assert installed.owner("/etc/other") is None


def test_a_damaged_database_is_named(tmp_path: Path) -> None:
    path = make_rpm_database(tmp_path, [rpm_header("agent", (_UNIT,))])
    assert read_rpm(ImageFiles(tmp_path), {_UNIT}) is not None
    path.write_bytes(path.read_bytes()[:4000] + b"\xff" * 4096)
    damaged = read_rpm(ImageFiles(tmp_path), {_UNIT})
    assert damaged is not None
    assert not damaged.packages
    assert "rpmdb.sqlite" in damaged.unreadable[0]


def test_a_database_of_another_program_is_named(tmp_path: Path) -> None:
    make_rpm_database(tmp_path, [b"\0\0"])
    damaged = read_rpm(ImageFiles(tmp_path), {_UNIT})
    assert damaged is not None
    assert "header" in damaged.unreadable[0]
    assert read_rpm(ImageFiles(tmp_path / "none"), set()) is None


def test_a_header_cut_anywhere_is_malformed_or_read(tmp_path: Path) -> None:
    whole = rpm_header("agent", (_UNIT, "/etc/agent.conf"), ("a", "b"), "echo x")
    assert parse_header(whole, "x").paths == (_UNIT, "/etc/agent.conf")
    for end in range(len(whole)):
        with pytest.raises(MalformedSource):
            parse_header(whole[:end], "x")
    for number in range(8, len(whole)):
        changed = bytearray(whole)
        changed[number] ^= 0xFF
        try:
            parse_header(bytes(changed), "x")
        except MalformedSource:
            continue
