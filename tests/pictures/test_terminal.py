from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from nodescope.analysis.cores import CoreShares
from nodescope.analysis.flame_node import FlameNode
from nodescope.analysis.heatmap import Heatmap
from nodescope.analysis.top import TopEntry
from nodescope.pictures.colour import NIGHT, PAPER, nearest_of_256, ramp
from nodescope.pictures.cores import find_hottest, render_cores, worst_of
from nodescope.pictures.documents import cores_document
from nodescope.pictures.flame import draw_flame, render_flame
from nodescope.pictures.heatmap import render_heatmap
from nodescope.pictures.tables import render_events, render_top
from nodescope.pictures.terminal import Terminal, bar, detect_terminal
from nodescope.quantities import SECOND_NS
from nodescope.recording.core_readings import STATES
from nodescope.records.event import Event

NOON = 1_777_636_800 * SECOND_NS
PLAIN = Terminal(width=60, height=20)
ASCII = Terminal(width=60, height=20, unicode=False)
TRUE = Terminal(width=60, height=20, colours="true")


class Tty(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environ", "colours"),
    [
        ({"TERM": "xterm-256color"}, "256"),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, "true"),
        ({"TERM": "xterm", "NO_COLOR": "1"}, "none"),
        ({"TERM": "xterm", "NO_COLOR": ""}, "256"),
        ({"TERM": "dumb"}, "none"),
        ({}, "none"),
    ],
)
def test_colours_of_a_terminal(environ: dict[str, str], colours: str) -> None:
    assert detect_terminal(Tty(), environ).colours == colours


def test_a_pipe_has_no_colours_unless_told() -> None:
    pipe = io.TextIOWrapper(io.BytesIO(), "latin-1")
    terminal = detect_terminal(pipe, {"TERM": "xterm"})
    assert (terminal.colours, terminal.unicode) == ("none", False)
    assert detect_terminal(pipe, {"FORCE_COLOR": "1"}).colours == "256"
    assert detect_terminal(pipe, {"FORCE_COLOR": "1", "NO_COLOR": "1"}).colours == "none"


def test_bars() -> None:
    assert bar(0.5, 4) == "██  "
    assert bar(1 / 8, 1) == "▏"
    assert bar(7, 3) == "███"
    assert bar(0.5, 4, unicode=False) == "##  "


@pytest.mark.parametrize("stops", [NIGHT, PAPER])
def test_more_is_brighter_or_darker_throughout(stops: tuple[tuple[int, int, int], ...]) -> None:
    light = ramp(np.linspace(0, 1, 50), stops).astype(int) @ np.array([299, 587, 114])
    steps = np.diff(light)
    assert (steps >= 0).all() or (steps <= 0).all()


def test_the_nearest_of_256_colours() -> None:
    assert nearest_of_256((255, 0, 0)) == 196
    assert nearest_of_256((0, 0, 0)) == 16
    assert nearest_of_256((128, 128, 128)) == 244


def heatmap() -> Heatmap:
    counts = np.zeros((10, 4), np.int64)
    counts[2, 0] = 8
    counts[2, 1] = 4
    counts[7] = [2, 4, 6, 8]
    return Heatmap(NOON, SECOND_NS, counts)


def test_a_heatmap_without_colour() -> None:
    assert render_heatmap(heatmap(), PLAIN, "heading").splitlines() == [
        "heading",
        "   1 s │                                   █████",
        "       │                                   ▓▓▓▓▓",
        "500 ms │          ▒▒▒▒▒                    ▒▒▒▒▒",
        "     0 │          █████                    ░░░░░",
        "       └┬────────────────────────┬────────────────────────",
        "        12:00:00Z                12:00:05Z",
        "        ░ 1  █ 8 samples per cell of 1 s × 250 ms",
    ]


def test_a_heatmap_in_ascii() -> None:
    shown = render_heatmap(heatmap(), ASCII, "heading")
    assert shown.replace("×", "x").isascii()
    assert "     0 |          @@@@@                    ---" in shown


