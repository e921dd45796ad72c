"""Accelerators: NVIDIA's Xid and SXid, Amazon's Neuron, amdgpu.

An Xid's number says what happened (NVIDIA's Xid catalogue; open-gpu-kernel-modules,
nverror.h); the text after it varies with the driver. Numbers that are not in the table are
of kind `gpu_error`. A switch repeats a fatal SXid as lines of its state: those make no event.
"""

from __future__ import annotations

from collections.abc import Iterator

from nodescope.sources.kernel_log.messages.message import MessageRule, rule

XIDS: dict[str, tuple[int, ...]] = {
    "gpu_app_fault": (13, 31, 32, 43, 45, 68, 69),
    "gpu_ecc": (48, 94, 95, 140, 171, 172),
    "gpu_memory_retired": (63, 64, 92, 156, 157),
    "gpu_nvlink": (74, 136, 137, *range(144, 151), 155),
    "gpu_lost": (79, 167),
    "gpu_hung": (8, 38, 46, 61, 62, 109, 110, 119, 120, 143, 158),
    # auxiliary power, an encoder, the rotation of a key, and what the driver asks for itself
    "gpu_action": (54, 142, 151, 154),
}

_BUS = r"(?P<device>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})"
_XID = rf"NVRM: Xid \((?:PCI:)?{_BUS}(?:\.[0-7])?(?: GPU-I:\d+)?(?: GPU-CI:\d+)?\): "
# A process that the driver does not know is written '<unknown>'.
_PROCESS = (
    r"(?:,? ?pid=(?:(?P<pid>\d{1,10})|[^\s,]{1,20}),"
    r"(?: name=(?:<unknown>|(?P<comm>[^\n,]{1,64})),)?)?"
)
_CAUSE = r"(?:.{0,1024}? caused by previous Xid (?P<previous_xid>\d{1,4}))?"
_ASKS = (
    r"(?:,? ?.{0,256}?recovery action changed from 0x[0-9a-f]+ \([^)]{0,80}\) to 0x[0-9a-f]+ "
    r"\((?P<action>[^)]{1,80})\))?"
)
_LINK = r"(?:.{0,256}?[Ll]ink (?P<link>\d{1,3})\b)?"
_ADDRESS = r"(?P<device>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])"

_SXID = rf"nvidia-nvswitch\d+: SXid \(PCI:{_ADDRESS}\): (?P<xid>\d{{1,6}}), "


def _xid_rules() -> Iterator[MessageRule]:
    needle = "NVRM: Xid ("
    for kind, numbers in XIDS.items():
        number = rf"(?P<xid>{'|'.join(map(str, numbers))}),{_PROCESS}"
        if kind == "gpu_nvlink":
            fatal = rf"{_XID}{number}.{{0,200}}?\bFatal\b{_LINK}{_CAUSE}"
            yield rule(kind, needle, fatal, fatal=True)
            minor = rf"{_XID}{number}.{{0,200}}?\b[Nn]on-?[Ff]atal\b{_LINK}{_CAUSE}"
            yield rule(kind, needle, minor, fatal=False)
        more = {"gpu_action": _ASKS, "gpu_nvlink": _LINK + _CAUSE}.get(kind, _CAUSE)
        yield rule(kind, needle, f"{_XID}{number}{more}")
    other = rf"{_XID}(?P<xid>\d{{1,4}}),{_PROCESS}{_CAUSE}"
    yield rule("gpu_error", needle, other)


_NVIDIA = (
    *_xid_rules(),
    # One message of three lines
    rule(
        "gpu_lost",
        "NVRM: The NVIDIA GPU ",
        rf"NVRM: The NVIDIA GPU {_ADDRESS}.{{0,200}}?fallen off the bus",
    ),
    rule(
        "gpu_lost",
        "NVRM: The NVIDIA GPU ",
        rf"NVRM: The NVIDIA GPU {_ADDRESS}\s*\Z",
        announces=True,
    ),
    rule(
        "gpu_lost",
        "fallen off the bus",
        rf"NVRM: GPU(?: at)? {_ADDRESS}: GPU has fallen off the bus",
    ),
    rule(
        "gpu_lost",
        "fallen off the bus",
        r"NVRM: fallen off the bus and is not responding",
        about="GPU",
    ),
    rule(
        "gpu_hung",
        "RmInitAdapter failed!",
        rf"NVRM: (?:GPU {_ADDRESS}: )?RmInitAdapter failed!",
        about="GPU",
    ),
    rule(
        "nvswitch_error",
        ": SXid (",
        _SXID + r"Fatal(?:, Link (?P<link>\d+))?",
        fatal=True,
    ),
    rule(
        "gpu_error",
        ": SXid (",
        _SXID + r"Non-fatal(?:, Link (?P<link>\d+))?",
        fatal=False,
    ),
)

_OTHERS = (
    rule(
        "gpu_ecc",
        "NEURON_HW_ERR=",
        r"NEURON_HW_ERR=(?:SRAM|NC|HBM)_UNCORRECTABLE_ERROR",
        about="neuron",
    ),
    rule("gpu_hung", "NEURON_HW_ERR=", r"NEURON_HW_ERR=DMA_ERROR", about="neuron"),
    rule(
        "gpu_hung",
        " timeout, signaled seq=",
        rf"(?:amdgpu {_ADDRESS}: )?.{{0,80}}?\bring \S{{1,40}} timeout, signaled seq=",
        about="amdgpu",
    ),
    rule(
        "gpu_hung",
        "GPU reset(",
        rf"(?:amdgpu {_ADDRESS}: )?.{{0,80}}?GPU reset\(\d+\) failed",
        about="amdgpu",
    ),
)

RULES: tuple[MessageRule, ...] = (*_NVIDIA, *_OTHERS)
