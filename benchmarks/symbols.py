"""What we call a frame against what `perf script` calls it on the same varied load; and whether a
stripped Go program, a C++ and a Rust one are named in a real recording.

The load, the lookup and what counts as the same name are those of
`tests/symbols/test_perf_agreement.py`: every distinct (process,
address) pair that perf names is looked up through our tables, while the
process is stopped but alive; frames of the few that ended in the meantime are
left out, and counted. The three programs are built here with names no
library has, recorded with `nodescope record`, and sought in the archive. Each
function sought burns CPU itself: a compiler gives a leaf no frame, and a walk
by frame pointers, perf's too, then misses the leaf's caller.

How it could be fooled: by few or easy frames (how many, and of how many
programs, is shown), by counting hot addresses over and over (each pair counts
once), by leaving out what we cannot locate (that counts as disagreement here),
by a debug section or symbol table that a stripped program should not have (the
Go program is checked for having none), or by perf naming little (what it leaves
unnamed, and how much of that we name, is shown). A comparison that cannot fail
would agree on anything: as a control, the same frames are looked up 4 KiB
further on, where hardly any name can be the same.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tests.recorder_process import RecorderProcess, stacks_of
from tests.symbols import test_perf_agreement as agreement

from benchmarks.results import Bar, Grid, Options, Result
from nodescope.symbols import read_kallsyms

MOVED_BYTES = 4096

GO = """
package main

import "os"

type beaconKeeper struct{ turns uint64 }

//go:noinline
func trimBeaconWick(turns uint64) uint64 {
	for i := uint64(0); i < 5000; i++ {
		turns = turns*6364136223846793005 + i
	}
	return turns
}

//go:noinline
func (k *beaconKeeper) turnBeaconLamp() {
	for i := uint64(0); i < 5000; i++ {
		k.turns = k.turns*2862933555777941757 + i
	}
	k.turns += trimBeaconWick(k.turns)
}

