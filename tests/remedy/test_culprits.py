from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from nodescope.quantities import SECOND_NS
from nodescope.remedy.culprits import UNKNOWN, LoggedLine, Surmise, name_culprit
from nodescope.remedy.unit_links import find_enabling_links

_SINCE = 1_000 * SECOND_NS
_ON = 1_100 * SECOND_NS


def _line(text: str, by: str = "tool", unit: str = "", second: int = 1_099) -> LoggedLine:
    return LoggedLine(second * SECOND_NS, by, unit, text)


def _name(*lines: LoggedLine, **more: Any) -> str:
    return name_culprit(Surmise("ecs.service", _SINCE, _ON, lines=lines, **more))


def test_without_evidence_nobody_is_named() -> None:
    assert _name() == UNKNOWN
    assert _name(_line("Started ecs.service", by="systemd")) == UNKNOWN
    assert _name(_line("agent of ecs starts", unit="ecs.service")) == UNKNOWN
    assert _name(_line("ecs was stopped", second=900)) == UNKNOWN
    assert _name(_line("started ecs-volume and my-ecs")) == UNKNOWN


def test_a_line_about_the_unit_names_who_logged_it() -> None:
    said = "  alice : TTY=pts/0 ; COMMAND=/usr/bin/systemctl start ecs"
    assert _name(_line(said, by="sudo")).startswith("sudo at ")
    assert "COMMAND=/usr/bin/systemctl start ecs" in _name(_line(said, by="sudo"))
    changed = "(/Stage[main]/Ecs/Service[ecs]/ensure) ensure changed 'stopped' to 'running'"
    puppet = _name(_line(changed, by="puppet-agent", unit="puppet.service"))
    assert puppet.startswith("puppet-agent (puppet.service) at ")


def test_a_unit_that_starts_it_comes_before_what_is_logged() -> None:
    named = _name(_line("start ecs", by="sudo"), pulled_in_by=("ecs.socket",))
    assert named == "ecs.socket, which starts it"


def test_a_client_that_systemd_names_counts_if_it_asked_just_before() -> None:
    asked = "Reloading requested from client PID 812 ('chef-client') (unit chef.service)..."
    assert _name(_line(asked, by="systemd")) == (
        "chef-client (pid 812, of chef.service), which asked systemd then"
    )
    assert _name(_line(asked, by="systemd", second=1_010)) == UNKNOWN


def test_packages_and_neighbours_are_the_last_resort() -> None:
    assert _name(packages=("ecs-init",)) == "the set-up of package ecs-init (dpkg's log)"
    assert _name(started_before=("apt-daily.service",)) == (
        f"{UNKNOWN}; started just before it: apt-daily.service"
    )


def test_links_that_enable_a_unit_are_found_with_its_aliases(tmp_path: Path) -> None:
    etc = tmp_path / "etc/systemd/system"
    for folder in ("multi-user.target.wants", "a.service.requires", "ecs.service.d"):
        (etc / folder).mkdir(parents=True)
    for path, target in {
        "multi-user.target.wants/ecs.service": "/usr/lib/systemd/system/ecs.service",
        "multi-user.target.wants/other.service": "/usr/lib/systemd/system/other.service",
        "a.service.requires/agent.service": "../agent.service",
        "agent.service": "/usr/lib/systemd/system/ecs.service",
        "second.service": "agent.service",
        "ecs.service": "/opt/ecs.service",  # a linked unit stays: without it there is none
        "ecs.service.d/10.conf": "/x",
    }.items():
        os.symlink(target, etc / path)
    assert sorted(find_enabling_links(tmp_path, "ecs.service")) == [
        "/etc/systemd/system/a.service.requires/agent.service",
        "/etc/systemd/system/agent.service",
        "/etc/systemd/system/multi-user.target.wants/ecs.service",
        "/etc/systemd/system/second.service",
    ]
    assert find_enabling_links(tmp_path, "none.service") == []
    assert find_enabling_links(tmp_path / "nowhere", "ecs.service") == []
