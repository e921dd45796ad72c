from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.remedy.plans import make_step

from nodescope.errors import RemedyError
from nodescope.remedy.journal import (
    JournalRecord,
    PlanJournal,
    format_record,
    list_journals,
    parse_journal,
    read_journal,
)
from nodescope.remedy.plan_documents import parse_step, step_document

STEP = make_step("stop_unit", "a.service", {"timeout_s": "5"})


def _write(folder: Path) -> Path:
    journal = PlanJournal.open(folder, "abc")
    attempt = journal.begin(1, STEP, {"active": "active"})
    journal.note("done", attempt, {"after": {"active": "inactive"}})
    journal.note("undoing", attempt, {})
    journal.close()
    return journal.path


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    (attempt,) = read_journal(_write(tmp_path))
    assert attempt.step == parse_step(step_document(STEP))
    assert attempt.step.target.name == "a.service"
    assert attempt.before == {"active": "active"}
    assert attempt.after == {"active": "inactive"}
    assert attempt.undo_begun
    assert attempt.stands
    assert list_journals(tmp_path) == [tmp_path / "abc.journal"]
    assert list_journals(tmp_path / "none") == []


def test_a_last_line_that_is_torn_is_ignored_and_then_overwritten(tmp_path: Path) -> None:
    path = _write(tmp_path)
    whole = path.read_bytes()
    last = whole[:-1].rfind(b"\n") + 1
    for end in range(last, len(whole)):
        path.write_bytes(whole[:end])
        assert not read_journal(path)[0].undo_begun
        journal = PlanJournal.open(tmp_path, "abc")
        assert path.read_bytes() == whole[:last]
        journal.note("undone", journal.attempts[0], {"restored": [], "left_alone": ["x"]})
        journal.close()
        (attempt,) = read_journal(path)
        assert not attempt.stands
        assert attempt.left_alone == ("x",)


def test_damage_before_the_last_line_is_an_error(tmp_path: Path) -> None:
    path = _write(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"inactive"', b'"reactive"'))
    with pytest.raises(RemedyError, match="line 2 is damaged"):
        read_journal(path)


def test_a_line_that_was_taken_out_is_noticed(tmp_path: Path) -> None:
    path = _write(tmp_path)
    first, _second, third = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + third + b"\n")
    with pytest.raises(RemedyError, match="line 2 is damaged"):
        read_journal(path)


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("")
    (tmp_path / "abc.journal").symlink_to(tmp_path / "other")
    with pytest.raises(RemedyError):
        PlanJournal.open(tmp_path, "abc")
    with pytest.raises(RemedyError):
        read_journal(tmp_path / "abc.journal")


@given(st.binary(max_size=300), st.integers(0, 300))
def test_no_bytes_are_taken_for_a_record(rubbish: bytes, cut: int) -> None:
    line, _ = format_record(JournalRecord("intent", 1, 1, 5, {"before": {}}), "0" * 16)
    data = line[: min(cut, len(line) - 1)] + rubbish
    try:
        records, whole, _ = parse_journal(data, "x")
    except RemedyError:
        return
    if data.startswith(line):
        return
    assert records == []
    assert whole == 0
