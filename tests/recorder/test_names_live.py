"""Names of code that comes, goes or was deleted, recorded on this machine for real."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.recorder_process import NODESCOPE, recording

from nodescope.archive.reader import Archive
from nodescope.sources.access.verdict import ALL_CAPABILITIES

pytestmark = [pytest.mark.root, pytest.mark.live]

X86 = pytest.mark.skipif(os.uname().machine != "x86_64", reason="its machine code is of x86-64")

# Code in memory, run for so long; its map is written and left behind, or not.
JIT = """
import ctypes, mmap, os, sys, time
code = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
                 mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
body = b"\\x48\\xc7\\xc1\\x00\\x00\\x00\\x02\\x48\\xff\\xc9\\x75\\xfb\\xc3"
code[: len(body)] = body  # mov rcx, 2^25; dec rcx; jnz -5; ret
at = ctypes.addressof(ctypes.c_char.from_buffer(code))
path = f"/tmp/perf-{os.getpid()}.map"
if sys.argv[2] == "map":
    open(path, "w").write(f"{at:x} 1000 compiled_just_now\\n")
print(path, flush=True)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    ctypes.CFUNCTYPE(None)(at)()
"""

LIBRARY = "long spin(long n) { volatile long s = 0; while (n--) s += n; return s; }"
SPIN = """
import ctypes, os, sys
library = ctypes.CDLL(sys.argv[1])
os.unlink(sys.argv[1])
print("ready", flush=True)
while True:
    library.spin(10**7)
"""


def samples_by_leaf(archive: Path) -> dict[tuple[str, str], int]:
    """Samples by the module and name of the innermost frame."""
    found: dict[tuple[str, str], int] = {}
    for segment in Archive.open(archive).segments():
        stacks, frames = segment.read("stacks").to_pylist(), segment.read("frames").to_pylist()
        for row in segment.read("profile").to_pylist():
            frame = frames[stacks[row["stack"]]["frame"]]
            key = frame["module"], frame["name"]
            found[key] = found.get(key, 0) + row["samples"]
    return found


def test_bpf_programs_loaded_while_it_records_have_their_own_names(tmp_path: Path) -> None:
    """One after the other, in one place: the kernel gives each the room of the one before.

    Two listen: the kernel tells them in records of different lengths.
    """
    archives, names = [tmp_path / "1", tmp_path / "2"], ("audit_one", "audit_two", "audit_three")
    first, second = (recording(archive, "--without", "all") for archive in archives)
    with first, second:
        ran = subprocess.run(
            [sys.executable, "-m", "tests.recorder.hot_bpf", "1", *names],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
    assert len(ran.stdout.splitlines()) == 3
    for archive in archives:
        found = samples_by_leaf(archive)
        programs = {
            name.split("_", 3)[3]: count
            for (module, name), count in found.items()
            if module == "[bpf]"
        }
        for name in names:
            assert programs.get(name, 0) >= 10, found
        bare = {name for module, name in found if module == "[kernel]" and name.startswith("+0x")}
        assert bare == set()


def run_jit(archive: Path, *arguments: str) -> dict[str, int]:
    """Record a JIT that ends before anything is flushed; why code had no name."""
    with recording(archive, "--without", "all", "--flush", "5s"):
        ran = subprocess.run(
            [sys.executable, "-c", JIT, *arguments], check=True, capture_output=True, text=True
        )
    Path(ran.stdout.strip()).unlink(missing_ok=True)
    (segment,) = Archive.open(archive).segments()
    last = segment.read("heartbeats", ["unresolved"]).column("unresolved").to_pylist()[-1]
    reasons: dict[str, int] = json.loads(last)
    return reasons


@X86
def test_a_short_jit_is_named_by_the_map_it_left(tmp_path: Path) -> None:
    run_jit(tmp_path / "archive", "1.2", "map")
    found = samples_by_leaf(tmp_path / "archive")
    assert found.get(("[anon]", "compiled_just_now"), 0) >= 20, found
    assert ("[anon]", "[unknown]") not in found


@X86
def test_a_jit_without_a_map_is_unnamed_for_a_counted_reason(tmp_path: Path) -> None:
    reasons = run_jit(tmp_path / "archive", "1.2", "none")
    assert samples_by_leaf(tmp_path / "archive")["[anon]", "[unknown]"] >= 20
    assert reasons.get("absent", 0) + reasons.get("process gone", 0) > 0, reasons


@pytest.mark.debian("gcc", "util-linux")
def test_with_the_rights_of_the_unit_a_library_deleted_before_is_named(tmp_path: Path) -> None:
    library, archive = tmp_path / "library.so", tmp_path / "archive"
    subprocess.run(
        ["gcc", "-xc", "-shared", "-fPIC", "-fno-omit-frame-pointer", "-o", library, "-"],
        input=LIBRARY, text=True, check=True,
    )  # fmt: skip
    with subprocess.Popen([sys.executable, "-c", SPIN, library], stdout=subprocess.PIPE) as spin:
        assert spin.stdout is not None
        assert spin.stdout.readline(), "it ended"
        rights = ",".join(["-all", *(f"+{name}" for name in ALL_CAPABILITIES)])
        ran = subprocess.run(
            ["setpriv", f"--bounding-set={rights}", "--inh-caps=-all", *NODESCOPE, "record",
             "--archive", archive, "--duration", "3s", "--without", "all"],
            check=False, capture_output=True, text=True,
        )  # fmt: skip
        spin.kill()
    assert ran.returncode == 0, ran.stderr
    found = samples_by_leaf(archive)
    assert found.get((f"{library} (deleted)", "spin"), 0) > 10, found
