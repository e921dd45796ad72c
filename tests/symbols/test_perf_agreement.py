"""What we call a frame against what perf calls it, on a real and varied load.

Every (process, address) pair that `perf script` names is looked up through our
own tables while the process is stopped but alive. Differences in how a name is
demangled (parameters, return types, hashes) are not disagreements.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nodescope.symbols import Binaries, Binary, read_kallsyms

SECONDS = 5
PROFILE = ["-F", "499", "-g", "-a", "-N", "-B"]

CPP = """
#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>
namespace app {
template <class T> struct Store {
  std::map<std::string, T> m;
  __attribute__((noinline)) void put(const std::string &k, T v) { m[k] = v; }
};
__attribute__((noinline)) long work(Store<long> &s, int n) {
  std::vector<int> v;
  for (int i = 0; i < n; i++) { v.push_back(i * 7919 % 1000); s.put(std::to_string(i % 99), i); }
  std::sort(v.begin(), v.end());
  return v[n / 2];
}
}
int main() { app::Store<long> s; for (;;) app::work(s, 2000); }
"""

RUST = """
use std::collections::HashMap;
#[inline(never)]
fn tally<T: std::hash::Hash + Eq>(m: &mut HashMap<T, u64>, k: T) { *m.entry(k).or_insert(0) += 1; }
trait Run { fn run(&self, n: u64) -> usize; }
struct W;
impl Run for W {
    #[inline(never)]
    fn run(&self, n: u64) -> usize {
        let mut m = HashMap::new();
        for i in 0..n { tally(&mut m, format!("{}", i % 100)); }
        let mut v: Vec<_> = m.into_iter().collect();
        v.sort();
        v.len()
    }
}
fn main() {
    let w: Box<dyn Run> = Box::new(W);
    let mut t = 0;
    loop { t += w.run(3000); if t == 1 { println!("{}", t); } }
}
"""

PYTHON = """
import json, re
data = {str(i): list(range(20)) for i in range(200)}
while True:
    sorted(json.loads(json.dumps(data)).items(), key=lambda kv: re.sub("[0-9]", "x", kv[0]))
"""

NODE = "for (;;) { const a = []; for (let i = 0; i < 2e4; i++) a.push(String(i * 7919 % 1e4)); \
a.sort(); JSON.parse(JSON.stringify(a)); }"

AWK = 'BEGIN { while (1) { n = split("c b a d e f", x, " "); s = s x[n] ; if (length(s) > 9999) \
s = ""; gsub(/a/, "bb", s) } }'


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Programs of many kinds, running until the end of the test."""
    if os.geteuid() != 0:
        pytest.skip("needs root: perf events of all CPUs")
    if shutil.which("perf") is None:
        pytest.skip("perf is not installed")
    folder = tmp_path_factory.mktemp("load")
    commands = _commands(folder)
    processes = [
        subprocess.Popen(c, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder,
                         start_new_session=True)
        for c in commands
    ]  # fmt: skip
    yield processes
    for process in processes:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _commands(folder: Path) -> list[list[str]]:
    numbers = folder / "numbers"
    numbers.write_text("".join(f"{i * 7919 % 1000003}\n" for i in range(3_000_000)))
    commands = [
        [sys.executable, "-c", PYTHON],
        ["gzip", "-9", "-c", "/dev/urandom"],
        ["sort", "--parallel=1", "-S", "20M", "-R", str(numbers)],
        ["awk", AWK],
        ["dd", "if=/dev/zero", "of=/dev/null", "bs=4k"],
        ["sh", "-c", "while :; do ls -lR /usr/share/doc >/dev/null; done"],
    ]
    if Path("/usr/bin/python3").exists():
        commands.append(["/usr/bin/python3", "-c", PYTHON])
    if shutil.which("node"):
        commands.append(["node", "-e", NODE])
    if shutil.which("g++"):
        (folder / "load.cc").write_text(CPP)
        subprocess.run(["g++", "-O1", "-fno-omit-frame-pointer", "-o", "load-cpp", "load.cc"],
                       cwd=folder, check=True)  # fmt: skip
        commands.append([str(folder / "load-cpp")])
        (folder / "big.c").write_text(
            "".join(f"int f{i}(int a){{for(int i=0;i<a;i++)a^=i*{i};return a;}}\n"
                    for i in range(60000))
        )  # fmt: skip
        cc1 = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True,
                             check=True).stdout.strip()  # fmt: skip
        commands.append([cc1, "-quiet", "-O2", "big.c", "-o", "/dev/null"])
    if shutil.which("rustc"):
        (folder / "load.rs").write_text(RUST)
        for scheme in ("legacy", "v0"):
            made = subprocess.run(
                ["rustc", "-O", "-C", "force-frame-pointers=yes", "-Z", "unstable-options", "-C",
                 f"symbol-mangling-version={scheme}", "-o", f"load-{scheme}", "load.rs"],
                cwd=folder, capture_output=True, env=os.environ | {"RUSTC_BOOTSTRAP": "1"},
                check=False,
            )  # fmt: skip
            if made.returncode == 0:
                commands.append([str(folder / f"load-{scheme}")])
    return commands


Frame = tuple[int, int, str, str]
"""pid, address, perf's symbol, perf's dso. Of user code perf prints the file offset."""

_FRAME = re.compile(r"\s+([0-9a-f]+) (.*) \((.*)\)$")


