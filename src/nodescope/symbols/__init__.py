"""Names of functions by address, found while the process still lives.

`Binaries` for user code, `LiveKernelSymbols` for the kernel, `PerfMap` for
code compiled at run time. Nothing here raises for what a file contains, except
`read_kallsyms`, which is a source like any other.
"""

from __future__ import annotations

from nodescope.symbols.binaries import ANONYMOUS, Binaries, Binary, Limits
from nodescope.symbols.kallsyms import (
    KERNEL,
    KernelSymbols,
    LiveKernelSymbols,
    parse_kallsyms,
    read_kallsyms,
)
from nodescope.symbols.perf_map import PerfMap
from nodescope.symbols.unresolved import Reason

__all__ = [
    "ANONYMOUS",
    "KERNEL",
    "Binaries",
    "Binary",
    "KernelSymbols",
    "Limits",
    "LiveKernelSymbols",
    "PerfMap",
    "Reason",
    "parse_kallsyms",
    "read_kallsyms",
]