def test_a_heatmap_in_colour_takes_half_the_lines() -> None:
    lines = render_heatmap(heatmap(), TRUE, "heading").splitlines()
    assert len(lines) == 1 + 2 + 2 + 1
    dark, bright = "24;22;34", "252;222;132"
    assert f"\x1b[38;2;{dark};48;2;{dark}m▀▀▀▀▀▀▀▀▀▀\x1b[0m" in lines[2]
    assert f";48;2;{bright}m▀▀▀▀▀\x1b[0m" in lines[2]


def cores(count: int = 4, columns: int = 10) -> CoreShares:
    shares = {state: np.zeros((count, columns)) for state in STATES}
    shares["system"][:] = 0.02
    shares["system"][1] = 0.1
    shares["system"][count - 1, 3:6] = 1.0
    shares["idle"] = 1 - shares["system"]
    for values in shares.values():
        values[0, 0] = np.nan
    return CoreShares(NOON, SECOND_NS, list(range(count)), shares)


def test_busy_time_is_shown_with_system_time_marked() -> None:
    """Issue 13, point 11: a core pegged in user mode was blank, for only system time was shown."""
    shares = cores()
    shares.shares["user"][2, 6:] = 1.0
    shares.shares["idle"][2, 6:] = 0.0
    lines = render_cores(shares, "total", PLAIN, "heading").splitlines()
    assert lines[3] == "       2 │" + " " * 30 + "█" * 20
    assert lines[4] == "       3 │" + " " * 15 + "S" * 15
    assert lines[7] == "          █ 100 %, S mostly system time, · not read"
    assert lines[9].startswith("core 2     100.0 % total (2.0 % system) at 12:00:06Z,")
    assert lines[10].startswith("core 3     100.0 % total (100.0 % system) at 12:00:03Z,")


def test_cores_without_colour() -> None:
    assert render_cores(cores(), "system", PLAIN, "heading").splitlines() == [
        "heading",
        "       0 │·····",
        "       1 │▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁",
        "       2 │",
        "       3 │               ███████████████",
        "         └┬────────────────────────┬────────────────────────",
        "          12:00:00Z                12:00:05Z",
        "          █ 100 %, · not read",
        "",
        "core 3     100.0 % system at 12:00:03Z, mean 31.4 %, 3 s above 95 %",
        "core 1      10.0 % system at 12:00:00Z, mean 10.0 %",
        "core 0       2.0 % system at 12:00:01Z, mean 2.0 %",
        "core 2       2.0 % system at 12:00:00Z, mean 2.0 %",
    ]


def test_one_pegged_core_of_96_is_seen_however_small_the_terminal() -> None:
    shares = cores(96, 300)
    lines = render_cores(shares, "system", PLAIN, "heading").splitlines()
    assert len(lines) <= PLAIN.height + 1
    (seen,) = [line for line in lines if "│" in line and "█" in line]
    assert "-95" in seen.split("│")[0]
    said = " ".join(line.strip() for line in lines)
    assert "a line is the worst of 12 cores, a column the worst 1 s of 6 s" in said
    assert lines[-5].startswith("core 95 ")
    assert max(map(len, lines)) <= PLAIN.width + 10  # the longest names a core's worst
    assert [hot.cpu for hot in find_hottest(shares, "system", 1)] == [95]


def test_what_was_not_read_is_null() -> None:
    document: Any
    document, said = cores_document(cores(), SECOND_NS)
    assert said is None
    assert document["system"][0][:2] == [None, 0.02]
    assert document["total"][0][0] is None


def test_what_nobody_read_stays_unread_when_folded() -> None:
    values = np.array([[np.nan, np.nan, 0.5, np.nan, 0.1]])
    folded = worst_of(values, 3, 1)
    assert np.isnan(folded[0, 0])
    assert folded[0, 1:].tolist() == [0.5, 0.1]


def node(
    name: str, value: int, *children: FlameNode, module: str = "", kernel: bool = False
) -> FlameNode:
    made: FlameNode = {"name": name, "value": value, "children": list(children)}
    if module:
        made["module"], made["kernel"] = module, kernel
    return made


