"""What goes wrong around the page is said plainly, and the page recovers by itself."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.web.browser.seeing import CULPRIT, frame, link
from tests.web.browser.serving import Server

pytestmark = [pytest.mark.live, pytest.mark.beside, pytest.mark.debian("chromium")]


def test_an_archive_that_is_taken_away_and_comes_back(
    story: Path, built: None, page: Page, tmp_path: Path
) -> None:
    archive = tmp_path / "archive"
    shutil.copytree(story, archive)
    with Server(archive) as server:
        page.goto(server.link)
        expect(link(page, "mechanism")).to_be_visible()
        archive.rename(tmp_path / "elsewhere")
        banner = page.locator(".banner")
        expect(banner).to_have_attribute("data-state", "gone")
        expect(banner).to_contain_text("cannot be read")
        (tmp_path / "elsewhere").rename(archive)
        expect(banner).to_be_hidden()
        link(page, "mechanism").click()
        expect(frame(page, CULPRIT)).to_be_attached()


def test_a_server_that_is_stopped_and_started_again(story: Path, built: None, page: Page) -> None:
    with Server(story) as server:
        page.goto(server.link)
        expect(link(page, "mechanism")).to_be_visible()
        server.stop()
        banner = page.locator(".banner")
        expect(banner).to_have_attribute("data-state", "stopped")
        expect(banner).to_contain_text("nodescope serve")
        expect(link(page, "mechanism")).to_be_visible()  # the last answer stays
        server.start()
        expect(banner).to_be_hidden()
        link(page, "mechanism").click()
        expect(frame(page, CULPRIT)).to_be_attached()


def test_a_link_with_nonsense_in_it_still_opens(served: Server, page: Page) -> None:
    page.goto(f"{served.link}?sel=1~2&view=nonsense&cpu=nonsense&tab=nonsense&frame=(")
    expect(page.get_by_role("alert").filter(has_text="cpu").first).to_be_visible()
    page.goto(f"{served.link}?sel=-9e99~9e99&view=1~2")
    expect(page.get_by_role("heading", name="Nodescope")).to_be_visible()
    expect(link(page, "mechanism")).to_be_visible()
