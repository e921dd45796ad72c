from __future__ import annotations

from nodescope.recorder.watches.log_reports import LogReports


def test_a_report_is_known_by_kind_name_and_time() -> None:
    reports = LogReports()
    reports.tell(100, "fs_error", ("sda1", None))
    assert reports.told("fs_error", ("sda1",), 100)
    assert reports.told("fs_error", (), 50)
    assert not reports.told("fs_error", ("sdb1",), 50)
    assert not reports.told("fs_error", ("sda1",), 101)
    assert not reports.told("fs_readonly", ("sda1",), 0)


def test_a_report_without_a_name_is_of_any() -> None:
    reports = LogReports()
    reports.tell(100, "conntrack_full", ())
    assert reports.told("conntrack_full", ("/a",), 0)


def test_a_log_is_whole_if_it_was_read_and_nothing_was_lost() -> None:
    reports = LogReports()
    assert (reports.is_read, reports.is_whole(0)) == (False, False)
    reports.note_read(10)
    assert (reports.is_read, reports.is_whole(0)) == (True, True)
    reports.note_lost(20)
    assert not reports.is_whole(20)
    assert reports.is_whole(21)
