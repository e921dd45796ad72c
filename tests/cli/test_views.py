from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.analysis.conftest import LATER, SAMPLES, START, HandClock, Sample, write_archive

from nodescope.archive.writer import ArchiveWriter
from nodescope.quantities import SECOND_NS
from nodescope.recording.core_readings import STATES

Nodescope = Callable[..., Any]
HOSTILE = [
    "<script>alert(1)</script>",
    "\x1b[31mred\x1b]0;title\x07",
    "quote\"'&amp;</title></svg>",
    "line\nbreak\ttab\x00nul",
    "\u202eright-to-left\u2028",
    "]]>--><!--",
    "日本語" * 5,
    "x" * 10_000,
]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return write_archive(tmp_path / "archive", [SAMPLES, LATER]).root


def write_cores(path: Path, cores: int = 3, seconds: int = 60) -> Path:
    """Core 1 is pegged in the kernel from second 20 to 25; a segment ends at 30."""
    clock = HandClock()
    with ArchiveWriter.open(
        path, node={"name": "hand", "boot_id": "b"}, clock=clock, tick_ns=1000
    ) as writer:
        ticks = {cpu: dict.fromkeys(STATES, 0) for cpu in range(cores)}
        for second in range(seconds):
            clock.now = (1_000 + second) * SECOND_NS
            for cpu, spent in ticks.items():
                pegged = cpu == 1 and 20 <= second < 25
                spent["system"] += 100 if pegged else 5
                spent["idle"] += 0 if pegged else 95
            rows = {name: [spent[name] for spent in ticks.values()] for name in STATES}
            writer.append(
                "cores",
                {
                    "cpu": list(ticks), "time_ns": [clock.now + SECOND_NS // 2] * cores, **rows,
                    "guest": [0] * cores, "guest_nice": [0] * cores,
                },
            )  # fmt: skip
            if second in (3, 40):
                writer.append(
                    "events",
                    {
                        "time_ns": [clock.now], "kind": ["kernel" if second == 3 else "unit"],
                        "subject": ["ens5"], "message": [HOSTILE[1]],
                    },
                )  # fmt: skip
            if second == seconds // 2:
                writer.seal_segment()
    return path


def test_json_of_the_heatmap(archive: Path, nodescope: Nodescope) -> None:
    result = nodescope("heatmap", "--archive", archive, "--to", "+10s", "--rows", "4", "--json")
    assert (result.code, result.err) == (0, "")
    made = json.loads(result.out)
    assert made["from"] == "2023-11-14T22:13:20.000Z"
    assert made["from_ns"] == START
    assert made["columns"] == list(range(10))
    assert made["column_ns"] == SECOND_NS
    assert made["rows"] == 4
    assert made["counts"][0] == [0, 1, 0, 1]
    assert [sum(column) for column in made["counts"]] == [2, 2, 0, 0, 0, 1, 0, 0, 0, 0]


def test_a_limit_makes_wider_columns_and_says_so(archive: Path, nodescope: Nodescope) -> None:
    result = nodescope("heatmap", "--archive", archive, "--limit", "24", "--json")
    made = json.loads(result.out)
    assert made["column_ns"] == 10 * SECOND_NS
    assert made["columns"] == list(range(0, 240, 10))
    assert sum(map(sum, made["counts"])) == len(SAMPLES + LATER)
    assert "a column is 10 s wide" in result.err


def test_json_of_cores(tmp_path: Path, nodescope: Nodescope) -> None:
    path = write_cores(tmp_path / "a")
    result = nodescope("cores", "--archive", path, "--json")
    made = json.loads(result.out)
    assert (made["from_ns"], made["interval"], made["cpus"]) == (START, 1, [0, 1, 2])
    for state in (*STATES, "total"):
        assert [len(row) for row in made[state]] == [60] * 3
    assert made["system"][0][1] == 0.05
    assert made["system"][1][19:27] == [0.05, 1, 1, 1, 1, 1, 0.05, 0.05]
    assert made["total"][1][22] == 1
    assert made["idle"][1][22] == 0
    # Readings fall on half seconds, and a segment ends on the way: that leaves no hole.
    assert None not in made["system"][0]


def test_cores_by_filter_interval_and_limit(tmp_path: Path, nodescope: Nodescope) -> None:
    path = write_cores(tmp_path / "a")
    made = json.loads(nodescope("cores", "--archive", path, "--cpu", "0,2", "--json").out)
    assert made["cpus"] == [0, 2]
    made = json.loads(nodescope("cores", "--archive", path, "--limit", "1", "--json").out)
    assert made["cpus"] == [1]
    result = nodescope("cores", "--archive", path, "--interval", "10s", "--json")
    assert json.loads(result.out)["interval"] == 10
    out = nodescope("cores", "--archive", path, "--by", "system").out
    assert "core 1     100.0 % system at 22:13:40Z, mean" in out


def test_a_pegged_core_has_one_span_and_one_figure_everywhere(
    tmp_path: Path, nodescope: Nodescope
) -> None:
    """Issue 13, point 6: `diagnose` gave its end, `events` its start, `cores` other figures."""
    path = write_cores(tmp_path / "a")
    span = "2023-11-14T22:13:39.500Z to 22:13:44.500Z"
    said = "100% in the kernel for 5 s"
    cores = nodescope("cores", "--archive", path)
    assert f"  pegged   {span}: {said}\n" in cores.out
    assert "above 95 %" not in cores.out
    diagnosed = nodescope("diagnose", "--archive", path)
    assert diagnosed.out.startswith(f"1. {span}  core 1 was {said}\n")
    assert f"core 1 was {said}; the node" in diagnosed.out
    document = json.loads(nodescope("diagnose", "--archive", path, "--json").out)
    symptom = document["findings"][0]["symptom"]
    assert symptom["time_ns"] - symptom["from_ns"] == 5 * SECOND_NS


def write_kept(path: Path, kept: list[tuple[int, int]], pids: tuple[int, ...] = (7,)) -> Path:
    """Write a recording of a core that a program kept in user mode from second to second."""
    seconds = list(range(max(to for _, to in kept) + 8))
    busy = [any(start < second <= end for start, end in kept) for second in seconds]
    none = [0] * len(seconds)
    spent = dict.fromkeys(STATES, none)
    spent["user"] = [100 * sum(busy[: second + 1]) for second in seconds]
    spent["idle"] = [
        100 * second - user for second, user in zip(seconds, spent["user"], strict=True)
    ]
    times = [(1_000 + second) * SECOND_NS for second in seconds]
    rows = {"cpu": none, "time_ns": times, **spent, "guest": none, "guest_nice": none}
    spinning = [
        Sample(start + number / 10, 0, pids[number % len(pids)], "spin", "main;loop")
        for start, end in kept
        for number in range(10 * (end - start))
    ]
    return write_archive(path, [spinning], {"cores": rows}).root


def test_cores_names_who_kept_a_core_in_user_mode(tmp_path: Path, nodescope: Nodescope) -> None:
    """A program at 100 % was only `100.0 % total`, without its name."""
    path = write_kept(tmp_path / "a", [(4, 12)])
    span = "2023-11-14T22:13:24.000Z to 22:13:32.000Z"
    said = f"  kept     {span}: 100% in user mode for 8 s, by spin\n"
    assert said in nodescope("cores", "--archive", path).out


def test_a_name_that_many_processes_share_is_no_process(
    tmp_path: Path, nodescope: Nodescope
) -> None:
    path = write_kept(tmp_path / "a", [(4, 12)], pids=(7, 8, 9, 10))
    out = nodescope("cores", "--archive", path).out
    assert "in user mode for 8 s, by many processes named spin\n" in out


def test_a_span_is_the_same_whatever_window_is_asked_for(
    tmp_path: Path, nodescope: Nodescope
) -> None:
    """22 s of the whole recording were 17 s with `--from`: cut 10 s beyond the window."""
    path = write_kept(tmp_path / "a", [(4, 204)])
    span = "2023-11-14T22:13:24.000Z to 22:16:44.000Z"
    said = f"  kept     {span}: 100% in user mode for 3m 20s, by spin\n"
    assert said in nodescope("cores", "--archive", path).out
    assert said in nodescope("cores", "--archive", path, "--from", "+100s", "--to", "+105s").out


def test_a_span_that_was_not_followed_to_its_ends_is_said_to_be_cut(
    tmp_path: Path, nodescope: Nodescope
) -> None:
    path = write_kept(tmp_path / "a", [(4, 2000)])
    out = nodescope("cores", "--archive", path, "--from", "+900s", "--to", "+905s").out
    kept = next(line for line in out.splitlines() if line.startswith("  kept "))
    assert kept.startswith("  kept     before 2023-11-14T22:17:40.000Z to ")
    assert " or later: 100% in user mode for " in kept
    assert " or longer, by spin" in kept


def test_the_longest_spans_of_a_core_are_listed(tmp_path: Path, nodescope: Nodescope) -> None:
    """The one span that mattered hid behind `and 1 times more`."""
    path = write_kept(tmp_path / "a", [(4, 8), (12, 17), (20, 26), (30, 50)])
    listed = ["20 s", "6 s", "5 s", "4 s"]
    for spans in range(4):
        out = nodescope("cores", "--archive", path, "--spans", str(spans)).out
        found = re.findall(r"in user mode for (.*), by spin", out)
        assert found == listed[: spans or None]
        assert (f"  and {4 - spans} more, not longer: --spans 0 lists all" in out) == (spans > 0)


def test_top_says_that_idle_cores_were_sampled(tmp_path: Path, nodescope: Nodescope) -> None:
    """A capture of perf has samples of idle cores; they are no busy time."""
    idle = [Sample(number / 10, 1, 0, "swapper/1", "do_idle_[k]") for number in range(80)]
    busy = [Sample(number / 10, 0, 7, "work", "main") for number in range(20)]
    path = write_archive(tmp_path / "a", [idle + busy]).root
    lines = nodescope("top", "--archive", path).out.splitlines()
    assert lines[1] == "shares are of all samples; 80.0 % of them are of idle cores (swapper)"


def test_top_says_what_its_shares_are_of_and_names_processes(nodescope: Nodescope) -> None:
    """Issue 13, point 12: no window, no node, no CPU time, and pids without names."""
    bundle = ("--archive", Path("tests/diagnosis/bundles/busy.bundle"))
    lines = nodescope("top", *bundle, "--limit", "3").out.splitlines()
    assert re.fullmatch(
        r"top of \S+ · 2026-11-17T03:33:15.927Z \+ 9.83 s · [\d,]+ samples", lines[0]
    )
    assert re.fullmatch(
        r"shares are of the busy time of all cores; the cores were [\d.]+ % idle", lines[1]
    )
    assert lines[2].split() == ["samples", "CPU", "time", "share", "comm"]
    chosen = nodescope("top", *bundle, "--cpu", "1", "--by", "pid", "--limit", "1").out.splitlines()
    assert chosen[0].endswith(" · cpu 1")
    assert chosen[1].startswith("shares are of the chosen samples; ")
    pid = json.loads(nodescope("top", *bundle, "--cpu", "1", "--by", "pid", "--json").out)[0]
    assert f"  {pid['name']} {pid['comm']}" in chosen[3]
    by_core = json.loads(nodescope("top", *bundle, "--by", "cpu", "--json").out)
    assert all(0 < each["cpu_s"] < 11 for each in by_core)  # of at most ten seconds


def test_json_of_top(archive: Path, nodescope: Nodescope) -> None:
    for by, first in (("comm", "app"), ("cpu", "0"), ("pid", "10"), ("cgroup", "/")):
        made = json.loads(nodescope("top", "--archive", archive, "--by", by, "--json").out)
        comm = ["comm"] if by == "pid" else []
        assert list(made[0]) == ["name", "samples", "share", "cpu_s", *comm]
        assert made[0]["name"] == first
        assert sum(entry["samples"] for entry in made) == 8
    made = json.loads(nodescope("top", "--archive", archive, "--by", "function", "--json").out)
    assert made[0] == {
        "name": "main", "samples": 7, "share": 0.875, "cpu_s": 0.072,
        "self": 0, "total": 7, "module": "/bin/app",
    }  # fmt: skip


def test_names_with_digits_and_slashes_are_kept(archive: Path, nodescope: Nodescope) -> None:
    made = json.loads(nodescope("top", "--archive", archive, "--json").out)
    assert {"python3", "kworker/0:1"} <= {entry["name"] for entry in made}


def test_json_of_the_flame_graph(archive: Path, nodescope: Nodescope) -> None:
    arguments = ("--archive", archive, "--comm", "kubelet", "--json")
    tree = json.loads(nodescope("flame", *arguments).out)
    assert (tree["name"], tree["value"]) == ("all", 2)
    names = []
    while tree["children"]:
        (tree,) = tree["children"]
        names.append((tree["name"], tree["value"]))
    assert names == [("kubelet", 2), ("main", 2), ("read", 2), ("walk", 2)]
    tree = json.loads(nodescope("flame", *arguments, "--inverted", "--by", "none").out)
    assert tree["children"][0]["name"] == "walk"
    tree = json.loads(nodescope("flame", *arguments, "--limit", "2").out)
    assert tree["children"][0]["children"][0]["children"] == []


def test_json_of_events(tmp_path: Path, nodescope: Nodescope) -> None:
    path = write_cores(tmp_path / "a")
    made = json.loads(nodescope("events", "--archive", path, "--json").out)
    assert made[0] == {
        "time_ns": START + 3 * SECOND_NS, "time": "2023-11-14T22:13:23.000Z", "kind": "kernel",
        "subject": "ens5", "message": HOSTILE[1], "cpu": None, "details": None,
    }  # fmt: skip
    assert [event["kind"] for event in made] == ["kernel", "unit"]
    made = json.loads(nodescope("events", "--archive", path, "--limit", "1", "--json").out)
    assert [event["kind"] for event in made] == ["unit"]
    made = json.loads(nodescope("events", "--archive", path, "--kind", "kernel", "--json").out)
    assert len(made) == 1
    out = nodescope("events", "--archive", path).out
    assert "\\x1b[31mred\\x1b]0;title\\x07" in out
    assert "\x1b" not in out


@pytest.mark.parametrize("command", ["heatmap", "cores", "flame", "top", "events"])
def test_an_empty_window_is_an_answer(command: str, archive: Path, nodescope: Nodescope) -> None:
    window = ("--archive", archive, "--from", "+20s", "--to", "+30s")
    result = nodescope(command, *window)
    assert (result.code, result.err) == (0, "")
    assert result.out
    assert nodescope(command, *window, "--json").code == 0


@pytest.mark.parametrize("command", ["heatmap", "cores", "flame", "top", "events"])
def test_nothing_recorded_is_an_error_by_name(
    command: str, tmp_path: Path, nodescope: Nodescope
) -> None:
    with ArchiveWriter.open(tmp_path / "a", node={"name": "n"}, clock=HandClock(), tick_ns=1000):
        pass
    result = nodescope(command, "--archive", tmp_path / "a")
    assert result.code == 2
    assert "nothing is recorded in it" in result.err


class Strict(HTMLParser):
    """Which elements a page has, and what it says."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.inside = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        assert not [name for name, _ in attributes if name.startswith("on")]


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    samples = [
        Sample(number / 10, number, 100 + number, name[:15], f"main;{name.replace(';', '')};leaf")
        for number, name in enumerate(HOSTILE)
    ]
    return write_archive(tmp_path / "hostile", [samples]).root


@pytest.mark.parametrize(
    "arguments",
    [["flame"], ["flame", "--inverted"], ["top"], ["top", "--by", "function"], ["heatmap"]],
)
def test_hostile_names_are_text_in_a_terminal(
    arguments: list[str], hostile: Path, nodescope: Nodescope, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = nodescope(*arguments, "--archive", hostile, "--limit", "0").out
    assert not [c for c in out if c != "\n" and not c.isprintable()]
    assert max(map(len, out.splitlines())) <= 100
    if arguments != ["heatmap"]:
        assert "<script>" in out
        assert "\\x1b[31m" in out
    shown = nodescope(*arguments, "--archive", hostile, "--json").out
    assert shown.isascii()
    assert len(shown) < 50_000
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = nodescope(*arguments, "--archive", hostile, "--limit", "0").out
    assert "\x1b[31mred" not in coloured
    assert "\x07" not in coloured


@pytest.mark.parametrize("command", ["flame", "heatmap", "cores"])
def test_pictures_are_whole_files_without_foreign_parts(
    command: str, hostile: Path, tmp_path: Path, nodescope: Nodescope
) -> None:
    filters = () if command == "cores" else ("--no-frame", "<script>alert")
    for suffix in ("svg", "html", "png"):
        path = tmp_path / f"x.{suffix}"
        extra = filters if suffix == "svg" else ()
        result = nodescope(command, "--archive", hostile, *extra, "--output", path)
        assert (result.code, result.err) == (0, "")
        content = path.read_bytes()
        assert str(len(content)) in result.out.replace(",", "")
        if suffix == "png":
            check_png(content)
            continue
        text = content.decode()
        for address in ("http://", "https://"):
            assert address not in text.replace("http://www.w3.org/2000/svg", "")
        assert not [c for c in text if ord(c) < 32 and c != "\n"]
        if suffix == "svg":
            assert "script" not in {element.tag for element in ElementTree.fromstring(text).iter()}
        else:
            page = Strict()
            page.feed(text)
            # Ours: the data, which is not run, and the script that shows it.
            assert page.elements.count("script") == (2 if command == "flame" else 1)
            assert "alert(1)</script>" not in text


def check_png(content: bytes) -> None:
    """Every chunk is whole, and the pixels are as many as the header says."""
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    at, chunks, kind = 8, {}, b""
    while at < len(content):
        (length,) = struct.unpack_from(">I", content, at)
        kind = content[at + 4 : at + 8]
        chunks[kind] = content[at + 8 : at + 8 + length]
        (check,) = struct.unpack_from(">I", content, at + 8 + length)
        assert check == zlib.crc32(kind + chunks[kind])
        at += length + 12
    width, height = struct.unpack_from(">II", chunks[b"IHDR"])
    assert len(zlib.decompress(chunks[b"IDAT"])) == height * (1 + 3 * width)
    assert kind == b"IEND"


def test_no_answer_is_larger_than_two_megabytes(tmp_path: Path, nodescope: Nodescope) -> None:
    """10⁵ functions, each in a sample of its own below a shared one."""
    from tests.pictures.wide import write_wide

    path = write_wide(tmp_path / "wide", functions=100_000)
    for arguments in (
        ["flame"],
        ["flame", "--inverted", "--by", "none"],
        ["top", "--by", "function"],
        ["top", "--by", "comm"],
        ["heatmap"],
        ["heatmap", "--rows", "1000"],
        ["cores"],
    ):
        result = nodescope(*arguments, "--archive", path, "--json")
        assert result.code == 0
        assert len(result.out) <= 2_000_000
        assert json.loads(result.out)
        if arguments == ["top", "--by", "function"]:
            assert "further ones are left out" in result.err
    for suffix in ("svg", "html", "png"):
        output = tmp_path / f"x.{suffix}"
        assert nodescope("flame", "--archive", path, "--output", output).code == 0
        assert output.stat().st_size <= 2_000_000


@pytest.mark.parametrize("command", ["flame", "diagnose"])
def test_views_import_nothing_heavy(command: str) -> None:
    bundle = Path(__file__).parents[1] / "diagnosis" / "bundles" / "zombies.bundle"
    heavy = {"pandas", "pyarrow.dataset", "pyarrow.compute", "numpy.ma", "asyncio"}
    code = (
        "import sys\nfrom nodescope.cli.main import main\n"
        f"main([{command!r}, '--archive', {str(bundle)!r}, '--json'])\n"
        f"print(sorted({heavy!r} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.endswith("\n[]\n")


def _cut(archive: Path, number: int) -> None:
    """Cut the samples of a segment short."""
    folder = sorted((archive / "segments").iterdir())[number]
    (folder / "samples.parquet").write_bytes(b"PAR1")


@pytest.mark.parametrize("view", ["flame", "top", "heatmap", "cores"])
def test_a_damaged_segment_is_reported_by_views_of_its_time_only(
    tmp_path: Path, nodescope: Nodescope, view: str
) -> None:
    archive = write_archive(tmp_path / "archive", [SAMPLES] * 4).root
    _cut(archive, 1)
    first = nodescope(view, "--archive", archive, "--from", "+0s", "--to", "+5s", "--json")
    assert (first.code, first.err) == (0, "")
    whole = nodescope(view, "--archive", archive, "--json")
    assert whole.err.count("left out") == 1
    assert "samples.parquet" in whole.err


def test_a_core_that_only_another_time_has_is_no_mistake(
    tmp_path: Path, nodescope: Nodescope
) -> None:
    there, later = [each for each in SAMPLES if each.cpu == 0], SAMPLES
    assert any(each.cpu == 1 for each in later)
    archive = write_archive(tmp_path / "archive", [there, later]).root
    asked = ("flame", "--archive", archive, "--from", "+0s", "--to", "+5s", "--json")
    assert nodescope(*asked, "--cpu", "1").code == 0
    refused = nodescope(*asked, "--cpu", "77")
    assert refused.code == 2
    assert "the recording has no core 77" in refused.err
