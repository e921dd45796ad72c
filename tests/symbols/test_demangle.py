from __future__ import annotations

import ctypes.util
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodescope.symbols.demangle import MAX_DEMANGLED_CHARS, demangle, may_explode
from nodescope.symbols.rust_names import demangle_rust_v0

needs_libstdcxx = pytest.mark.skipif(
    ctypes.util.find_library("stdc++") is None, reason="libstdc++ is not installed"
)


@needs_libstdcxx
def test_cxx() -> None:
    assert demangle("_ZN3app4workERNS_5StoreIlEEi") == "app::work(app::Store<long>&, int)"
    assert demangle("_ZN3foo3barEv.cold").startswith("foo::bar()")


@pytest.mark.parametrize(
    ("mangled", "readable"),
    [
        ("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"),
        (
            "_ZN50_$LT$T$u20$as$u20$core..convert..Into$LT$U$GT$$GT$4into17h0123456789abcdefE",
            "<T as core::convert::Into<U>>::into",
        ),
        ("_ZN3foo17h0123456789abcdefE.llvm.123", "foo"),
        ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
        ("_RNvNtCs1234_7mycrate3bar3foo", "mycrate::bar::foo"),
        ("_RINvCsbFYJioi4cCO_2rs5tallyNtNtCslNYArtu3iFV_5alloc6string6StringEB2_",
         "rs::tally::<alloc::string::String>"),
        ("_RNvXCs1234_7mycrateNtB2_1WNtB2_3Run3run", "<mycrate::W as mycrate::Run>::run"),
        ("_RNCNvCs1234_7mycrate4main0B3_", "mycrate::main::{closure#0}"),
        ("_RNCNvCs1234_7mycrate4mains_0B3_", "mycrate::main::{closure#1}"),
        ("_RINvCs1234_7mycrate3fooAhj10_E", "mycrate::foo::<[u8; 16]>"),
        ("_RINvCs1234_7mycrate3fooRShE", "mycrate::foo::<&[u8]>"),
        ("_RINvCs1234_7mycrate3fooFlEmE", "mycrate::foo::<fn(i32) -> u32>"),
        ("_RINvCs1234_7mycrate3fooDNtB2_3RunEL_E", "mycrate::foo::<dyn mycrate::Run>"),
        ("_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y",
         "utf8_idents::საჭმელად_გემრიელი_სადილი"),
    ],
)  # fmt: skip
def test_rust(mangled: str, readable: str) -> None:
    assert demangle(mangled) == readable


@pytest.mark.parametrize("name", ["main", "", "_R", "_Z", "_RNv", "_Zzzz", "runtime.mallocgc"])
def test_what_cannot_be_demangled_stays(name: str) -> None:
    assert demangle(name) == name


def bomb(levels: int) -> str:
    """A type that doubles at each level through back references."""
    name = "_Z1fI1A"
    for level in range(levels):
        reference = "S_" if level == 0 else f"S{level - 1}_".upper()
        name += f"4pairI{reference}{reference}E"
    return name + "Evv"


def test_bombs_do_not_go_off() -> None:
    for levels in (10, 20, 30, 100, 300):
        started = time.monotonic()
        assert len(demangle(bomb(levels))) <= MAX_DEMANGLED_CHARS
        assert time.monotonic() - started < 1
    assert may_explode(bomb(30).encode())
    assert not may_explode(b"_ZNSt6vectorIiSaIiEE9push_backERKi")


def test_rust_bombs_do_not_go_off() -> None:
    name = "_RINvC1a1bTTTTTTTThhEB6_EB5_EB4_EB3_EB2_EB1_EB0_EE"
    started = time.monotonic()
    demangle_rust_v0(name * 20)
    demangle_rust_v0("_R" + "I" * 2000)
    demangle_rust_v0("_RB_")
    demangle_rust_v0("_RIC1aB_E")
    assert time.monotonic() - started < 1


@settings(max_examples=500, deadline=None)
@given(
    st.sampled_from(["_R", "_RNv", "_RINvC1a1b", "_ZN", "_ZN3foo17h0123456789abcdef", "_Z"]),
    st.text("NvCIEBSTARQPOFDLKMXYEhjs_0123456789abcdefGu$.p", max_size=200),
)
def test_anything_is_survived(prefix: str, rest: str) -> None:
    assert len(demangle(prefix + rest)) <= MAX_DEMANGLED_CHARS
