"""What a report says in each of its forms."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import pytest
from tests.diagnosis.test_diagnose import SHAPE

from nodescope.cli.main import main
from nodescope.diagnosis.case import Case
from nodescope.diagnosis.finding import (
    Chain,
    Diagnosis,
    Finding,
    Link,
    Missing,
    Root,
    RuledOut,
    Symptom,
)
from nodescope.diagnosis.report.document import diagnosis_document
from nodescope.diagnosis.report.html import render_page
from nodescope.diagnosis.report.text import render_markdown, render_text
from nodescope.diagnosis.rules.mechanism import Mechanism, load_mechanisms
from nodescope.lab.synthetic import write_story
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.action import Action, Target, parse_action
from nodescope.records.action_words import describe_action
from nodescope.records.view import Moment, View
from nodescope.records.view_forms import parse_view, render_command


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
    helps = text.partition("what helps (")[2].partition("evidence:")[0]
    assert f"check, on the node: $ {render_command(walking.check[0])}" in helps
    assert f". {describe_action(walking.fix[0])}" in helps
    assert len(text.partition("\nConditions:")[0].splitlines()) < 60  # to be read in a minute


def test_what_broke_why_and_what_to_do_are_on_the_first_screen(story: Path, tmp_path: Path) -> None:
    text = write(story, tmp_path / "report.txt")
    parts = ["raysubmit_0: the job failed", "cause: unit ecs.service (confidence ", "how: ",
             "what helps (proposed; nothing of it was done):", "--unit ecs.service",
             "$ systemctl disable --now ecs.service", "evidence:", "not it ("]  # fmt: skip
    places = [text.find(part) for part in parts]
    assert -1 not in places
    assert places == sorted(places)
    assert text[: text.index("evidence:")].count("\n") < 20
    assert "stop what leaks" not in text  # it has a name
    way = " ".join(text.partition("how:")[2].partition("what helps")[0].split())
    assert way == (
        "ecs.service → ecs-agent → 68,440 zombie memory cgroups → kubelet walking memory cgroups "
        "to read their statistics → core 3 → eth0 queue 1 → raysubmit_0"
    )


def test_so_do_the_others(
    story: Path, tmp_path: Path, walking: Mechanism, capsys: pytest.CaptureFixture[str]
) -> None:
    stop = "systemctl disable --now ecs.service"
    markdown = write(story, tmp_path / "report.md").replace("\\", "")
    assert f"What this means: {walking.meaning}" in markdown
    assert f"\n\nCheck, on the node: `{render_command(walking.check[0])}`\n" in markdown
    assert f": `{stop}`" in markdown
    page = html.unescape(write(story, tmp_path / "report.html"))
    assert f"<p>{walking.meaning}</p>" in page
    assert f"<p>Check, on the node: <code>{render_command(walking.check[0])}</code></p>" in page
    assert page.index(f"<code>{stop}</code>") < page.index("<h3>Evidence</h3>")
    capsys.readouterr()
    assert main(["diagnose", "--archive", str(story), "--json"]) == 1
    chain = json.loads(capsys.readouterr().out)["findings"][0]["chains"][0]
    assert chain["meaning"] == walking.meaning
    assert chain["check"] == [render_command(each) for each in walking.check]
    assert [parse_view(each) for each in chain["check_views"]] == list(walking.check)
    assert [each["statement"] for each in chain["fix_steps"]] == chain["fixes"]
    assert [parse_action(each["action"]) for each in chain["fix_steps"]] == list(walking.fix)
    assert [step["command"] for step in chain["steps"]][1] == stop


# -- made by hand ------------------------------------------------------------

AT = 1_780_000_000 * 10**9


def made(*findings: Finding, missing: tuple[Missing, ...] = ()) -> Diagnosis:
    return Diagnosis(AT, AT + 10**9, list(findings), list(missing))


def reset(*chains: Chain, **more: Any) -> Finding:
    return Finding(Symptom("nic_reset", AT, "eth0", "Trigger reset is on"), list(chains), **more)


def event() -> Chain:
    link = Link("event", "eth0", "eth0: Trigger reset is on", 5.0, View("events"), "no line")
    return Chain((link,), Root("event", "eth0"))


def told(diagnosis: Diagnosis) -> list[str]:
    """As text, as Markdown, and as a page."""
    page = render_page(diagnosis, Case(Recording([]), Window(AT, AT + 10**9)), "node")
    return [render_text(diagnosis), render_markdown(diagnosis), html.unescape(page)]


def test_what_stands_between_backticks_is_code() -> None:
    stop = Action("stop_unit", target=Target("unit", "a.service", within="/lab"))
    chain = Chain(event().links, Root("unit", "a.service"), steps=(stop,))
    text, markdown, page = told(made(reset(chain)))
    command = "systemctl disable --now a.service"
    assert f"`{command}`" in text
    assert f"by `{command}` where" in markdown
    assert f"by <code>{command}</code> where" in page
    assert "`" not in page


def test_a_backtick_without_a_partner_is_text() -> None:
    ends = Missing("a ` name", "it is called a ` name <b>", "look")
    _, markdown, page = told(made(reset(event(), ends=ends)))
    assert "it is called a \\` name" in markdown
    assert "it is called a ` name <b>; look" in page


def test_a_report_by_itself_is_no_cause() -> None:
    ends = Missing("a pegged core", "no core was pegged", "look at the device")
    found = made(reset(event(), ends=ends), missing=(ends,))
    for report in told(found):
        assert "ause: not shown by this recording" in report
        assert "no core was pegged; look at the device" in report
        assert "event eth0" not in report
        assert "confidence" not in report
    assert render_text(found).count("look at the device") == 1


def test_everything_that_is_ruled_out_is_listed() -> None:
    suspects = [RuledOut(f"suspect {n}", f"suspect {n} was {n}; ruled out because", View("events"))
                for n in range(9)]  # fmt: skip
    alike = [RuledOut(name, f"{name}: none; ruled out because") for name in ("a b", "c d")]
    found = made(reset(event(), ruled_out=[*suspects, *alike]))
    for report in told(found):
        assert all(each.statement in report for each in suspects)
    text = render_text(found)
    assert "- a b, c d: none; ruled out because" in text
    assert "not it (commands that show this: with --json" in text


def test_several_findings_are_summed_up_first() -> None:
    core = Link("core", "cpu3", "core 3 was 99% in the kernel", 4.0, View("cores"), "nothing")
    held = Finding(Symptom("core_held", AT, "cpu3", "core 3 was in the kernel for 6 s", 3),
                   [Chain((core,), Root("core", "cpu3"))])  # fmt: skip
    lines = render_text(made(reset(event()), held)).splitlines()
    assert lines[:2] == [
        "2 findings:", "  1. eth0: Trigger reset is on; cause: not shown by this recording",
    ]  # fmt: skip
    assert lines[2].startswith(
        "  2. core 3 was in the kernel for 6 s; where: core 3 (only the place"
    )


def test_who_only_reported_the_trouble_is_no_cause() -> None:
    link = Link("event", "sda", "sda failed a request", 5.0, View("events"), "nothing")
    chain = Chain((link,), Root("device", "sda"), "failed_requests", reporter=True)
    found = made(Finding(Symptom("disk_io_error", AT, "sda", "sda failed a request"), [chain]))
    text, page = render_text(found), render_markdown(found)
    assert "where: reported by device sda (only the place is known; confidence that the" in text
    assert "**Where: reported by device sda** (only the place is known" in page
    assert "cause: device" not in text
    (told,) = diagnosis_document(found)["findings"][0]["chains"]
    assert told["place"] is True
    assert told["confidence"] <= 0.5


def test_silence_is_worth_what_was_recorded() -> None:
    blind = Missing("per-core time", "a core that is pegged would not be seen", show=View("doctor"))
    for report in told(made(missing=(blind,))):
        assert "othing was found between 2026-05-28T20:26:40.000Z" in report.replace("\\", "")
        assert "went wrong" not in report
        assert "per-core time" in report
    for report in told(made()):
        assert "othing went wrong between 2026-05-28T20:26:40.000Z" in report


def test_commands_with_odd_names_are_harmless() -> None:
    step = Action("stop_unit", Target("unit", "a`|\x1b[2J.service"))
    shown = View("audit", Moment(AT), unit="a`|b")
    link = Link("source", "x", "x ended", 2.0, shown, "nothing")
    found = made(reset(Chain((link,), Root("unit", "x"), steps=(step,))))
    text, markdown, _ = told(found)
    assert "\x1b" not in text + markdown
    assert "`` systemctl disable --now 'a`|\\x1b[2J.service' ``" in markdown
    command = "nodescope audit --at 2026-05-28T20:26:40.000Z --unit 'a`\\|b'"
    assert f"| `` {command} `` |" in markdown


def test_what_is_left_off_is_said() -> None:
    held = [Symptom("nic_tx_timeout", AT + n, "eth0", "TX q 1 is paused") for n in range(25)]
    document = diagnosis_document(made(reset(event(), also=held)))
    assert (len(document["findings"][0]["also"]), document["findings"][0]["also_left_off"]) == (
        20,
        5,
    )
    four, three = (told(made(*(reset(event()) for _ in range(n))))[2] for n in (4, 3))
    assert "Only the first 3 findings have pictures." in four
    assert "have pictures" not in three
