"""A recording that was made to harm: its names are text, and the page stays usable."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from tests.web.browser.hostile import IMAGE, SCRIPT, write_hostile
from tests.web.browser.seeing import frame
from tests.web.browser.serving import Server

pytestmark = [pytest.mark.live, pytest.mark.beside, pytest.mark.debian("chromium")]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory, built: None) -> Iterator[Server]:
    # 30,000 frames deep: the archive's own limit is 32,767
    archive = tmp_path_factory.mktemp("hostile") / "archive"
    write_hostile(archive, depth=30_000, width=100_000)
    with Server(archive) as server:
        yield server


def test_names_that_are_programs_are_shown_as_text(hostile: Server, page: Page) -> None:
    # The fixture fails the test if a dialog opens or a script of a name runs.
    page.goto(hostile.link)
    expect(page.locator(".topbar")).to_contain_text(IMAGE)
    expect(page.locator("main img, main script, main b > b")).to_have_count(0)
    expect(frame(page, SCRIPT)).to_be_attached()
    page.get_by_role("tab", name="Table").click()
    expect(page.get_by_role("tabpanel")).to_contain_text(SCRIPT)
    page.get_by_role("tab", name="Compare").click()
    expect(page.get_by_role("tabpanel")).to_be_visible()
    page.get_by_role("tab", name="Node facts").click()
    facts = page.locator(".facts")
    expect(facts).to_contain_text(SCRIPT)
    expect(facts).to_contain_text(IMAGE)
    expect(page.locator("main img, main script")).to_have_count(0)


def test_the_page_answers_to_keys_on_stacks_without_measure(hostile: Server, page: Page) -> None:
    page.goto(f"{hostile.link}?sel=0~9e12")  # all of it
    expect(frame(page, SCRIPT)).to_be_attached()
    tree = page.get_by_role("tree", name="Flame graph")
    tree.focus()
    for _ in range(20):
        page.keyboard.press("ArrowDown")
    expect(page.locator("[role=treeitem][aria-selected='true']")).to_have_attribute(
        "aria-level", "21"
    )
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Inverted").click()
    expect(page.get_by_role("button", name="Inverted")).to_have_attribute("aria-pressed", "true")
    # a slow pattern, then a broken one
    search = page.get_by_role("searchbox", name="Search frames")
    search.fill("/(a+)+$/")
    search.fill("/(/")
    search.fill("script")
    expect(page.locator(".flame")).to_contain_text("%")
