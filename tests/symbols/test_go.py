"""Go binaries of every shape a toolchain at hand can build.

`go` on PATH, and any in `NODESCOPE_TEST_GO` (a colon-separated list), since
the table changed with 1.2, 1.16, 1.18, 1.20 and 1.26.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from nodescope.symbols.elf import PF_X, PT_LOAD, Elf, LoadSegment, Section, parse_elf
from nodescope.symbols.file_bytes import FileBytes, MemoryBytes
from nodescope.symbols.function_table import read_function_table
from nodescope.symbols.go import read_go_functions
from nodescope.symbols.image import Image

MAIN = """package main
import ("fmt"; "os"; "sort"; "strings")
type Counter struct{ n int }
//go:noinline
func (c *Counter) Add(s []string) int {
	sort.Strings(s)
	c.n += len(strings.Join(s, ""))
	return c.n
}
func main() { c := &Counter{}; fmt.Println(c.Add(os.Args)) }
"""

TOOLCHAINS = [
    go for go in [shutil.which("go"), *os.environ.get("NODESCOPE_TEST_GO", "").split(":")] if go
]
SHAPES = {
    "exe": [],
    "pie": ["-buildmode=pie"],
    "external": ["-ldflags=-s -w -linkmode=external"],
    "external pie": ["-buildmode=pie", "-ldflags=-s -w -linkmode=external"],
}


@pytest.fixture(scope="session")
def go_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One build cache for all, or every test compiles Go's library anew."""
    return tmp_path_factory.mktemp("go-cache")


def build(go: str, folder: Path, cache: Path, *options: str) -> Path:
    (folder / "main.go").write_text(MAIN)
    (folder / "go.mod").write_text("module counter\ngo 1.16\n")
    environment = {**os.environ, "GOCACHE": str(cache), "GOFLAGS": "-mod=mod",
                   "GOTOOLCHAIN": "local"}  # fmt: skip
    command = [go, "build", *options, "-o", "program", "."]
    made = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    if made.returncode:
        pytest.skip(f"this toolchain cannot build it: {made.stderr.decode()[:200]}")
    return folder / "program"


@pytest.fixture(params=TOOLCHAINS or [""])
def go(request: pytest.FixtureRequest) -> str:
    if not request.param:
        pytest.skip("go is not installed")
    return str(request.param)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_a_stripped_binary_still_names_its_functions(
    go: str, shape: str, tmp_path: Path, go_cache: Path
) -> None:
    options = SHAPES[shape]
    stripped = [] if any("ldflags" in o for o in options) else ["-ldflags=-s -w"]
    plain = [o.replace("-s -w ", "") for o in options]
    kept = tmp_path / "kept"
    kept.mkdir()
    symbols = read_function_table(parse_elf(FileBytes(str(build(go, kept, go_cache, *plain)))))
    assert symbols is not None
    bare = tmp_path / "bare"
    bare.mkdir()
    path = build(go, bare, go_cache, *stripped, *options)
    elf = parse_elf(FileBytes(str(path)))
    functions = read_go_functions(elf)
    assert functions is not None
    # Linking is deterministic: stripped or not, code lies at the same address.
    addresses = np.array([functions.start(i) for i in range(len(functions.functions))], np.uint64)
    rows = symbols.lookup(addresses).tolist()
    pairs = [(functions.name(i), symbols.name(r)) for i, r in enumerate(rows) if r >= 0]
    same = sum(ours == theirs.removesuffix(".abi0") for ours, theirs in pairs)
    assert len(pairs) > 500
    assert same > 0.97 * len(pairs), [p for p in pairs if p[0] != p[1]][:20]
    image = Image(elf, str(path), ())
    wanted = next(i for i in range(len(addresses)) if "Counter).Add" in functions.name(i))
    offset = elf.file_offset(functions.start(wanted))
    assert offset is not None
    names = image.resolve(np.array([offset, offset + 5], np.uint64), Counter())
    assert names == ["main.(*Counter).Add"] * 2


def old_table(magic: int) -> bytes:
    """A pclntab as Go 1.2 or 1.16 wrote it, with two functions."""
    names = b"main.one\0main.two\0"
    if magic == 0xFFFFFFFB:
        functab_at, header = 16, struct.pack("<IHBBQ", magic, 0, 1, 8, 2)
        functions = functab_at + 5 * 8 + 8
        names_at = functions + 2 * 16
        rows = struct.pack("<5Q", 0x401000, functions, 0x401040, functions + 16, 0x401100)
        rows += bytes(8)
        one, two = names_at, names_at + 9
    else:
        names_at = 8 + 7 * 8 + 8
        functab_at = names_at + len(names)
        header = struct.pack("<IHBB7Q", magic, 0, 1, 8, 2, 1, names_at, 0, 0, 0, functab_at)
        header += bytes(8)
        rows = struct.pack("<5Q", 0x401000, 40, 0x401040, 56, 0x401100)
        one, two = 0, 9
    records = struct.pack("<QiiQii", 0x401000, one, 0, 0x401040, two, 0)
    if magic == 0xFFFFFFFB:
        return header + rows + records + names
    return header + names + rows + records


@pytest.mark.parametrize("magic", [0xFFFFFFFB, 0xFFFFFFFA])
@pytest.mark.parametrize("with_section", [True, False])
def test_older_layouts(magic: int, with_section: bool) -> None:
    table = bytes(64) + old_table(magic)
    source = MemoryBytes(table + bytes(64), "old")
    sections = (Section(0, ".gopclntab", 1, 2, 0, 64, len(table) - 64, 0, 0),)
    segments = (
        LoadSegment(PT_LOAD, PF_X | 4, 0, 0x401000, 0x100, 0x100),
        LoadSegment(PT_LOAD, 4, 0, 0x500000, len(table), len(table)),
    )
    elf = Elf(source, 62, segments, sections if with_section else (), None)
    functions = read_go_functions(elf)
    assert functions is not None
    rows = functions.lookup(
        np.array([0x400FFF, 0x401000, 0x40103F, 0x401040, 0x4010FF, 0x401100], np.uint64)
    )
    assert rows.tolist() == [-1, 0, 0, 1, 1, -1]
    assert [functions.name(0), functions.name(1)] == ["main.one", "main.two"]