func main() {
	keeper := &beaconKeeper{}
	for {
		keeper.turnBeaconLamp()
		if keeper.turns == 1 {
			os.Exit(1)
		}
	}
}
"""

CPP = """
#include <vector>
namespace lighthouse {
template <class T> struct Lens {
  std::vector<T> rings = std::vector<T>(64);
  __attribute__((noinline)) T polishLens(T grit) {
    for (int i = 0; i < 5000; i++) rings[i % 64] += rings[(i + 1) % 64] * grit + i;
    return rings[7];
  }
};
__attribute__((noinline)) long keepWatch(Lens<long> &lens) {
  for (int i = 0; i < 5000; i++) lens.rings[i % 64] ^= lens.rings[(i + 3) % 64] * 5 + i;
  return lens.polishLens(3) + 1;
}
}
int main() { lighthouse::Lens<long> lens; for (;;) if (lighthouse::keepWatch(lens) == 1) return 1; }
"""

RUST = """
mod foghorn {
    pub trait Sound { fn sound_foghorn(&self, seed: u64) -> u64; }
    pub struct Brass;
    impl Sound for Brass {
        #[inline(never)]
        fn sound_foghorn(&self, seed: u64) -> u64 { fill_bellows(seed) ^ 5 }
    }
    #[inline(never)]
    pub fn fill_bellows(mut seed: u64) -> u64 {
        for i in 0..5000u64 { seed = seed.wrapping_mul(6364136223846793005).wrapping_add(i); }
        seed
    }
}
fn main() {
    use foghorn::Sound;
    let horn: Box<dyn Sound> = Box::new(foghorn::Brass);
    let mut seed = std::env::args().count() as u64;
    loop { seed = horn.sound_foghorn(seed); if seed == 1 { println!("{seed}"); } }
}
"""


@dataclass(frozen=True, slots=True)
class Program:
    """A program to be built, and the names that must be found."""

    language: str
    comm: str
    source: tuple[str, str]  # file name and text
    build: tuple[str, ...]
    names: tuple[str, ...]  # each must be part of a frame's name


PROGRAMS = (
    Program(
        "Go, stripped",
        "beacon-go",
        ("beacon.go", GO),
        ("go", "build", "-ldflags", "-s -w", "-o", "beacon-go", "beacon.go"),
        ("main.trimBeaconWick", "main.(*beaconKeeper).turnBeaconLamp", "main.main"),
    ),
    Program(
        "C++",
        "lighthouse-cpp",
        ("lighthouse.cc", CPP),
        ("g++", "-O1", "-fno-omit-frame-pointer", "-o", "lighthouse-cpp", "lighthouse.cc"),
        ("lighthouse::Lens<long>::polishLens(long)", "lighthouse::keepWatch("),
    ),
    Program(
        "Rust",
        "foghorn-rust",
        ("foghorn.rs", RUST),
        ("rustc", "-O", "-C", "force-frame-pointers=yes", "-o", "foghorn-rust", "foghorn.rs"),
        ("foghorn::fill_bellows", "foghorn::Sound>::sound_foghorn"),
    ),
)


def run(options: Options) -> Result:
    seconds = 2 if options.quick else 10
    bars: list[Bar] = []
    grids: list[Grid] = []
    if shutil.which("perf"):
        with _varied_load() as processes:
            frames = _perf_frames(processes, seconds)
            kernel, user = _compare_kernel(frames), _compare_user(frames)
            moved = {(pid, at + MOVED_BYTES, name, dso) for pid, at, name, dso in frames}
            control = (_compare_kernel(moved), _compare_user(moved))
        for found, least in ((kernel, 0.99), (user, 0.98)):
            bars.append(
                Bar(
                    f"{found.name} frames named as perf names them",
                    f"≥ {least:.0%}",
                    f"{found.ratio:.2%} of {found.named:,}",
                    found.ratio >= least,
                )
            )
        grids.append(_agreement_grid((kernel, user), control, len({pid for pid, *_ in frames})))
        grids.append(_differences_grid(kernel, user))
    else:
        bars.append(Bar("agreement with perf", "", "perf is not installed", False))
    rows = []
    for program in PROGRAMS:
        named, shown = _record_program(program, 2 if options.quick else 4)
        bars.append(Bar(f"{program.language} is named", "all names", shown, named))
        rows.append((program.language, ", ".join(f"`{name}`" for name in program.names), shown))
    grids.append(Grid("Programs in a real recording", ("", "sought", "found"), tuple(rows)))
    return Result(tuple(bars), tuple(grids))


# -- agreement with perf -----------------------------------------------------


@dataclass(frozen=True, slots=True)
class Agreement:
    """How often we and perf agree, of the frames perf names."""

    name: str
    named: int
    wrong: Counter[tuple[str, str]]  # ours, perf's
    unnamed: int = 0  # frames perf does not name
    better: int = 0  # and we do
    ended: int = 0  # frames of processes that ended before we could look

    @property
    def ratio(self) -> float:
        return 1 - sum(self.wrong.values()) / self.named if self.named else 0.0


@contextmanager
def _varied_load() -> Iterator[list[subprocess.Popen[bytes]]]:
    with tempfile.TemporaryDirectory(prefix="nodescope-bench-") as name:
        processes = [
            subprocess.Popen(
                command,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=name,
                start_new_session=True,
            )
            for command in agreement._commands(Path(name))
        ]
        try:
            yield processes
        finally:
            for process in processes:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _perf_frames(processes: list[subprocess.Popen[bytes]], seconds: int) -> set[agreement.Frame]:
    with tempfile.TemporaryDirectory(prefix="nodescope-bench-") as name:
        data = f"{name}/perf.data"
        command = ["perf", "record", *agreement.PROFILE, "-o", data, "sleep", str(seconds)]
        subprocess.run(command, check=True, capture_output=True)
        for process in processes:
            os.killpg(process.pid, signal.SIGSTOP)
        time.sleep(0.1)
        script = subprocess.run(
            ["perf", "script", "-i", data, "-F", "pid,ip,sym,dso", "--no-inline"],
            check=True,
            capture_output=True,
        )
    text = script.stdout.decode("utf-8", "replace")
    return {_repair(frame) for frame in agreement.parse_perf_script(text)}


def _repair(frame: agreement.Frame) -> agreement.Frame:
    """Of a file that was deleted, the parser takes the name for a part of the symbol."""
    pid, address, symbol, dso = frame
    if not dso.startswith("deleted"):
        return frame
    symbol, _, path = symbol.rpartition(" (")
    return pid, address, symbol, f"{path} (deleted)"


def _compare_kernel(frames: set[agreement.Frame]) -> Agreement:
    kernel = read_kallsyms()
    wanted = sorted(
        {
            (address, symbol)
            for _, address, symbol, _ in frames
            if agreement.is_kernel(address) and symbol != "[unknown]"
        }
    )
    rows = kernel.lookup(np.array([address for address, _ in wanted], np.uint64))
    ours = [kernel.name(int(row)) if row >= 0 else "" for row in rows]
    pairs = [(mine, symbol) for mine, (_, symbol) in zip(ours, wanted, strict=True)]
    return Agreement("kernel", len(pairs), Counter(pair for pair in pairs if pair[0] != pair[1]))


def _compare_user(frames: set[agreement.Frame]) -> Agreement:
    processes = agreement.Processes()
    wrong: Counter[tuple[str, str]] = Counter()
    named = unnamed = better = ended = 0
    for pid, address, symbol, dso in sorted(frames):
        if agreement.is_kernel(address):
            continue
        if not _has_memory(pid):
            ended += symbol != "[unknown]"
            continue
        found = processes.resolve(pid, address, dso)
        ours = "" if found is None else found[0]
        if symbol == "[unknown]":
            unnamed += 1
            better += bool(ours) and not ours.startswith(("+0x", "[", "//"))
            continue
        named += 1
        if not agreement.same(ours, symbol):
            wrong[ours or "(not located)", symbol] += 1
    return Agreement("user", named, wrong, unnamed, better, ended)


def _has_memory(pid: int) -> bool:
    """Whether a process still is one: a zombie has nothing mapped any more."""
    try:
        return bool(Path(f"/proc/{pid}/maps").read_bytes())
    except OSError:
        return False


def _agreement_grid(
    compared: tuple[Agreement, Agreement], control: tuple[Agreement, Agreement], processes: int
) -> Grid:
    rows = tuple(
        (
            each.name,
            f"{each.named:,}",
            f"{each.ratio:.3%}",
            f"{wrong.ratio:.1%}",
            *(f"{count:,}" for count in (each.unnamed, each.better, each.ended)),
        )
        for each, wrong in zip(compared, control, strict=True)
    )
    head = (
        "", "distinct frames perf names", "we agree", f"control: moved by {MOVED_BYTES} bytes",
        "perf leaves unnamed", "of these we name", "left out: of processes that had ended",
    )  # fmt: skip
    return Grid(f"Against perf script, {processes} processes", head, rows)


def _differences_grid(kernel: Agreement, user: Agreement) -> Grid:
    rows = tuple(
        (each.name, f"`{_short(ours)}`", f"`{_short(perfs)}`", str(count))
        for each in (kernel, user)
        for (ours, perfs), count in each.wrong.most_common(5)
    )
    return Grid("The most frequent differences", ("", "ours", "perf's", "frames"), rows)


def _short(name: str) -> str:
    name = name.replace("|", "¦")
    return name if len(name) <= 60 else f"{name[:57]}…"


# -- programs in a recording -------------------------------------------------


def _record_program(program: Program, seconds: int) -> tuple[bool, str]:
    """Whether all names were found, and how many."""
    if shutil.which(program.build[0]) is None:
        return False, f"{program.build[0]} is not installed"
    with tempfile.TemporaryDirectory(prefix="nodescope-bench-") as name:
        folder = Path(name)
        (folder / program.source[0]).write_text(program.source[1])
        environment = os.environ | {"GOCACHE": f"{name}/cache", "GO111MODULE": "off"}
        subprocess.run(program.build, cwd=folder, check=True, capture_output=True, env=environment)
        if "stripped" in program.language and _has_symbols(folder / program.comm):
            return False, "the program is not stripped"
        archive = folder / "run" / "archive"
        archive.parent.mkdir()
        with subprocess.Popen([folder / program.comm]) as process:
            recorder = RecorderProcess(archive, "--duration", f"{seconds}s")
            code = recorder.wait(60)
            process.kill()
        if code != 0:
            return False, f"the recorder ended with {code}"
        found = stacks_of(archive, program.comm)
    names = [frame.split("!", 1)[1] for frame in found]
    hits = sum(any(wanted in each for each in names) for wanted in program.names)
    return hits == len(program.names), f"{hits} of {len(program.names)} names"


def _has_symbols(binary: Path) -> bool:
    sections = subprocess.run(
        ["readelf", "--section-headers", "--wide", binary],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return ".symtab" in sections or ".debug_" in sections
