"""The page in Debian's chromium, on the story of 96 cores in little."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Dialog,
    Error,
    Page,
    expect,
    sync_playwright,
)
from tests.web.browser.seeing import PATIENCE_MS, SHAPE
from tests.web.browser.serving import Server

import nodescope.web
from nodescope.lab.synthetic import write_story

PROJECT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("story") / "archive"
    write_story(path, SHAPE)
    return path


@pytest.fixture(scope="session")
def served(story: Path, built: None) -> Iterator[Server]:
    with Server(story) as server:
        yield server


@pytest.fixture(scope="session")
def built() -> None:
    """The page of these sources; without Node and without network it is not there."""
    subprocess.run([PROJECT / "tools" / "page"], env=os.environ | {"VENV": sys.prefix}, check=True)
    if not Path(nodescope.web.__file__).with_name("page").joinpath("index.html").exists():
        pytest.skip("the page is not built: make page says why")


# Not for longer than a module: a browser that stays keeps an event loop running, and no
# later test could start one of its own.
@pytest.fixture(scope="module")
def chromium(built: None) -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        yield browser
        browser.close()


class Complaints:
    """What a page must not do, as it did it."""

    def __init__(self, page: Page) -> None:
        self.found: list[str] = []
        page.on("pageerror", self._error)
        page.on("console", self._console)
        page.on("dialog", self._dialog)

    def _error(self, error: Error) -> None:
        self.found.append(f"error: {error.message}")

    def _console(self, message: ConsoleMessage) -> None:
        # That a request failed is shown on the page; tests of that look there.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.found.append(f"console: {message.text}")

    def _dialog(self, dialog: Dialog) -> None:
        self.found.append(f"dialog: {dialog.message}")
        dialog.dismiss()


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A new window that may not complain; everything is waited for a minute."""
    context = chromium.new_context(viewport={"width": 1440, "height": 900}, color_scheme="dark")
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    complaints = Complaints(page)
    yield page
    context.close()
    assert complaints.found == []
