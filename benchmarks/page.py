"""The server of the page on 12 hours of 96 cores: how soon it answers, and what it holds in memory
while eight viewers use it.

Three recordings: the synthetic story (core times, events, tracks: the timeline), twelve
hours made of real captures, nine times as many samples (heatmap and flame graph), and twelve
hours of stacks as diverse as `diversity.py` makes them. Times
are those of a client on loopback over a kept connection, body read, every request a
window nobody asked for before; the server's kept answers do not help. The first look is
`/api/recording` and `/api/cores` of everything: right after the link was printed, when
nothing is warm, and again when the server has read ahead, each time with another number
of columns.

The soak is eight viewers, each a thread that looks around as a person would (zooms,
selects, opens flame graphs, compares, now and then a diagnosis, and leaves before the
answer came), for NODESCOPE_BENCH_SOAK_S seconds (180; the bar's hour is 3600) on the
recordings in turn. Memory is the server's resident set, read every second.

Live: a recorder on an archive of its own, one viewer who follows and asks for what is
new, as the page does. How far behind is the wall clock against the end of the recording
as last told, looked at ten times a second.

How it could be fooled: by viewers that only wait (their requests are counted), by
answers that are errors (each status is checked), by the captures' twelve hours being the
same few segments again (see `views`).
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import statistics
import struct
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

from tests.recorder_process import recording
from tests.web.browser.serving import Server

from benchmarks.results import Bar, Grid, Options, Result
from benchmarks.story import story_archive
from benchmarks.twelve_hours import tame_and_diverse_hours

FIRST_BAR_S, HEATMAP_BAR_S, FLAME_BAR_S, MEMORY_BAR = 0.6, 0.2, 0.3, 500e6
BEHIND_BAR_S = 2.0
LIVE_S, SETTLE_S = 40.0, 12.0  # the recorder notices within a flush that somebody reads
VIEWERS = 8
REPEATS = 12
MINUTE_MS = 60_000.0


def run(options: Options) -> Result:
    soak_s = 20.0 if options.quick else float(os.environ.get("NODESCOPE_BENCH_SOAK_S") or 180)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nodescope-page-")))
        cache = Path(os.environ.get("NODESCOPE_BENCH_CACHE") or folder)
        story = stack.enter_context(story_archive())
        dense, diverse = tame_and_diverse_hours(cache, quick=options.quick)
        cold, warm = _first_looks(story)
        heatmaps, flames = _selections(dense)
        diverse_heatmaps, diverse_flames = _selections(diverse)
        soaks = [_soak(path, soak_s / 3) for path in (story, dense, diverse)]
        behind = _live(folder / "live" / "archive")
    peak = max(soak.peak for soak in soaks)
    bars = (
        _bar("first look, everything read ahead", FIRST_BAR_S, max(warm)),
        _bar("first look, right after the start", FIRST_BAR_S, cold),
        _bar("heatmap of any 2 minutes", HEATMAP_BAR_S, max(heatmaps)),
        _bar("flame graph of any 5 s", FLAME_BAR_S, max(flames)),
        _bar("heatmap of any 2 minutes, diverse stacks", HEATMAP_BAR_S, max(diverse_heatmaps)),
        _bar("flame graph of any 5 s, diverse stacks", FLAME_BAR_S, max(diverse_flames)),
        _bar("live: behind at most", BEHIND_BAR_S, max(behind)),
        Bar(f"memory, {VIEWERS} viewers for {soak_s:.0f} s", "≤ 500 MB", f"{peak / 1e6:.0f} MB",
            peak <= MEMORY_BAR),
    )  # fmt: skip
    grids = (
        Grid("Answers", ("", "median s", "slowest s"), (
            ("first look, warm", *_spread(warm)),
            ("heatmap of 2 minutes, 1.1 million samples", *_spread(heatmaps)),
            ("flame graph of 5 s, 46,000 samples", *_spread(flames)),
            ("heatmap of 2 minutes, diverse stacks", *_spread(diverse_heatmaps)),
            ("flame graph of 5 s, diverse stacks", *_spread(diverse_flames)),
            ("live: behind", *_spread(behind)),
        )),
        Grid("The soak", ("recording", "answers", "left before", "MB at a quarter", "at the end",
                          "most", "slowest answer s"),
             tuple(soak.row(name) for soak, name in zip(soaks, ("story", "captures", "diverse"),
                                                        strict=True))),
    )  # fmt: skip
    return Result(bars, grids, (), {"rss_mb": [soak.curve() for soak in soaks]})


def _bar(name: str, limit: float, value: float) -> Bar:
    return Bar(name, f"≤ {limit:g} s", f"{value:.3f} s", value <= limit)


def _spread(times: list[float]) -> tuple[str, str]:
    return f"{statistics.median(times):.3f}", f"{max(times):.3f}"


class Client:
    """One kept connection."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def get(self, path: str, **parameters: object) -> bytes:
        """The body of an answer, which must be a good one."""
        self._connection.request("GET", f"{path}?{urlencode(parameters)}")
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status}: {body[:300]!r}")
        return body

    def leave(self, path: str, **parameters: object) -> None:
        """Ask, and be gone before the answer."""
        self._connection.request("GET", f"{path}?{urlencode(parameters)}")
        time.sleep(0.05)
        self._connection.close()


