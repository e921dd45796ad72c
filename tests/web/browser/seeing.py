"""The story that most tests look at, and where things are on the page."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from playwright.sync_api import Locator, Page

from nodescope.lab.synthetic import END_WALL_NS, Shape

PATIENCE_MS = 60_000
BUNDLES = Path(__file__).parents[2] / "diagnosis/bundles"

# Twenty minutes of the node, all 96 cores; core 39 is held before the reset.
SHAPE = replace(Shape(), seconds=1200, resets=(1000,))
START_MS = END_WALL_NS // 1_000_000 - SHAPE.seconds * 1000
RESET_MS = START_MS + SHAPE.resets[0] * 1000
HELD_MS = (RESET_MS - SHAPE.held_s * 1000, RESET_MS)
CULPRIT = "mem_cgroup_nr_lru_pages"


def frame(page: Page, name: str) -> Locator:
    """A frame of the flame graph, as its text beside says it."""
    return page.locator(f"[role=treeitem][data-frame='{name}']").first


def wait_for_value(page: Page, name: str, samples: float) -> None:
    """The frame has about that many samples."""
    page.wait_for_function(
        """([name, least, most]) => {
            const found = document.querySelector(`[role=treeitem][data-frame='${name}']`)
            const value = Number(found?.dataset.value)
            return value >= least && value <= most
        }""",
        arg=[name, samples * 0.9 - 2, samples * 1.1 + 2],
    )


def link(page: Page, kind: str) -> Locator:
    """A link of the first chain of the diagnosis."""
    return page.locator(f".links > li[data-kind='{kind}'] > button.link").first


def selected(page: Page) -> tuple[float, float]:
    """The selection, as the address has it."""
    found = re.search(r"[?&]sel=([\d.]+)~([\d.]+)", page.url)
    assert found is not None, page.url
    return float(found[1]), float(found[2])


def heatmap_at(page: Page, time_ms: float) -> tuple[float, float]:
    """Where a moment is on the screen."""
    canvas = page.locator(".heat-canvas")
    canvas.scroll_into_view_if_needed()
    shape = canvas.evaluate("element => ({...element.dataset})")
    box = canvas.bounding_box()
    assert box is not None
    place = (time_ms - float(shape["from"])) / float(shape["columnMs"])
    column, part = divmod(place, 1)
    across = (column + 0.5) / float(shape["columns"]) * float(shape["width"])
    up = (1 - part) * float(shape["height"])
    return box["x"] + float(shape["left"]) + across, box["y"] + float(shape["top"]) + up
