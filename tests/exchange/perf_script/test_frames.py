from __future__ import annotations

import pytest

from nodescope.exchange.perf_script.frames import StackParser, make_frame, split_symbol
from nodescope.ingest.parsed import UNKNOWN_FRAME, ParsedFrame, ParsedNames


@pytest.mark.parametrize(
    ("text", "symbol", "binary"),
    [
        ("main+0x1f (/bin/app)", "main", "/bin/app"),
        ("main (/bin/app)", "main", "/bin/app"),
        ("[unknown] (/bin/app)", "[unknown]", "/bin/app"),
        ("[unknown] ([unknown])", "[unknown]", "[unknown]"),
        ("operator new(unsigned long)+0x12 (/l.so)", "operator new(unsigned long)", "/l.so"),
        ("f(int (*)(int)) (/l.so)", "f(int (*)(int))", "/l.so"),
        ("f(int (*)(int))+0x3 (/a dir/l (1).so (deleted))", "f(int (*)(int))",
         "/a dir/l (1).so (deleted)"),
        ("work (/srv/app (deleted))", "work", "/srv/app (deleted)"),
        ("work+0x1 (/srv/app+0x44d1)", "work", "/srv/app"),
        ("work (/srv/odd)name)", "work", "/srv/odd)name"),
        ("a+b+0x1 (/bin/x)", "a+b", "/bin/x"),
        ("inner (inlined)", "inner", None),
        ("inner+0x4 (inlined)", "inner", None),
        ("just_a_name", "just_a_name", None),
        ("Lorg/x/Y;::run+0x8 (/tmp/perf-12.map)", "Lorg/x/Y;::run", "/tmp/perf-12.map"),
    ],
)  # fmt: skip
def test_symbol_and_binary_are_told_apart(text: str, symbol: str, binary: str | None) -> None:
    expected = (symbol.encode(), None if binary is None else binary.encode())
    assert split_symbol(text.encode()) == expected


@pytest.mark.parametrize(
    ("address", "symbol", "binary", "frame"),
    [
        (0xFFFFFFFF81000000, b"f", b"[kernel.kallsyms]", ParsedFrame("[kernel]", "f", True)),
        (0xFFFFFFFF81000000, b"f", b"[kernel.vmlinux]", ParsedFrame("[kernel]", "f", True)),
        (0xFFFFFFFF81000000, b"f", b"/boot/vmlinux-6.1", ParsedFrame("[kernel]", "f", True)),
        (0xFFFFFFFFC0000000, b"f", b"[nf_conntrack]", ParsedFrame("[nf_conntrack]", "f", True)),
        (
            0x10,
            b"f",
            b"/lib/modules/6.1/kernel/net/nf-nat.ko.xz",
            ParsedFrame("[nf_nat]", "f", True),
        ),
        (
            0xFFFFFFFFC0000000,
            b"bpf_prog_1",
            b"bpf_prog_1",
            ParsedFrame("[bpf]", "bpf_prog_1", True),
        ),
        (0x7FFF0000, b"clock_gettime", b"[vdso]", ParsedFrame("[vdso]", "clock_gettime", False)),
        (
            0xFFFFFFFFFF600000,
            b"",
            b"[vsyscall]",
            ParsedFrame("[vsyscall]", "+0xffffffffff600000", False),
        ),
        (0x1234, b"[unknown]", b"/bin/app", ParsedFrame("/bin/app", "+0x1234", False)),
        (0x1234, b"[unknown]", b"[unknown]", UNKNOWN_FRAME),
        (
            0xFFFFFFFF81000000,
            b"",
            b"[unknown]",
            ParsedFrame("[kernel]", "+0xffffffff81000000", True),
        ),
    ],
)
def test_modules(address: int, symbol: bytes, binary: bytes, frame: ParsedFrame) -> None:
    assert make_frame(address, symbol, binary) == frame


def test_names_of_strangers_cannot_drive_a_terminal() -> None:
    frame = make_frame(0x10, b"\x1b[2Jf\xff", "/bin/\u202ea".encode())
    assert frame == ParsedFrame("/bin/\\u202ea", "\\x1b[2Jf\ufffd", False)


def test_a_stack_has_a_bounded_depth() -> None:
    names = ParsedNames()
    lines = [b"\t%x f%d (/bin/x)" % (number, number) for number in range(5000)]
    assert len(names.paths[StackParser(names).parse(lines)]) == 1024
