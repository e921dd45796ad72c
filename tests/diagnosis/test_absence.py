"""What was not observed is never said to be absent: imports of different times, lost cores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.diagnosis.test_ways import QUEUE, RESET, cores
from tests.diagnosis.told import at, lines, record, solve_told

from nodescope.analysis.baseline_windows import lay_windows
from nodescope.archive.reader import Archive
from nodescope.diagnosis.diagnose import diagnose
from nodescope.diagnosis.finding import Diagnosis, Missing
from nodescope.exchange.import_files import import_files
from nodescope.lab.synthetic import Shape, write_story
from nodescope.quantities import SECOND_NS
from nodescope.recording.memory import hold_in_memory
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window


def lacking(found: Diagnosis) -> Missing:
    (missing,) = [each for each in found.missing if each.what == "a pegged core"]
    return missing


def test_a_log_of_minutes_before_the_first_core_time_says_that() -> None:
    log = record(lines(*RESET), seconds=110)
    later = record([], [row for row in cores(1, 0, 0) if row.time_ns >= at(112)], seconds=130)
    both = Recording([*log.parts, *later.parts])
    found = diagnose(both, Window(at(0), at(130)))
    assert "was not recorded in the" in lacking(found).consequence
    assert "elsewhere" not in lacking(found).consequence


def test_readings_that_stop_before_the_report_say_only_what_they_saw() -> None:
    rows = [row for row in cores(1, 0, 0) if not at(90) < row.time_ns < at(120)]
    found = solve_told(lines(*RESET), [QUEUE, *rows])
    assert "core time was recorded for only" in lacking(found).consequence
    assert "cannot be ruled out" in lacking(found).consequence


def test_cores_without_readings_are_counted() -> None:
    rows = [row for row in cores(1, 0, 0) if row.cpu == 0 or row.time_ns < at(60)]
    found = solve_told(lines((100, "ena 0000:00:05.0 eth0: Trigger reset is on")), rows)
    assert "the time of 1 of 2 cores was recorded" in lacking(found).consequence


def test_a_queue_that_the_driver_names_is_not_said_to_be_unknown() -> None:
    """The queue is named; which core serves it was not recorded."""
    other = QUEUE.replace(queue=3)
    rows = cores(1, 92, 100, "system")
    (finding,) = solve_told(lines(*RESET), [other, *rows]).findings
    queue = next(link for link in finding.chains[0].links if link.kind == "queue")
    assert "not said" not in queue.statement
    assert "which core serves queue 1, which timed out, was not recorded" in queue.statement


def test_a_baseline_counts_only_windows_in_which_samples_were_taken(tmp_path: Path) -> None:
    write_story(tmp_path / "a", replace(Shape().small(), seconds=240, resets=(200,)))
    story = hold_in_memory(Recording.open(tmp_path / "a"))
    from_ns = story.extent.from_ns
    before_s = (from_ns - at(0)) // SECOND_NS
    log = record(lines((before_s - 1500, "a line")), seconds=before_s + 100)
    span = (from_ns + 200 * SECOND_NS, from_ns + 205 * SECOND_NS)
    against = (span[0] - 1800 * SECOND_NS, span[0])
    alone = lay_windows(span, against, story.parts)
    with_log = lay_windows(span, against, [*log.parts, *story.parts])
    assert with_log.used.sum() == alone.used.sum()


def test_times_that_an_import_guessed_are_said_to_be_guessed(tmp_path: Path) -> None:
    """A dmesg is placed by the file's last change: a copy of it moves the incident."""
    log = tmp_path / "dmesg.txt"
    log.write_text(
        "[  100.000001] Linux version 5.15\n"
        "[  900.100000] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=x, GPU has fallen off.\n"
    )
    import_files([log], tmp_path / "archive")
    recording = Recording(Archive.open(tmp_path / "archive").segments())
    found = diagnose(recording, Window(recording.extent.from_ns, recording.extent.to_ns))
    assert [each.symptom.kind for each in found.findings] == ["gpu_lost"]
    (told,) = [each.consequence for each in found.missing if each.what == "exact times"]
    assert "estimated from the file's age" in told
