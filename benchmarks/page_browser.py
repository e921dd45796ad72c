"""The page in chromium on the synthetic story, 12 hours of 96 cores: how soon something useful is
painted, and how many frames a second panning and zooming have. The first also on twelve hours of
samples with diverse stacks.

Something useful is the strip of all cores, drawn from the recording: the time is the
browser's own (`performance.now()`, from the start of the navigation) in the first frame
after its data came. Each load is in a new window with nothing cached; the first one is
right after the server was started, so that nothing is warm there either. Frames are
counted by `requestAnimationFrame` while a script turns the wheel once per frame: 3 s
each of zooming in and out around a moment and of panning at a zoom, after the page has
loaded and the diagnosis is there. Chromium without a
screen draws at most 60 frames a second, on the processor.

How it could be fooled: by an empty strip (its columns are counted), by a page that draws
and does not answer (the view must have moved as far as the wheel was turned).
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright
from tests.web.browser.serving import Server

from benchmarks.results import Bar, Grid, Options, Result
from benchmarks.story import story_archive
from benchmarks.twelve_hours import tame_and_diverse_hours

PAINT_BAR_S, FRAMES_BAR = 1.5, 50.0
LOADS = 7
PATIENCE_MS = 120_000
SIZE = {"width": 1440, "height": 900}

# Before anything of the page runs: note the first frame in which the strip has data.
_WATCH = """
const watch = () => {
    if (document.querySelector('canvas.strip')?.dataset.columns > 0) {
        requestAnimationFrame(() => (window.usefulPaint = performance.now()))
    } else requestAnimationFrame(watch)
}
watch()
"""

# Turn the wheel once per frame; the times between frames in ms, and where the view ends.
_WHEEL = """
([seconds, turns]) => new Promise((done) => {
    const plots = document.querySelector('.timeline .plots')
    const box = plots.getBoundingClientRect()
    const seen = document.querySelector('.timeline .seen').dataset
    const between = []
    let [last, moved, span] = [0, -1, '']
    const step = (now) => {
        if (last) between.push(now - last)
        last = now
        const turn = turns[between.length % turns.length]
        plots.dispatchEvent(new WheelEvent('wheel', {
            deltaX: turn.x, deltaY: turn.y, bubbles: true, cancelable: true,
            clientX: box.left + box.width * 0.6, clientY: box.top + box.height * 0.4,
        }))
        if (span !== seen.from + seen.to) moved += 1
        span = seen.from + seen.to
        if (between.reduce((sum, each) => sum + each, 0) < seconds * 1000) {
            requestAnimationFrame(step)
        } else done({between, moved})
    }
    requestAnimationFrame(step)
})
"""
_ZOOM = [{"x": 0, "y": -60}] * 60 + [{"x": 0, "y": 60}] * 60
_PAN = [{"x": 40, "y": 0}] * 50 + [{"x": -40, "y": 0}] * 50


def run(options: Options) -> Result:
    chromium = shutil.which("chromium")
    if chromium is None:
        return Result((), (), ("Not run: no chromium here (apt-get install chromium).",))
    loads = 3 if options.quick else LOADS
    with ExitStack() as stack:
        archive = stack.enter_context(story_archive())
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="nodescope-page-"))
        cache = Path(os.environ.get("NODESCOPE_BENCH_CACHE") or folder)
        _, diverse = tame_and_diverse_hours(cache, quick=options.quick)
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        with Server(archive) as server:
            paints = [_paint(browser, server.link) for _ in range(loads)]
            rates = _frames(browser, server.link, 1.0 if options.quick else 3.0)
        with Server(diverse) as server:
            diverse_paints = [_paint(browser, server.link) for _ in range(loads)]
        browser.close()
    cold, warm = paints[0], statistics.median(paints[1:])
    worst, diverse_worst = max(paints), max(diverse_paints)
    slowest = min(each["rate"] for each in rates)
    moved = min(each["moved"] / each["count"] for each in rates)
    bars = (
        Bar("first useful paint, slowest of all loads", "≤ 1.5 s", f"{worst:.2f} s",
            worst <= PAINT_BAR_S),
        Bar("first useful paint of 12 diverse hours, slowest", "≤ 1.5 s", f"{diverse_worst:.2f} s",
            diverse_worst <= PAINT_BAR_S),
        Bar("pan and zoom, slowest", "≥ 50 frames/s", f"{slowest:.0f} frames/s",
            slowest >= FRAMES_BAR),
        Bar("frames in which the view moved", "≥ 80 %", f"{moved:.0%}", moved >= 0.8),
    )  # fmt: skip
    rows = tuple(
        (each["what"], f"{each['rate']:.0f}", f"{each['longest']:.0f} ms", str(each["count"]))
        for each in rates
    )
    head = ("what", "frames/s", "longest 1 in 20", "frames")
    note = (
        f"First useful paint: {cold:.2f} s cold, then {warm:.2f} s (median of {len(paints) - 1})."
    )
    return Result(
        bars,
        (Grid("Frames", head, rows),),
        (note,),
        {"paints_s": paints, "diverse_paints_s": diverse_paints},
    )


def _open(browser: Browser, link: str) -> Page:
    context = browser.new_context(viewport=SIZE)  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.add_init_script(_WATCH)
    page.goto(link)
    page.wait_for_function("() => window.usefulPaint")
    return page


def _paint(browser: Browser, link: str) -> float:
    page = _open(browser, link)
    seconds = float(page.evaluate("() => window.usefulPaint")) / 1000
    page.context.close()
    return seconds


def _frames(browser: Browser, link: str, seconds: float) -> list[dict[str, Any]]:
    page = _open(browser, link)
    # What the page asks for when it opens is answered; the diagnosis takes longest.
    page.wait_for_function("""() => {
        const busy = document.querySelectorAll('.diagnosis[aria-busy=true], .loading.on')
        return busy.length === 0 && document.querySelector('.finding')
    }""")
    # The page opens on the finding: out to the whole recording first.
    _turn(page, "zoom out", 1.0, [{"x": 0, "y": 600}])
    rates = [
        _turn(page, "zoom of the whole recording", seconds, _ZOOM),
        _turn(page, "pan of the zoomed recording", seconds, [{"x": 0, "y": -60}] * 30 + _PAN),
    ]
    page.context.close()
    return rates


def _turn(page: Page, what: str, seconds: float, turns: list[dict[str, int]]) -> dict[str, Any]:
    found = page.evaluate(_WHEEL, [seconds, turns])
    between = sorted(found["between"])
    return {
        "what": what,
        "count": len(between),
        "rate": 1000 * len(between) / sum(between),
        "longest": between[int(len(between) * 0.95)],
        "moved": found["moved"],
    }
