from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz.targets import SEEDS, TARGETS

ROOT = Path(__file__).parents[2]


@st.composite
def damaged(draw: st.DrawFn, seeds: tuple[bytes, ...]) -> bytes:
    """A good file with pieces cut, doubled, swapped and overwritten."""
    data = bytearray(b"".join(draw(st.lists(st.sampled_from(seeds), min_size=1, max_size=3))))
    for _ in range(draw(st.integers(0, 5))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 60)))
        piece = bytes(data[start:end])
        data[start:end] = draw(
            st.one_of(
                st.just(b""),
                st.just(piece * 2),
                st.binary(max_size=12),
                st.sampled_from([b"\n", b"\n\n", b"\0", b"9" * 40, b"-1", b"\xff\xfe", b"{[" * 50]),
            )
        )
    return bytes(data)


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_are_accepted(name: str) -> None:
    for seed in SEEDS[name]:
        TARGETS[name](seed)


@pytest.mark.parametrize("name", TARGETS)
def test_any_bytes(name: str) -> None:
    @given(st.binary(max_size=400))
    @settings(max_examples=80)
    def check(data: bytes) -> None:
        TARGETS[name](data)

    check()


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_files(name: str) -> None:
    @given(damaged(SEEDS[name]))
    @settings(max_examples=120)
    def check(data: bytes) -> None:
        TARGETS[name](data)

    check()


HOSTILE = {
    "a nul": b"\0",
    "blanks": b" " * (1 << 20),
    "tabs and digits": b"\t1 " * (1 << 18),
    "digits": b"1" * (1 << 20),
    "open": b"({[<" * (1 << 18),
    "colons": b"a: " * (1 << 18),
    "frames": b"x 1 [0] 1.000000: y:\n" + b"\t1 " + b"(" * (1 << 20) + b")\n\n",
    "semicolons": b";" * (1 << 20) + b" 1\n",
    "lines": b"\n" * (1 << 20),
    "headers": b"x 1 [0] 1.000000: y:\n" * (1 << 14),
    "brackets": b"[" * 70_000 + b"\n[" * 70_000,
    "statistics": b'"sysstat" "hosts" "date": "11/16/26" "statistics": [' + b'{"":' * (1 << 17),
    "varints": b"\x80" * (1 << 20),
    "stamps": b"[    1.0] a 1 1 1 1 1" * (1 << 14),
}


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("hostile", HOSTILE)
def test_nothing_makes_a_parser_hang(name: str, hostile: str) -> None:
    TARGETS[name](HOSTILE[hostile])


NO_ATHERIS = "atheris has no wheel for this Python or machine (see pyproject.toml)"


@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason=NO_ATHERIS)
@pytest.mark.parametrize("name", TARGETS)
def test_under_atheris(name: str, tmp_path: Path) -> None:
    """Bounded by runs and by time, whichever comes first; a hang is a minute without an answer."""
    for number, seed in enumerate(SEEDS[name]):
        (tmp_path / str(number)).write_bytes(seed)
    bounds = ["-runs=20000", "-max_total_time=2", "-rss_limit_mb=2048", "-timeout=120"]
    # The same inputs every time: a test run is no place for luck. Longer, with other
    # seeds, by hand: `python -m tests.fuzz.run_targets NAME`.
    bounds += ["-seed=1", f"-artifact_prefix={tmp_path}/found-"]
    command = [sys.executable, "-m", "tests.fuzz.run_targets", name, *bounds, "-max_len=4096"]
    done = subprocess.run(
        [*command, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
