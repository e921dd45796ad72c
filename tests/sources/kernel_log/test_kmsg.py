from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kernel_log import write_line
from tests.waiting import wait_for

from nodescope.errors import MalformedSource, SourceAbsent
from nodescope.sources.kernel_log.kmsg import KernelLog, Record, parse_record
from nodescope.sources.places import Places


def test_a_record_of_the_kernel() -> None:
    raw = b"4,352,1493104460,-;sched: RT throttling activated\n SUBSYSTEM=cpu\n DEVICE=+cpu:1\n"
    record = parse_record(raw)
    assert record == Record(352, 1_493_104_460_000, 4, 0, "sched: RT throttling activated")
    assert not record.by_user


def test_a_record_of_a_user() -> None:
    record = parse_record(b"12,7,5,-,caller=T1;mine\n")
    assert (record.level, record.facility, record.text) == (4, 1, "mine")
    assert record.by_user


def test_what_is_escaped_comes_back() -> None:
    assert parse_record(b"6,1,2,-;a\\x0ab\\xc3\\xa4\\x5cx\\xff\n").text == "a\nbä\\x\ufffd"


@pytest.mark.parametrize("raw", [b"", b"text", b"6,1,2,-", b"6,x,2,-;text", b"6,1;text"])
def test_what_is_no_record_is_said_to_be_none(raw: bytes) -> None:
    with pytest.raises(MalformedSource):
        parse_record(raw)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_record_or_malformed(raw: bytes) -> None:
    try:
        parse_record(raw)
    except MalformedSource:
        pass


def test_a_recorded_tree_has_no_log_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent):
        KernelLog(Places(tmp_path))
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/kmsg").write_bytes(b"6,1,2,-;text\n")
    with pytest.raises(SourceAbsent):
        KernelLog(Places(tmp_path))


@pytest.mark.live
@pytest.mark.root
def test_records_come_in_order_and_go_on_where_one_left_off() -> None:
    tag = f"nodescope-kmsg-{os.getpid()}"
    log = KernelLog(Places())
    seen: list[Record] = []

    def read_until(text: str) -> None:
        def found() -> bool:
            seen.extend(log.read(100).records)
            return any(record.text == text for record in seen)

        wait_for(found, text)

    try:
        write_line(f"{tag} one", level=6)
        read_until(f"{tag} one")
        write_line(f"{tag} two", level=3)
        read_until(f"{tag} two")
        sequences = [record.sequence for record in seen]
        assert sequences == sorted(set(sequences))
        ours = [record for record in seen if record.text.startswith(tag)]
        assert [(record.level, record.by_user) for record in ours] == [(6, True), (3, True)]
    finally:
        log.close()
    again = KernelLog(Places())
    try:
        after = ours[0].sequence
        rest = again.read(100_000, after=after).records
        assert all(record.sequence > after for record in rest)
        assert f"{tag} two" in [record.text for record in rest]
    finally:
        again.close()
