"""Everybody can use it: axe-core's rules in both themes, and all of it by keyboard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.web.browser.seeing import CULPRIT, HELD_MS, PATIENCE_MS, frame, link
from tests.web.browser.serving import Server

pytestmark = [pytest.mark.live, pytest.mark.beside, pytest.mark.debian("chromium")]

AXE = Path(__file__).parents[3] / "ui/node_modules/axe-core/axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def violations(page: Page) -> list[str]:
    """What axe calls serious or critical, and where."""
    page.evaluate(AXE.read_text())
    found: dict[str, Any] = page.evaluate(
        "rules => axe.run(document, {runOnly: {type: 'tag', values: rules}})", RULES
    )
    return [
        f"{each['impact']}: {each['id']}: {node['html'][:200]} {node['failureSummary'][:300]}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_axe_finds_nothing_serious(served: Server, chromium: Browser, scheme: Any) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: make page says why")
    # the page's own policy forbids scripts from elsewhere, and so axe
    with chromium.new_context(color_scheme=scheme, bypass_csp=True) as context:
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        page.goto(f"{served.link}?sel={HELD_MS[0]}~{HELD_MS[1]}")
        link(page, "mechanism").click()
        expect(frame(page, CULPRIT)).to_be_attached()
        assert violations(page) == []
        for tab in ("Table", "Compare", "Node facts"):
            page.get_by_role("tab", name=tab).click()
            expect(page.get_by_role("tabpanel").get_by_role("table").first).to_be_visible()
            assert violations(page) == [], tab
        page.locator(".exports > summary").click()
        page.keyboard.press("Tab")
        assert violations(page) == []


# The part of the page that has the focus, by what a person would call it.
FOCUSED = """() => {
    const element = document.activeElement
    if (!element || element === document.body) return ''
    const names = ['.exports', '.theme', '.filters', '.selected-time', '.toolbar', '.plots',
        '.heat-canvas', '.heat-tools', '[role=tablist]', '.flame-outline', '.flame .tools',
        '.diagnosis .link', '.diagnosis .symptom', '.diagnosis .downloads', '.panel > .close']
    const around = names.find((name) => element.closest(name))
    const box = element.getBoundingClientRect()
    const shown = element.matches(':focus-visible') ? '' : ' (not shown)'
    return (around ?? 'other: ' + element.outerHTML.slice(0, 80)) + shown
}"""


def test_tab_reaches_every_part(served: Server, page: Page) -> None:
    page.goto(f"{served.link}?sel={HELD_MS[0]}~{HELD_MS[1]}")
    expect(link(page, "mechanism")).to_be_visible()
    expect(frame(page, CULPRIT)).to_be_attached()
    reached: list[str] = []
    for _ in range(150):
        page.keyboard.press("Tab")
        focused: str = page.evaluate(FOCUSED)
        if not focused and reached:
            break  # once around
        if focused and focused not in reached:
            reached.append(focused)
    assert not [each for each in reached if "not shown" in each]
    wanted = [
        ".selected-time", ".filters", ".exports", ".theme", ".toolbar", ".plots", ".heat-canvas",
        "[role=tablist]", ".flame .tools", ".flame-outline", ".diagnosis .symptom",
        ".diagnosis .link", ".diagnosis .downloads",
    ]  # fmt: skip
    assert [each for each in wanted if each not in reached] == []
    order = [reached.index(each) for each in wanted]
    assert order == sorted(order), reached


def test_from_the_diagnosis_to_the_frame_by_keys_alone(served: Server, page: Page) -> None:
    page.goto(served.link)
    link(page, "mechanism").focus()
    page.keyboard.press("Enter")
    expect(frame(page, CULPRIT)).to_be_attached()
    tree = page.get_by_role("tree", name="Flame graph")
    tree.focus()
    for _ in range(14):
        page.keyboard.press("ArrowDown")
    expect(page.locator("[role=treeitem][aria-selected='true']")).to_have_attribute(
        "data-frame", CULPRIT
    )
    page.get_by_role("tab", name="Flame graph").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Table")).to_be_focused()
    expect(page.get_by_role("tabpanel").get_by_role("table")).to_contain_text(CULPRIT)


def test_the_timeline_by_keys(served: Server, page: Page) -> None:
    page.goto(f"{served.link}?sel={HELD_MS[0]}~{HELD_MS[1]}")
    plots = page.get_by_role("application", name="Timeline")
    seen = page.locator(".timeline .seen")
    expect(page.locator("canvas.strip")).to_have_attribute("data-rows", "96")
    whole = seen.get_attribute("data-from")
    plots.focus()
    page.keyboard.press("+")
    page.keyboard.press("+")
    expect(seen).not_to_have_attribute("data-from", whole or "")
    page.keyboard.press("a")
    expect(seen).to_have_attribute("data-from", whole or "")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()