def _first_looks(archive: Path) -> tuple[float, list[float]]:
    with Server(archive) as server:
        client = Client(server.port)
        cold = _first_look(client, 1400)
        columns = 1000
        while not _complete(client.get("/api/cores", columns=columns)):
            columns += 1
            time.sleep(0.5)
        warm = [_first_look(Client(server.port), 1401 + number) for number in range(REPEATS)]
    return cold, warm


def _first_look(client: Client, columns: int) -> float:
    before = time.perf_counter()
    client.get("/api/recording")
    client.get("/api/cores", columns=columns)
    return time.perf_counter() - before


def _complete(matrix: bytes) -> bool:
    (length,) = struct.unpack_from("<I", matrix)
    return bool(json.loads(matrix[4 : 4 + length])["complete"])


def _selections(archive: Path) -> tuple[list[float], list[float]]:
    chance = random.Random(6)
    with Server(archive) as server:
        client = Client(server.port)
        known = json.loads(client.get("/api/recording"))
        heatmaps, flames = [], []
        for number in range(REPEATS + 1):
            start = chance.uniform(known["from_ms"], known["to_ms"] - 3 * MINUTE_MS)
            heatmaps.append(_timed(client, "/api/heatmap", start, 2 * MINUTE_MS))
            flames.append(_timed(client, "/api/flame", start, 5000.0))
            if not number:  # the first imports what it needs
                heatmaps, flames = [], []
    return heatmaps, flames


def _timed(client: Client, path: str, start: float, length: float) -> float:
    before = time.perf_counter()
    client.get(path, from_ms=start, to_ms=start + length)
    return time.perf_counter() - before


# -- live ------------------------------------------------------------------------


def _live(archive: Path) -> list[float]:
    """Seconds by which a follower is behind, ten times a second."""
    with recording(archive, "--quiet"), Server(archive) as server:
        return _follow(server.port)


def _follow(port: int) -> list[float]:
    told: list[float] = []
    client = Client(port)

    def listen() -> None:
        with contextlib.suppress(OSError, http.client.HTTPException):  # it ends with the server
            hear()

    def hear() -> None:
        stream = http.client.HTTPConnection("127.0.0.1", port, timeout=LIVE_S)
        stream.request("GET", "/api/follow")
        answer = stream.getresponse()
        while line := answer.readline():
            if line.startswith(b"data:"):
                to_ms = json.loads(line[5:])["to_ms"]
                client.get("/api/cores", from_ms=to_ms - MINUTE_MS, to_ms=to_ms, columns=600)
                told.append(to_ms)

    threading.Thread(target=listen, daemon=True).start()
    start, behind = time.monotonic(), []
    while (passed := time.monotonic() - start) < LIVE_S:
        if passed > SETTLE_S and told:
            behind.append(time.time() - told[-1] / 1000)
        time.sleep(0.1)
    return behind


# -- the soak --------------------------------------------------------------------