def parse_perf_script(text: str) -> Iterator[Frame]:
    pid = 0
    for line in text.splitlines():
        match = _FRAME.match(line)
        if match:
            yield pid, int(match[1], 16), match[2], match[3]
        elif line.strip().isdigit():
            pid = int(line)


@pytest.fixture(scope="module")
def frames(
    load: list[subprocess.Popen[bytes]], tmp_path_factory: pytest.TempPathFactory
) -> set[Frame]:
    data = str(tmp_path_factory.mktemp("perf") / "perf.data")
    subprocess.run(["perf", "record", *PROFILE, "-o", data, "sleep", str(SECONDS)], check=True,
                   capture_output=True)  # fmt: skip
    for process in load:
        os.killpg(process.pid, signal.SIGSTOP)
    time.sleep(0.1)
    script = subprocess.run(
        ["perf", "script", "-i", data, "-F", "pid,ip,sym,dso", "--no-inline"],
        check=True, capture_output=True,
    )  # fmt: skip
    return set(parse_perf_script(script.stdout.decode("utf-8", "replace")))


def is_kernel(address: int) -> bool:
    return address >= 1 << 63


class Processes:
    """Our own view of each process's mappings."""

    def __init__(self) -> None:
        self.binaries = Binaries()
        self._maps: dict[int, list[tuple[int, int, int, tuple[int, int], int, str]]] = {}

    def resolve(self, pid: int, file_offset: int, dso: str) -> tuple[str, Binary] | None:
        if pid not in self._maps:
            self._maps[pid] = list(self._read_maps(pid))
        for start, end, offset, device, inode, path in self._maps[pid]:
            if path == dso and offset <= file_offset < offset + end - start:
                binary = self.binaries.open(pid, path, device, inode)
                return binary.resolve(np.array([file_offset], np.uint64))[0], binary
        return None

    def _read_maps(self, pid: int) -> Iterator[tuple[int, int, int, tuple[int, int], int, str]]:
        try:
            text = Path(f"/proc/{pid}/maps").read_text()
        except OSError:
            return
        for line in text.splitlines():
            fields = line.split(None, 5)
            start, end = (int(x, 16) for x in fields[0].split("-"))
            major, minor = (int(x, 16) for x in fields[3].split(":"))
            path = fields[5] if len(fields) > 5 else ""
            yield start, end, int(fields[2], 16), (major, minor), int(fields[4]), path


_HASH = re.compile(r"::h[0-9a-f]{16}$")
_CLONE = re.compile(r"( \[clone [^\]]*\])+$|(\.(cold|part|isra|constprop|lto_priv)(\.\d+)?)+$")


def essence(name: str) -> str:
    """A name without what demanglers may or may not show."""
    if name.endswith("@plt"):
        return essence(name.removesuffix("@plt")) + "@plt"
    name = _HASH.sub("", _CLONE.sub("", name)).replace("(anonymous namespace)", "{anon}")
    depth = 0
    kept = []
    for character in name:
        depth += character in "<(["
        if not depth:
            kept.append(character)
        depth -= character in ">)]"
    words = "".join(kept).replace("const", "").split()
    return words[-1].lstrip("*&") if words else name


def same(ours: str, perfs: str) -> bool:
    return ours == perfs or essence(ours) == essence(perfs)


@pytest.mark.root
@pytest.mark.slow
def test_kernel_names_agree_with_perf(frames: set[Frame]) -> None:
    kernel = read_kallsyms()
    wanted = [(a, s) for _, a, s, d in frames if is_kernel(a) and s != "[unknown]"]
    rows = kernel.lookup(np.array([a for a, _ in wanted], np.uint64))
    ours = [kernel.name(int(r)) if r >= 0 else "" for r in rows]
    wrong = Counter((o, s) for o, (_, s) in zip(ours, wanted, strict=True) if o != s)
    agreed = 1 - sum(wrong.values()) / len(wanted)
    print(f"kernel: {len(wanted)} frames, {agreed:.4%} agree; {wrong.most_common(40)}")
    assert len(wanted) > 100
    assert agreed >= 0.99


@pytest.mark.root
@pytest.mark.slow
def test_user_names_agree_with_perf(
    frames: set[Frame], load: list[subprocess.Popen[bytes]]
) -> None:
    processes = Processes()
    wrong: Counter[tuple[str, str, str]] = Counter()
    modules: Counter[str] = Counter()
    named = unnamed = better = 0
    for pid, address, symbol, dso in frames:
        if is_kernel(address) or not Path(f"/proc/{pid}").exists():
            continue
        found = processes.resolve(pid, address, dso)
        if found is None:
            continue
        ours, binary = found
        if symbol == "[unknown]":
            unnamed += 1
            better += not ours.startswith(("+0x", "[", "//"))
            continue
        named += 1
        modules[binary.module] += 1
        if not same(ours, symbol):
            wrong[ours, symbol, dso] += 1
    agreed = 1 - sum(wrong.values()) / named
    print(f"user: {named} frames perf names, {agreed:.4%} agree; it leaves {unnamed} unnamed, "
          f"of which we name {better}")  # fmt: skip
    print(*wrong.most_common(40), sep="\n")
    print(modules.most_common(30))
    print(processes.binaries.failures, processes.binaries.unresolved)
    assert named > 100
    assert agreed >= 0.98
