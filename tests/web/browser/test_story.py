"""From opening the page to the culprit's frame, by every way a person takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.web.browser.seeing import (
    BUNDLES,
    CULPRIT,
    HELD_MS,
    RESET_MS,
    frame,
    heatmap_at,
    link,
    selected,
    wait_for_value,
)
from tests.web.browser.serving import Server

pytestmark = [pytest.mark.live, pytest.mark.beside, pytest.mark.debian("chromium")]


def test_one_click_on_the_diagnosis_shows_the_culprit(served: Server, page: Page) -> None:
    page.goto(served.link)
    expect(page.get_by_role("heading", name="Nodescope")).to_be_visible()
    link(page, "mechanism").click()
    expect(frame(page, CULPRIT)).to_be_attached()
    expect(link(page, "mechanism")).to_have_attribute("aria-current", "true")
    assert "cpu=39" in page.url
    begin, end = selected(page)
    assert begin <= HELD_MS[0] + 1000
    assert end >= HELD_MS[1] - 1000


def test_the_page_opens_on_the_seconds_of_the_first_finding(served: Server, page: Page) -> None:
    page.goto(served.link)
    expect(frame(page, CULPRIT)).to_be_attached()
    page.wait_for_function("() => location.search.includes('sel=')")
    assert selected(page) == pytest.approx(HELD_MS)
    expect(page.locator(".heat-head")).to_contain_text("samples selected")
    # the cause comes first, and nothing reads like something else
    expect(page.locator(".finding .body > *").first).to_have_class("chain")
    expect(page.locator(".hidden-note").first).to_be_attached()
    expect(page.locator(".hot button")).to_have_text(["core 39"])
    expect(page.get_by_label("Filter by process")).to_have_attribute("placeholder", "e.g. kubelet")


def test_on_a_small_screen_the_culprit_is_in_sight_and_marked(served: Server, page: Page) -> None:
    page.set_viewport_size({"width": 1100, "height": 800})
    page.goto(served.link)
    page.wait_for_function("() => location.search.includes('sel=')")
    expect(page.locator(".flame-stage canvas")).to_be_in_viewport(ratio=0.3)
    expect(page.locator("[data-track='zombies'] .fold")).to_have_attribute("aria-expanded", "false")
    link(page, "mechanism").click()
    graph = page.locator(".flame-graph")
    expect(graph).to_have_attribute("data-current", CULPRIT)
    expect(graph.locator("canvas")).to_be_in_viewport(ratio=0.9)
    expect(page.locator(".flame-status")).to_contain_text(CULPRIT)
    # every level down to the culprit's is above the lower edge of what is scrolled
    stage = page.locator(".flame-stage")
    seen = stage.evaluate("stage => stage.scrollTop + stage.clientHeight")
    depth = page.locator(f"[role=treeitem][data-frame='{CULPRIT}']").first
    assert int(depth.get_attribute("aria-level") or 0) * 19 <= seen + 1


def test_each_process_has_a_lane(served: Server, page: Page) -> None:
    page.goto(served.link)
    track = page.locator("[data-track='processes']")
    expect(track.locator(".fold")).to_have_attribute("aria-expanded", "false")
    expect(track.get_by_text("kubelet")).to_be_visible()
    track.locator(".fold").click()
    lanes = int(track.locator("canvas").get_attribute("data-lanes") or 0)
    expect(track.locator(".gutter li")).to_have_count(lanes)
    assert lanes > 1


def test_links_go_to_the_node_facts_and_the_timeline(served: Server, page: Page) -> None:
    page.goto(served.link)
    link(page, "queue").click()
    queue = page.locator(".facts [data-queue='5']")
    expect(queue).to_contain_text("core 39")
    expect(page.get_by_role("tab", name="Node facts")).to_have_attribute("aria-selected", "true")
    link(page, "core").click()
    begin, end = selected(page)
    assert begin <= HELD_MS[0]
    assert end >= HELD_MS[1] - 1000
    link(page, "state").click()
    # one more zombie every half minute: the moment is the symptom's, not the reset's
    expect(page.locator(".facts .figures")).to_contain_text(re.compile(r"68,68\d"))
    expect(page.locator(".facts")).to_contain_text("/ecs")
    marked = page.locator(".facts [data-marked]")
    for kind, name in (("parent", "/ecs"), ("source", "ecs-agent"), ("why", "ecs.service")):
        link(page, kind).click()
        expect(marked).to_contain_text(name)
        expect(marked).to_be_in_viewport()
    link(page, "state").click()
    expect(marked).to_have_count(0)
    page.go_back()
    page.go_back()
    expect(link(page, "queue")).to_be_visible()


def test_the_recording_of_a_real_run_is_solved_by_one_click(
    built: None, page: Page, tmp_path: Path
) -> None:
    with Server(BUNDLES / "zombie-agent.bundle") as server:
        page.goto(server.link)
        link(page, "mechanism").click()
        expect(frame(page, "mem_cgroup_iter")).to_be_attached()


def test_selecting_by_hand_in_the_heatmap_shows_the_culprit(served: Server, page: Page) -> None:
    page.goto(f"{served.link}?sel={RESET_MS - 100_000}~{RESET_MS + 20_000}")
    expect(page.locator(".heat-canvas")).to_have_attribute("data-columns", "120")
    page.mouse.move(*heatmap_at(page, HELD_MS[0] + 500))
    page.mouse.down()
    page.mouse.move(*heatmap_at(page, HELD_MS[0] + 3000), steps=4)
    page.mouse.move(*heatmap_at(page, HELD_MS[1] - 500), steps=4)
    page.mouse.up()
    page.wait_for_function("range => !location.search.includes(range)", arg=f"~{RESET_MS + 20_000}")
    begin, end = selected(page)
    assert HELD_MS[0] - 1000 <= begin < end <= HELD_MS[1] + 1000
    # 97 samples a second of the held core, and none of before the selection
    wait_for_value(page, CULPRIT, (end - begin) / 1000 * 97)


def test_selecting_by_keys_in_the_heatmap(served: Server, page: Page) -> None:
    page.goto(f"{served.link}?sel={RESET_MS - 100_000}~{RESET_MS + 20_000}")
    canvas = page.locator(".heat-canvas")
    expect(canvas).to_have_attribute("data-columns", "120")
    canvas.focus()
    page.keyboard.press("Home")
    page.keyboard.press("Space")
    for _ in range(3):
        page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Space")
    page.wait_for_function("range => !location.search.includes(range)", arg=f"~{RESET_MS + 20_000}")
    begin, end = selected(page)
    assert begin == pytest.approx(RESET_MS - 100_000, abs=1000)
    assert 14_000 < end - begin < 17_000


def test_the_link_reproduces_the_view(served: Server, page: Page, chromium: Browser) -> None:
    page.goto(served.link)
    link(page, "task").click()
    expect(frame(page, CULPRIT)).to_be_attached()
    value = frame(page, CULPRIT).get_attribute("data-value")
    page.get_by_role("searchbox", name="Search frames").fill("lru")
    page.wait_for_function("() => location.search.includes('lru')")
    with chromium.new_context() as elsewhere:
        other = elsewhere.new_page()
        other.goto(page.url)
        expect(frame(other, CULPRIT)).to_have_attribute("data-value", value or "")
        expect(other.get_by_role("searchbox", name="Search frames")).to_have_value("lru")
        assert selected(other) == selected(page)
        assert "cpu=39" in other.url


def test_search_tells_the_share_of_its_matches(served: Server, page: Page) -> None:
    page.goto(f"{served.link}?sel={HELD_MS[0]}~{HELD_MS[1]}&cpu=39")
    expect(frame(page, CULPRIT)).to_be_attached()
    page.get_by_role("searchbox", name="Search frames").fill(CULPRIT)
    expect(page.locator(".flame").get_by_text(re.compile(r"100\.0 % in 1 frame"))).to_be_visible()
    page.get_by_role("searchbox", name="Search frames").fill("no such frame")
    expect(page.locator(".flame").get_by_text("no match")).to_be_visible()


def test_filtering_by_core_39(served: Server, page: Page) -> None:
    page.goto(f"{served.link}?sel={HELD_MS[0]}~{HELD_MS[1]}")
    expect(frame(page, "at::native::mm")).to_be_attached()
    page.get_by_role("combobox", name="Filter by").first.select_option("cpu")
    page.get_by_label("Filter by core").fill("39")
    page.keyboard.press("Enter")
    expect(page.locator(".chip[data-filter='cpu']")).to_contain_text("39")
    wait_for_value(page, "all", 6 * 97)
    expect(page.locator("canvas.strip")).to_have_attribute("data-rows", "1")
    page.get_by_role("button", name="Remove the filter core 39").click()
    expect(page.locator("canvas.strip")).to_have_attribute("data-rows", "96")
    expect(frame(page, "at::native::mm")).to_be_attached()


def test_comparing_names_what_is_new(served: Server, page: Page) -> None:
    page.goto(f"{served.link}?sel={HELD_MS[0]}~{HELD_MS[1]}&tab=compare")
    row = page.get_by_role("row").filter(has_text=CULPRIT).first
    expect(row).to_contain_text(re.compile("new", re.IGNORECASE))