@dataclass
class _Soak:
    """What eight viewers did, and what it cost."""

    answers: int = 0
    left: int = 0
    slowest: float = 0.0
    rss: list[int] = field(default_factory=list)
    failed: list[Exception] = field(default_factory=list)
    asked: Counter[str] = field(default_factory=Counter)

    @property
    def peak(self) -> int:
        return max(self.rss)

    def curve(self) -> list[float]:
        """About twenty readings, in MB."""
        return [round(each / 1e6, 1) for each in self.rss[:: max(1, len(self.rss) // 20)]]

    def row(self, name: str) -> tuple[str, ...]:
        quarter, end = self.rss[len(self.rss) // 4], self.rss[-1]
        sizes = (f"{each / 1e6:.0f}" for each in (quarter, end, self.peak))
        return (name, f"{self.answers:,}", f"{self.left:,}", *sizes, f"{self.slowest:.2f}")


def _soak(archive: Path, seconds: float) -> _Soak:
    soak, over = _Soak(), threading.Event()
    with Server(archive) as server:
        viewers = [
            threading.Thread(target=_view, args=(server.port, number, soak, over))
            for number in range(VIEWERS)
        ]
        for viewer in viewers:
            viewer.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end and not soak.failed:
            soak.rss.append(server.rss_bytes)
            time.sleep(1)
        over.set()
        for viewer in viewers:
            viewer.join(120)
        time.sleep(3)
        soak.rss.append(server.rss_bytes)
    if soak.failed:
        raise soak.failed[0]
    return soak


def _view(port: int, number: int, soak: _Soak, over: threading.Event) -> None:
    """One viewer, looking around until it is over."""
    chance, client = random.Random(number), Client(port)
    try:
        known = json.loads(client.get("/api/recording"))
        while not over.is_set():
            for path, parameters in _look_around(chance, known["from_ms"], known["to_ms"]):
                if over.wait(chance.uniform(0.05, 0.4)):
                    return
                soak.asked[path] += 1
                if chance.random() < 0.1:
                    client.leave(path, **parameters)
                    soak.left += 1
                    continue
                before = time.perf_counter()
                client.get(path, **parameters)
                soak.slowest = max(soak.slowest, time.perf_counter() - before)
                soak.answers += 1
    except (OSError, RuntimeError, http.client.HTTPException) as error:
        soak.failed.append(error)


def _look_around(
    chance: random.Random, from_ms: float, to_ms: float
) -> list[tuple[str, dict[str, object]]]:
    """What a person asks for in one visit to a place: nearer, a selection, what ran there."""
    at = chance.uniform(from_ms, to_ms - 10 * MINUTE_MS)
    zooms = [{"from_ms": max(from_ms, at - reach), "to_ms": at + reach}
             for reach in (3 * 60 * MINUTE_MS, 20 * MINUTE_MS, 2 * MINUTE_MS)]  # fmt: skip
    minutes = {"from_ms": at, "to_ms": at + 2 * MINUTE_MS}
    moment = {"from_ms": at, "to_ms": at + 5000.0}
    visit: list[tuple[str, dict[str, object]]] = []
    for zoom in zooms:
        visit.append(("/api/cores", {**zoom, "columns": chance.randint(800, 2000)}))
        visit.append(("/api/events", dict(zoom)))
        visit.append(("/api/track", {**zoom, "name": "zombies.dying"}))
    visit += [
        ("/api/heatmap", dict(minutes)),
        ("/api/flame", dict(moment)),
        (
            "/api/flame",
            {**moment, "inverted": 1, "merge": chance.choice(["cpu", "cgroup", "comm"])},
        ),
        ("/api/top", {**moment, "by": chance.choice(["comm", "function", "cpu"])}),
        ("/api/heatmap", {**minutes, "cpu": chance.randint(0, 95)}),
        ("/api/facts", {"at_ms": at}),
    ]
    if chance.random() < 0.25:
        visit.append(("/api/compare", dict(moment)))
        visit.append(("/api/compare/flame", dict(moment)))
    if chance.random() < 0.2:
        visit.append(("/api/diagnosis", dict(zooms[1])))
    return visit
