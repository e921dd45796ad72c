from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exchange.text_archive import in_blocks

from nodescope.errors import SourceAbsent
from nodescope.exchange.capture_names import parse_capture_name
from nodescope.exchange.unpacked import Torn, read_blocks, read_head
from nodescope.ingest.clean_text import clean, split_lines


@given(st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line)), st.integers(1, 30))
def test_lines_and_their_offsets(lines: list[bytes], size: int) -> None:
    text = b"".join(line + b"\n" for line in lines)
    found = list(split_lines(in_blocks(text, size)))
    assert [line for _, line, _ in found] == [line.removesuffix(b"\r") for line in lines]
    assert all(text[offset:].startswith(line) for offset, line, _ in found)
    assert all(whole for _, _, whole in found)


@given(st.integers(1, 50), st.integers(1, 40))
def test_long_lines_are_cut_and_what_follows_is_in_its_place(limit: int, size: int) -> None:
    text = b"a" * 100 + b"\nnext\n" + b"b" * 30
    found = list(split_lines(in_blocks(text, size), limit))
    assert found == [
        (0, b"a" * min(100, limit), True),
        (101, b"next"[:limit], True),
        (106, b"b" * min(30, limit), False),
    ]


@given(st.binary())
def test_clean_text_is_only_text(raw: bytes) -> None:
    text = clean(raw)
    text.encode()
    assert text.isprintable() or not any(ord(one) < 32 or ord(one) == 127 for one in text)


def test_several_members_are_one_file_and_padding_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(b"one ") + gzip.compress(b"two") + b"\0" * 512)
    assert b"".join(read_blocks(path)) == b"one two"
    assert read_head(path, 5) == b"one t"


def test_what_was_unpacked_before_the_damage_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    packer = zlib.compressobj(wbits=31)
    good = packer.compress(bytes(range(256)) * 4096) + packer.flush(zlib.Z_FULL_FLUSH)
    path.write_bytes(good + b"\xff\xff\xff\xff damaged")
    blocks = read_blocks(path)
    kept = next(blocks)
    assert len(kept) >= (1 << 20) - (64 << 10)
    assert (bytes(range(256)) * 4096).startswith(kept)
    with pytest.raises(Torn, match="damaged") as caught:
        next(blocks)
    assert caught.value.offset == len(kept)


def test_a_bomb_is_unpacked_a_block_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(bytes(64 << 20)))
    sizes = [len(block) for block in read_blocks(path, block_bytes=1 << 20)]
    assert sum(sizes) == 64 << 20
    assert max(sizes) <= 2 << 20


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent):
        list(read_blocks(tmp_path / "none"))


@pytest.mark.parametrize(
    ("name", "host", "span_s"),
    [
        ("perf-node-7-20261116-03-08-22-120s.stacks", "node-7", 120),
        ("perf-ip-10-0-0-1.ec2.internal-20261116-03-08-22-120s.stacks.gz",
         "ip-10-0-0-1.ec2.internal", 120),
        ("perf-20261116-030822.txt", None, None),
        ("node.20261116T030822Z.stacks", "node", None),
    ],
)  # fmt: skip
def test_names_of_captures(name: str, host: str | None, span_s: int | None) -> None:
    named = parse_capture_name(name)
    assert named is not None
    assert named.host == host
    assert named.span_ns == (None if span_s is None else span_s * 10**9)


@pytest.mark.parametrize("name", ["perf.data", "20261399-03-08-22.txt", "x-2026.txt", ""])
def test_other_names(name: str) -> None:
    assert parse_capture_name(name) is None
