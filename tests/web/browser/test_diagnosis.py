"""The diagnosis beside the views: what it offers besides its links."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.request import urlopen

import pytest
from playwright.sync_api import Page, expect
from tests.web.browser.seeing import BUNDLES, CULPRIT, HELD_MS, RESET_MS, frame, link, selected
from tests.web.browser.serving import Server

pytestmark = [pytest.mark.live, pytest.mark.beside, pytest.mark.debian("chromium")]


def test_silence_is_worth_what_could_be_seen(built: None, page: Page) -> None:
    with Server(BUNDLES / "zombie-agent-healthy.bundle") as server:
        page.goto(server.link)
        diagnosis = page.locator(".diagnosis")
        expect(diagnosis).to_contain_text("Nothing was found, but not everything could be seen")
        expect(diagnosis.locator(".missing")).to_contain_text("nearly full")  # not folded


def test_only_the_selection_is_diagnosed_on_request(served: Server, page: Page) -> None:
    page.goto(f"{served.link}?sel={RESET_MS - 400_000}~{RESET_MS - 300_000}")
    expect(link(page, "mechanism")).to_be_visible()
    page.get_by_role("group", name="Diagnosed span").get_by_text("Selection").click()
    expect(page.locator(".finding")).to_have_count(0)
    expect(page.locator(".condition").first).to_be_visible()
    page.wait_for_function("() => location.search.includes('diagnose=')")
    # another time that is typed is diagnosed, too; a link that is followed leaves it
    page.get_by_label("Selected to").fill("20:24:00")
    page.keyboard.press("Enter")
    expect(link(page, "mechanism")).to_be_visible()
    diagnosed = page.locator(".diagnosed").inner_text()
    link(page, "mechanism").click()
    expect(frame(page, CULPRIT)).to_be_attached()
    assert page.locator(".diagnosed").inner_text() == diagnosed
    page.get_by_role("group", name="Diagnosed span").get_by_text("Recording").click()
    expect(page.locator(".diagnosed")).to_have_count(0)
    expect(link(page, "mechanism")).to_be_visible()


def test_conditions_stand_below_the_findings_and_lead_to_what_shows_them(
    served: Server, page: Page
) -> None:
    page.goto(served.link)
    expect(link(page, "mechanism")).to_be_visible()
    loop = page.locator(".condition[data-kind=container_loop]")
    expect(loop).to_contain_text("warning ecs-agent loops: ")
    expect(loop).to_contain_text("container ecs-agent · ")
    last = page.locator(".finding").last.bounding_box()
    first = page.locator(".condition").first.bounding_box()
    assert last is not None
    assert first is not None
    assert first["y"] >= last["y"] + last["height"]
    loop.locator(".symptom").click()
    page.wait_for_function("() => location.search.includes('row=ecs-agent')")
    loop.get_by_text("What to do").click()
    expect(loop.locator(".fixes li").first).to_contain_text("look at container ecs-agent first")


def test_a_finding_without_a_cause_shows_why(served: Server, page: Page) -> None:
    found = json.loads(urlopen(f"{served.link}api/diagnosis").read())
    finding = found["findings"][0]
    chain = finding["chains"][0]
    chain["root"] = {"kind": "event", "name": "eth0"}
    hint = "record as root: `nodescope doctor`"
    finding |= {"unfollowed": 7, "ends": {"what": "samples", "consequence": "gone", "hint": hint}}
    page.route("**/api/diagnosis*", lambda route: route.fulfill(json=found))
    page.goto(served.link)
    shown = page.locator(".finding").first
    expect(shown).to_contain_text("This recording does not show a cause.")
    expect(shown.locator(".ends")).to_contain_text("samples: gone; record as root:")
    expect(shown.locator(".ends code")).to_have_text("nodescope doctor")
    expect(shown).to_contain_text("7 more of its kind were not followed.")
    expect(shown.locator(".meaning")).to_contain_text(chain["meaning"][:40])
    expect(shown.locator(".check").first).to_contain_text(chain["check"][0])


def test_the_symptom_and_what_else_happened_are_places_too(served: Server, page: Page) -> None:
    page.goto(served.link)
    expect(link(page, "mechanism")).to_be_visible()
    page.locator(".finding details").filter(has_text="Also").locator("summary").click()
    page.locator(".finding details").filter(has_text="Also").get_by_role("button").first.click()
    page.wait_for_function("() => location.search.includes('sel=')")
    begin, end = selected(page)
    assert begin < RESET_MS + 1000
    assert end > RESET_MS - 1000


def test_a_link_names_its_command_to_copy(served: Server, page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(served.link)
    link(page, "task").click()
    page.locator(".links").get_by_role("button", name="Copy").click()
    expect(page.get_by_role("status").filter(has_text="Copied")).to_be_visible()
    copied: str = page.evaluate("() => navigator.clipboard.readText()")
    assert copied.startswith("nodescope top --by comm --cpu 39 --from ")


def test_what_stops_the_culprit_is_a_command_to_copy(served: Server, page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(served.link)
    stopping = page.locator(".fixes .command").filter(has_text="systemctl").first
    stopping.get_by_role("button", name="Copy").click()
    copied: str = page.evaluate("() => navigator.clipboard.readText()")
    assert copied.startswith("systemctl disable --now ecs.service")


def test_reports_and_bundles_are_downloaded(served: Server, page: Page, tmp_path: Path) -> None:
    page.goto(served.link)
    downloads = page.locator(".diagnosis .downloads")
    sizes = {}
    for name in ("HTML", "Markdown", "Bundle"):
        with page.expect_download() as coming:
            downloads.get_by_role("link", name=name).click()
        coming.value.save_as(tmp_path / name)
        sizes[name] = (tmp_path / name).stat().st_size
    assert "ecs.service" in (tmp_path / "HTML").read_text()
    assert "ecs.service" in (tmp_path / "Markdown").read_text()
    assert sizes["Bundle"] > 10_000


def test_the_selection_is_exported_as_it_is_filtered(
    served: Server, page: Page, tmp_path: Path
) -> None:
    page.goto(f"{served.link}?sel={HELD_MS[0]}~{HELD_MS[1]}&cpu=39")
    page.locator(".exports > summary").click()
    with page.expect_download() as coming:
        page.get_by_role("link", name="speedscope").click()
    coming.value.save_as(tmp_path / "profile.json")
    profile = json.loads((tmp_path / "profile.json").read_text())
    frames = profile["shared"]["frames"]
    stacks = [stack for each in profile["profiles"] for stack in each["samples"]]
    names = {frames[number]["name"] for stack in stacks for number in stack}
    assert CULPRIT in names
    assert "at::native::mm" not in names
    page.keyboard.press("Escape")
    expect(page.locator(".exports > ul")).to_be_hidden()
