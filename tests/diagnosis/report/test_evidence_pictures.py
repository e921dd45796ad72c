"""The pictures of a report, drawn from the synthetic story in little."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from tests.diagnosis.test_diagnose import SHAPE, without

from nodescope.cli.main import main
from nodescope.diagnosis.report.evidence_pictures import _floor
from nodescope.lab.synthetic import write_story

HELD_FROM_S = SHAPE.resets[0] - SHAPE.held_s
CAPTIONS = ["Timeline", "Core strip", "Heatmap", "Flame diff", "Zombie trend"]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("story") / "archive"
    write_story(path, SHAPE)
    return path


def report(archive: Path, folder: Path) -> str:
    target = folder / "report.html"
    assert main(["diagnose", "--archive", str(archive), "--output", str(target)]) == 1
    return target.read_text()


def captions(page: str) -> list[str]:
    figures = re.findall(r"<figure>(.*?)</figure>", page, re.DOTALL)
    assert all(figure.startswith("<svg") for figure in figures)
    return [re.findall(r"<figcaption>(.*?)</figcaption>", figure)[0] for figure in figures]


def flame_boxes(page: str) -> dict[str, str]:
    """Colours of the flame graph's boxes, by function."""
    boxes = re.findall(r'fill="(#\w+)" class="frame"><title>(.*?) · [\d,]+ samples', page)
    return {title.partition(" ")[0]: colour for colour, title in boxes}


def test_a_report_has_all_its_pictures(story: Path, tmp_path: Path) -> None:
    page = report(story, tmp_path)
    said = captions(page)
    assert [caption.partition(":")[0] for caption in said] == CAPTIONS
    assert "framed are the 6 s" in said[2]
    assert "from the 16m 34s before" in said[3]
    assert "Not there any more: python3" in said[3]
    assert "68,393 at 20:06:40Z, 68,443 at 20:24:20Z; the red line" in said[4]
    assert "The axis begins at 67,538, not at 0." in said[4]
    assert "Zombie memory cgroups: 68,393 at 20:06:40Z, 68,443 at 20:24:20Z" in page
    assert "from 67,538, not from 0" in page


def test_a_report_loads_nothing(story: Path, tmp_path: Path) -> None:
    page = report(story, tmp_path)
    assert "http://" not in page
    assert "https://" not in page
    assert not re.search(r'(?:src|href)="(?!data:)', page)


def test_what_is_new_is_the_reddest(story: Path, tmp_path: Path) -> None:
    boxes = flame_boxes(report(story, tmp_path))
    red, green, blue = (int(boxes["memcg_numa_stat_show"][at : at + 2], 16) for at in (1, 3, 5))
    assert red > green > blue
    # `main.main` ran before as well: more of it is paler than what is new.
    assert int(boxes["main.main"][3:5], 16) >= green
    assert "none before" in report(story, tmp_path)


def test_a_picture_without_its_data_is_left_out(story: Path, tmp_path: Path) -> None:
    archive = without(story, tmp_path / "a", "memory_cgroups", "dying_parents")
    said = captions(report(archive, tmp_path))
    assert [caption.partition(":")[0] for caption in said] == CAPTIONS[:-1]
    archive = without(story, tmp_path / "b", "samples", "profile", "stacks", "frames", "seconds")
    said = captions(report(archive, tmp_path))
    assert [caption.partition(":")[0] for caption in said] == [*CAPTIONS[:2], CAPTIONS[-1]]


def test_without_a_before_the_flame_graph_is_plain_and_says_so(story: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.bundle"
    window = ["--from", f"+{HELD_FROM_S}s", "--to", f"+{SHAPE.seconds - 60}s"]
    export = ["export", "bundle", "--archive", str(story), "--output", str(cut)]
    assert main([*export, *window]) == 0
    flames = [text for text in captions(report(cut, tmp_path)) if text.startswith("Flame")]
    assert flames == [
        "Flame graph, not a diff: no samples were taken before those seconds to compare with."
    ]


def test_the_axis_is_that_of_what_was_recorded(story: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.bundle"
    reset_s = SHAPE.resets[0]
    window = ["--from", f"+{reset_s - 10}s", "--to", f"+{reset_s + 12}s"]
    export = ["export", "bundle", "--archive", str(story), "--output", str(cut)]
    assert main([*export, *window]) == 0
    page = report(cut, tmp_path)
    assert re.match(r"Timeline: the events of those 2\d\S* ?s by kind", captions(page)[0])
    times = set(re.findall(r">(20:\d\d:\d\dZ)</text>", page))
    assert times
    assert "20:22:30Z" not in times  # a minute before the reset, nothing of which was recorded


def test_drawings_of_a_report_follow_the_dark_theme(story: Path, tmp_path: Path) -> None:
    page = report(story, tmp_path)
    dark = page.partition("prefers-color-scheme: dark")[2].partition("</style>")[0]
    assert "svg { filter: invert(1)" in dark
    assert '<rect width="100%"' not in page  # the page is the paper


@pytest.mark.parametrize(
    ("values", "floor"),
    [
        ([0, 900], 0),
        ([50_000, 68_000, 100_000], 0),
        ([66_491, 68_444], 65_636),  # the trend has most of the height
        ([6_048, 6_050], 5_973),  # and two more are no trend
        ([0, 0], 0),
    ],
)
def test_a_trend_is_seen_on_its_axis(values: list[int], floor: int) -> None:
    assert _floor(np.array(values)) == floor
