"""What the hardware reports of itself: machine checks, EDAC, firmware, PCIe, RDMA, heat, clocks.

linux 3.10 to 6.18: arch/x86/kernel/cpu/mce/, drivers/{edac,acpi/apei,pci/pcie,thermal}/,
kernel/time/clocksource.c; mlx5 and EFA for RDMA. Bit 61 of a machine check's status says that
the error was not corrected: it is in the first digit.
"""

from __future__ import annotations

from nodescope.sources.kernel_log.messages.message import MessageRule, rule

_BANK = r"CPU (?P<cpu>\d+): Machine Check(?: Exception)?: [0-9a-f]+ Bank (?P<bank>\d+): "
_PCI = r"(?P<device>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])"
_LABEL = r"EDAC (?P<about>MC\d+): (?P<errors>\d+) "
_PLACE = r" (?:[^\n]{0,200}? )?on (?P<device>[^\n(]{1,128}?) \("

_MACHINE_CHECKS = (
    rule("mce", ": Machine Check", _BANK + r"(?P<status>[2367abefABEF][0-9a-fA-F]{15})"),
    rule(
        "mce_corrected", ": Machine Check", _BANK + r"(?P<status>[0-9a-fA-F]{16})", corrected=True
    ),
    # AMD; the next line names the core
    rule(
        "mce",
        "[Hardware Error]: ",
        r"\[Hardware Error\]: (?P<severity>Uncorrected, software (?:restartable|containable) error|"
        r"System Fatal error)",
    ),
    rule(
        "mce_corrected",
        "[Hardware Error]: ",
        r"\[Hardware Error\]: (?P<severity>(?:Corrected|Deferred) error), no action required",
        corrected=True,
    ),
    rule("mce_corrected", "Machine check events logged", corrected=True),
    rule("edac_ue", "EDAC MC", rf"{_LABEL}UE(?:{_PLACE})?", corrected=False),
    rule("edac_ce", "EDAC MC", rf"{_LABEL}CE(?:{_PLACE})?", corrected=True),
    rule("edac_ue", "EDAC MC", r"EDAC (?P<about>MC\d+): UE ", corrected=False),  # up to 3.x
    rule("edac_ce", "EDAC MC", r"EDAC (?P<about>MC\d+): CE ", corrected=True),
)

_FIRMWARE = (
    rule(
        "hw_error",
        "event severity: ",
        r"\[Hardware Error\]: event severity: (?P<severity>recoverable|fatal)",
        about="firmware",
        corrected=False,
    ),
    rule(
        "hw_corrected",
        "event severity: ",
        r"\[Hardware Error\]: event severity: (?P<severity>corrected)",
        about="firmware",
        corrected=True,
    ),
)

_BUS = (
    rule(
        "pcie_corrected",
        "PCIe Bus Error: ",
        rf"{_PCI}: (?:AER: )?PCIe Bus Error: severity=(?P<severity>Correct(?:ed|able))",
        corrected=True,
    ),
    rule(
        "pcie_error",
        "PCIe Bus Error: ",
        rf"{_PCI}: (?:AER: )?PCIe Bus Error: severity=(?P<severity>Uncorrect(?:ed|able)"
        r"(?: \([\w-]{1,20}\))?)",
        corrected=False,
    ),
    rule("pcie_error", "device recovery failed", rf"{_PCI}: .{{0,20}}?device recovery failed"),
    rule(
        "pcie_error",
        "DPC: containment event",
        rf"{_PCI}: DPC: (?P<severity>containment event), status:",
    ),
    rule(
        "rdma_errors",
        "Port module event[error]",
        rf"{_PCI}: .{{0,80}}?Port module event\[error\]: (?P<severity>module \d+, [^\n]{{1,120}})",
    ),
    rule(
        "rdma_errors",
        "Detected insufficient power",
        rf"{_PCI}: .{{0,80}}?(?P<severity>Detected insufficient power on the PCIe slot)",
    ),
    rule(
        "rdma_errors",
        "Fatal error ",
        rf"mlx5_core {_PCI}: .{{0,80}}?(?P<severity>Fatal error \d+) detected",
    ),
    rule(
        "rdma_errors",
        "timeout. Will cause a leak",
        rf"{_PCI}: .{{0,160}}?(?P<severity>timeout\. Will cause a leak of a command resource)",
    ),
    rule(
        "rdma_errors",
        "Failed to process command ",
        r"(?:infiniband |efa \S{1,32} )(?P<device>\w{1,64}): "
        r"(?P<severity>Failed to process command)",
    ),
)

_HEAT_AND_TIME = (
    rule(
        "cpu_hot",
        " above threshold, cpu",
        r"CPU(?P<cpu>\d+): (?P<severity>(?:Core|Package) temperature(?: is)? above threshold)",
    ),
    rule(
        "cpu_hot",
        "ritical temperature reached",
        r"(?:\A|thermal )(?P<device>[\w-]{1,64}): (?P<severity>[Cc]ritical temperature reached)",
    ),
    rule(
        "clocksource_unstable",
        "Marking clocksource ",
        r"Marking clocksource '(?P<device>[\w-]{1,64})' as unstable",
    ),
    rule(
        "clocksource_unstable",
        "Clocksource ",
        r"Clocksource (?P<device>[\w-]{1,64}) unstable \(delta",  # 3.10
    ),
)

RULES: tuple[MessageRule, ...] = (*_MACHINE_CHECKS, *_FIRMWARE, *_BUS, *_HEAT_AND_TIME)