TREE = node(
    "all", 1000,
    node("kubelet", 650,
         node("main", 650,
              node("read", 640, node("walk", 640, kernel=True, module="[kernel]"),
                   kernel=True, module="[kernel]"),
              node("gc", 10, kernel=False, module="/bin/kubelet"),
              kernel=False, module="/bin/kubelet")),
    node("python3", 350),
)  # fmt: skip


def test_a_flame_graph_without_colour() -> None:
    assert render_flame(TREE, PLAIN, "heading").splitlines() == [
        "heading",
        "  65.0 % ███████▊      kubelet › main",
        "  64.0 % ███████▋        read › walk",
        "   1.0 % ▏               gc",
        "  35.0 % ████▎         python3",
    ]
    assert render_flame(TREE, PLAIN, "heading", 2).splitlines()[1:] == [
        "  65.0 % ███████▊      kubelet › main",
        "  64.0 % ███████▋        read › walk",
        "… 2 narrower ones: --limit 0 shows all",
    ]
    assert render_flame(node("all", 0), PLAIN, "heading") == "heading"
    assert render_flame(TREE, ASCII, "heading").isascii()


def test_a_long_chain_shows_its_first_and_last_functions() -> None:
    tree = node("f19", 10)
    for number in range(18, -1, -1):
        tree = node(f"f{number}", 10, tree)
    line = render_flame(node("all", 10, tree), PLAIN, "h").splitlines()[1]
    assert line == " 100.0 % ████████████  f0 › … › f15 › f16 › f17 › f18 › f19"
    assert len(line) <= 60


def test_a_flame_graph_of_any_depth_is_drawn() -> None:
    tree = node("leaf", 1)
    for number in range(3000):
        tree = node(f"f{number}", 1, tree)
    root = node("all", 1, tree)
    assert draw_flame(root, "deep").height < 6000
    assert len(render_flame(root, PLAIN, "deep").splitlines()) == 2


def test_a_table_without_colour() -> None:
    entries = [TopEntry("kubelet", 1500, 0.75), TopEntry("python3", 500, 0.25)]
    assert render_top(entries, "comm", PLAIN, left=3).splitlines() == [
        "  samples   share  comm",
        "    1,500  75.0 %  kubelet  ████████████████████████████████",
        "      500  25.0 %  python3  ██████████▋",
        "… 3 more: --limit 0 shows all",
    ]
    entries = [TopEntry("812", 1500, 0.75)]
    assert render_top(entries, "pid", PLAIN, 0, 0.01, {"812": "kubelet"}).splitlines() == [
        "  samples  CPU time   share  pid",
        "    1,500      15 s  75.0 %  812 kubelet  ██████████████████",
    ]
    entries = [TopEntry("walk", 1500, 0.75, own=1400, module="[kernel]")]
    assert render_top(entries, "function", PLAIN).splitlines() == [
        "    total     self   share  function  module",
        "    1,500    1,400  75.0 %  walk      [kernel]",
    ]


def test_events_on_a_terminal_have_short_times_and_whole_messages() -> None:
    """Issue 13, point 13: at 100 columns messages were cut at 20 characters."""
    long = "ena 0000:20:03.0 ens5: TX q 11 is paused for too long, threshold is reached"
    events = [
        Event(NOON, "nic_tx_timeout", "ens5", long, cpu=37),
        Event(NOON + 86_400 * SECOND_NS, "nic_reset", "ens5", "on"),
    ]
    assert render_events(events, PLAIN, width=96).splitlines() == [
        "time           kind            subject  core  message",
        "2026-05-01",
        f"12:00:00.000Z  nic_tx_timeout  ens5       37  {long[:48]}",
        f"{' ' * 46}{long[49:]}",
        "2026-05-02",
        "12:00:00.000Z  nic_reset       ens5           on",
    ]
    narrow = render_events(events[:1], PLAIN, width=60).splitlines()
    assert narrow[2:] == [
        "12:00:00.000Z  nic_tx_timeout  ens5       37",
        "    ena 0000:20:03.0 ens5: TX q 11 is paused for too long,",
        "    threshold is reached",
    ]
    whole = render_events(events, PLAIN).splitlines()
    assert whole[1] == f"2026-05-01T12:00:00.000Z  nic_tx_timeout  ens5       37  {long}"
