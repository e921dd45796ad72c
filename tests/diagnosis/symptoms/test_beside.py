"""A crash or a fault of one program is no incident, and is not passed over either."""

from __future__ import annotations

from tests.diagnosis.told import lines, solve_told

from nodescope.diagnosis.symptoms.beside import ALSO_SEEN


def test_a_fault_on_a_gpu_and_a_crash_are_named() -> None:
    told = lines(
        (10, "NVRM: Xid (PCI:0000:3b:00): 31, pid=77, name=train.py, Ch 00000010, intr 0"),
        (11, "db[88]: segfault at 0 ip 00007f00 sp 00007ffe error 4 in libc.so.6[7f00+1]"),
    )
    found = solve_told(told)
    assert not found.findings
    (seen,) = [each for each in found.missing if each.what == ALSO_SEEN]
    assert "1 × gpu_app_fault" in seen.consequence
    assert "1 × process_crash" in seen.consequence
    assert "db" in seen.consequence


def test_nothing_is_said_where_no_program_failed() -> None:
    assert all(each.what != ALSO_SEEN for each in solve_told([]).missing)
