"""While a recorder writes, the page follows it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.recorder_process import recording
from tests.web.browser.serving import Server

from nodescope.archive.reader import Archive
from nodescope.errors import ArchiveError

pytestmark = [
    pytest.mark.root,
    pytest.mark.live,
    pytest.mark.beside,
    pytest.mark.debian("chromium"),
]


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Path]:
    """An archive that a real recorder is writing."""
    archive = tmp_path / "archive"
    with recording(archive, "--quiet") as recorder:
        recorder.wait_for(lambda: has_segments(archive), "the recorder's first samples")
        yield archive


def has_segments(archive: Path) -> bool:
    try:
        return any(len(each.read("samples", ["tick"])) for each in Archive.open(archive).segments())
    except ArchiveError:
        return False


def test_the_page_follows_a_recording_that_grows(recorded: Path, built: None, page: Page) -> None:
    with Server(recorded) as server:
        page.goto(server.link)
        expect(page.get_by_role("button", name="Live")).to_have_attribute("aria-pressed", "true")
        seen = page.locator(".timeline .seen")
        before = float(seen.get_attribute("data-to") or 0)
        page.wait_for_function(
            """before => Number(document.querySelector('.timeline .seen').dataset.to) > before""",
            arg=before + 4000,
        )
        page.get_by_role("button", name="Live").click()
        expect(page.get_by_role("button", name="Live")).to_have_attribute("aria-pressed", "false")
