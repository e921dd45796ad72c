"""The kernel's transmit watchdog, and the drivers other than ENA.

Read in linux 5.10 to 7.2: net/sched/sch_generic.c and drivers/net/. The core
that the watchdog names since 6.1 runs the timer; it is not the one that is held.
"""

from __future__ import annotations

from nodescope.sources.kernel_log.messages.message import MessageRule, rule

_INTEL = "e1000 e1000e fm10k i40e iavf ice igb igbvf igc ixgbe ixgbevf"

RULES: tuple[MessageRule, ...] = (
    rule(
        "nic_tx_timeout",
        "NETDEV WATCHDOG: ",
        r"NETDEV WATCHDOG: CPU: (?P<runs_timer_on>\d+): "
        r"transmit queue (?P<queue>\d+) timed out(?: (?P<timed_out_ms>\d+) ms)?",
    ),
    rule(
        "nic_tx_timeout",
        "NETDEV WATCHDOG: ",
        r"NETDEV WATCHDOG: (?P<interface>\S+) \((?P<driver>[^)]*)\): "
        r"transmit queue (?P<queue>\d+) timed out(?: (?P<timed_out_ms>\d+) ms)?",
    ),
    # mlx5 and virtio_net
    rule(
        "nic_tx_timeout",
        "TX timeout on queue: ",
        r"TX timeout on queue: (?P<queue>\d+), (?:SQ: 0x[0-9a-f]+, CQ: 0x[0-9a-f]+, "
        r"SQ Cons: 0x[0-9a-f]+ SQ Prod: 0x[0-9a-f]+, usecs since last trans: (?P<since_tx_us>\d+))",
    ),
    rule(
        "nic_tx_timeout",
        "TX timeout on queue: ",
        r"TX timeout on queue: (?P<queue>\d+), sq: \S+, vq: 0x[0-9a-f]+, name: \S+, "
        r"(?P<since_tx_us>\d+) usecs ago",
    ),
    rule("nic_tx_timeout", "TX timeout detected, starting reset task", resets=True),  # bnxt
    rule("nic_tx_timeout", "TX timeout detected"),
    rule(
        "nic_event_recovered",
        " eqes on EQ 0x",
        r"Recovered (?P<recovered>\d+) eqes on EQ 0x[0-9a-f]+",
    ),
    rule("nic_health", "device's health compromised"),
    # emergency, alert, critical and error; 4 and more are warnings and notes
    rule(
        "nic_health",
        "Health issue observed, ",
        r"Health issue observed, [^\n]{1,80}?severity\([0-3]\)",
    ),
    # Intel
    rule(
        "nic_tx_timeout",
        "tx_timeout: VSI_",
        r"tx_timeout: VSI_(?:seid|num): \d+, Q (?P<queue>\d+)",
    ),
    rule(
        "nic_reset",
        "tx_timeout recovery level",
        r"tx_timeout recovery level (?P<level>\d+)(?:, (?:tx|hung_)queue (?P<queue>\d+))?",
    ),
    rule("nic_reset_failed", "tx_timeout recovery unsuccessful"),
    rule(
        "nic_tx_timeout",
        "Detected Tx Unit Hang",
        r"Detected Tx Unit Hang(?:.*?Tx Queue\s+<(?P<queue>\d+)>)?",
    ),
    rule("nic_tx_timeout", "Detected Hardware Unit Hang"),
    rule("nic_reset", "initiating reset due to tx timeout", reason="tx_timeout"),
    rule("nic_reset", "Reset adapter", drivers=_INTEL),
    # gve
    rule("nic_tx_timeout", "Timeout on tx queue, ", r"Timeout on tx queue, (?P<queue>\d+)"),
    rule(
        "nic_event_recovered",
        "Kicking queue ",
        r"Kicking queue (?P<queue>\d+)",
        drivers="gve gvnic",
    ),
    rule("nic_reset", "Performing reset", drivers="gve gvnic"),
)
