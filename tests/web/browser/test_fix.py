"""A finding's Fix: the plan on the node that was recorded, steps while they are applied."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.systemd_guest import Guest, skip_without_namespaces
from tests.web.browser.seeing import BUNDLES
from tests.web.browser.serving import NODESCOPE, Server

pytestmark = [
    pytest.mark.live,
    pytest.mark.beside,
    pytest.mark.debian("chromium", "systemd", "dbus"),
]
LOOPS = (
    "[Service]\nExecStart=/bin/sh -c 'exit 3'\nRestart=always\nRestartSec=1s\n"
    "[Unit]\nStartLimitIntervalSec=0\n[Install]\nWantedBy=multi-user.target\n"
)


def test_a_bundle_shows_the_command_to_run_on_the_node(built: None, page: Page) -> None:
    with Server(BUNDLES / "zombie-agent.bundle") as server:
        page.goto(server.link)
        page.get_by_role("button", name="Fix…").click()
        plan = page.locator(".plan")
        expect(plan).to_contain_text("No plan can be made here: this is a bundle")
        expect(plan).to_contain_text("nodescope fix plan --archive")


@pytest.fixture
def looping(tmp_path: Path) -> Iterator[Guest]:
    skip_without_namespaces()
    guest = Guest(tmp_path / "guest", {"loops.service": LOOPS}, {})
    try:
        guest.run("systemctl", "enable", "--now", "--no-block", "loops.service")
        yield guest
    finally:
        guest.stop()


@pytest.mark.root
def test_the_plan_and_its_steps_are_shown_as_they_are_taken(
    built: None, page: Page, looping: Guest, tmp_path: Path
) -> None:
    archive, plan = tmp_path / "archive", tmp_path / "plan.json"
    there = ["--systemd-bus", looping.bus]
    record = [sys.executable, "-m", "nodescope.cli.main", "record", "--archive", str(archive)]
    subprocess.run([*record, "--duration", "25s", "--quiet", *there], check=True)
    with Server(archive, there) as server:
        page.goto(server.link)
        page.get_by_role("button", name="Fix…").click()
        steps = page.locator(".plan .steps > li")
        expect(steps.first).to_contain_text("stop loops.service")
        expect(page.locator(".plan")).to_contain_text(
            "/etc/systemd/system/multi-user.target.wants/loops.service (link): removed"
        )
        expect(page.locator(".plan")).to_contain_text("This page applies nothing")
        environment = os.environ | {"NODESCOPE_SYSTEMD_BUS": looping.bus}
        fix = [NODESCOPE, "fix"]
        made = ["plan", "--archive", str(archive), "--output", str(plan)]
        subprocess.run([*fix, *made], env=environment, check=True)
        subprocess.run([*fix, "apply", str(plan), "--yes"], env=environment, check=True)
        page.reload()
        applied = page.locator(".applied")
        expect(applied).to_contain_text("stop loops.service: applied")
        subprocess.run([*fix, "undo", str(plan), "--yes"], env=environment, check=True)
        page.reload()
        expect(applied).to_contain_text("stop loops.service: undone")
