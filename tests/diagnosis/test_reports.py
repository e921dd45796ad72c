"""What a report says in each of its forms."""

from __future__ import annotations

import html
import json
from pathlib import Path

import pytest
from tests.diagnosis.test_diagnose import SHAPE

from nodescope.cli.main import main
from nodescope.diagnosis.mechanism import Mechanism, load_mechanisms
from nodescope.lab.synthetic import write_story


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("story") / "archive"
    write_story(path, SHAPE)
    return path


@pytest.fixture(scope="module")
def walking() -> Mechanism:
    return next(each for each in load_mechanisms() if each.name == "memcg_walk_by_read")


def write(story: Path, target: Path) -> str:
    assert main(["diagnose", "--archive", str(story), "--output", str(target)]) == 1
    return target.read_text()


def test_the_text_explains_the_mechanism_and_how_to_check(
    story: Path, tmp_path: Path, walking: Mechanism
) -> None:
    text = write(story, tmp_path / "report.txt")
    lines = text.splitlines()
    link = next(at for at, line in enumerate(lines) if line.startswith("     mechanism "))
    state = next(at for at, line in enumerate(lines) if line.startswith("     state "))
    assert walking.meaning in " ".join(" ".join(lines[link:state]).split())
    helps = text.partition("what helps:")[2].partition("not it:")[0]
    assert f"- check: $ {walking.check[0]}" in helps
    assert f"- {walking.fix[0]}" in helps
    assert len(lines) < 60  # to be read in a minute


def test_so_do_the_others(
    story: Path, tmp_path: Path, walking: Mechanism, capsys: pytest.CaptureFixture[str]
) -> None:
    markdown = write(story, tmp_path / "report.md").replace("\\", "")
    assert f"What this means: {walking.meaning}" in markdown
    assert f"- check: `{walking.check[0]}`" in markdown
    page = html.unescape(write(story, tmp_path / "report.html"))
    assert f"<p>{walking.meaning}</p>" in page
    assert f"<li>check: <code>{walking.check[0]}</code></li>" in page
    capsys.readouterr()
    assert main(["diagnose", "--archive", str(story), "--json"]) == 1
    chain = json.loads(capsys.readouterr().out)["findings"][0]["chains"][0]
    assert chain["meaning"] == walking.meaning
    assert chain["check"] == list(walking.check)
