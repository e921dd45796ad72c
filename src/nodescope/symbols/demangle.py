"""Readable names for C++ and Rust symbols.

`_Z` goes to the C++ runtime's own `__cxa_demangle` where libstdc++ can be
loaded, Rust's two schemes to `rust_names`. Whatever cannot be demangled, or
would cost too much, keeps its raw name: a long name is better than a stalled
recorder.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from functools import lru_cache

from nodescope.symbols.rust_names import demangle_rust_legacy, demangle_rust_v0

MAX_MANGLED_BYTES = 2048
MAX_DEMANGLED_CHARS = 1024
MAX_EXPANSION_BYTES = 8 << 20
CACHED_NAMES = 4096

_BACK_REFERENCE = re.compile(rb"S[0-9A-Z]*_|T[0-9]*_")
_LIBRARY = "libstdc++.so.6"


def _load_cxa_demangle() -> Callable[[bytes], bytes | None] | None:
    """Bind libstdc++'s demangler, or None where it is not installed."""
    try:
        runtime = ctypes.CDLL(_LIBRARY)
        libc = ctypes.CDLL(None)
        function = runtime["__cxa_demangle"]
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    libc.free.argtypes = [ctypes.c_void_p]
    libc.free.restype = None
    libc.strnlen.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.strnlen.restype = ctypes.c_size_t

    def cxa_demangle(mangled: bytes) -> bytes | None:
        status = ctypes.c_int(0)
        result = function(mangled, None, None, ctypes.byref(status))
        if not result:
            return None
        try:
            # Characters are cut later; four bytes is the longest UTF-8 one.
            size = libc.strnlen(result, 4 * MAX_DEMANGLED_CHARS)
            return ctypes.string_at(result, size) if status.value == 0 else None
        finally:
            libc.free(result)

    return cxa_demangle


class _CxxRuntime:
    """Loads libstdc++ on first need: most nodes never meet a C++ name."""

    def __init__(self) -> None:
        self._demangle: Callable[[bytes], bytes | None] | None = None
        self._tried = False

    def demangle(self, mangled: bytes) -> bytes | None:
        if not self._tried:
            self._tried = True
            self._demangle = _load_cxa_demangle()
        return self._demangle(mangled) if self._demangle else None


_cxx_runtime = _CxxRuntime()


@lru_cache(CACHED_NAMES)
def demangle(name: str) -> str:
    """The readable form of a symbol's name, or the name itself."""
    if not name.startswith(("_Z", "_R", "__Z")) or len(name) > MAX_MANGLED_BYTES:
        return name[:MAX_DEMANGLED_CHARS]
    if name.startswith("_R"):
        readable = demangle_rust_v0(name)
    else:
        readable = demangle_rust_legacy(name) or _demangle_cxx(name)
    return (readable or name)[:MAX_DEMANGLED_CHARS]


def _demangle_cxx(name: str) -> str | None:
    # A suffix such as ".cold" or ".part.0" is the compiler's, not the ABI's;
    # libstdc++ shows it as "[clone .cold]" like perf does.
    mangled = name.encode("utf-8", "replace")
    if may_explode(mangled):
        return None
    readable = _cxx_runtime.demangle(mangled)
    return readable.decode("utf-8", "replace") if readable else None


def may_explode(mangled: bytes) -> bool:
    """Return whether back references could make this name longer than we can afford.

    libstdc++ has no limit on its output, and each type of a name can repeat
    earlier ones: n references, three to a type, give at most 3^(n/3) copies.
    """
    references = len(_BACK_REFERENCE.findall(mangled))
    if references > 200:
        return True
    return bool(len(mangled) * 3 ** (references / 3) > MAX_EXPANSION_BYTES)
