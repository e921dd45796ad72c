r"""Amazon's ENA driver: read in amzn-drivers, ena_linux 1.1.2 to 2.17.

`poll` stands for what the driver calls napi. Version 2.17 says late and lost
completions in two lines. Too many lost ones reset the device: the driver may write no other
line before that. The second line of *lost* ones prints the core where
it says `qid` and the queue where it says `napi CPU`
(`check_missing_comp_in_tx_queue`); the second line of *late* ones does not.
"""

from __future__ import annotations

from nodescope.sources.kernel_log.messages.message import MessageRule, rule

_NEW_AGE = (
    r"(?P<since_interrupt_ms>\d+) msecs since (?:last )?interrupt, "
    r"(?P<since_poll_ms>\d+) msecs since (?:last )?napi(?: execution)?"
)

RULES: tuple[MessageRule, ...] = (
    rule("nic_tx_timeout", "Transmit time out", drivers="ena"),  # up to 2.7.1
    rule(
        "nic_tx_timeout",
        "is paused for too long",
        # 2.7.2; with the interrupt since 2.12; with the core, and other words, since 2.17
        r"TX q (?P<queue>\d+) is paused for too long \(threshold (?P<threshold_us>\d+)\)\. "
        r"(?:Time since last napi|usecs since napi) (?P<since_poll_us>\d+)(?: usec)?\. "
        r"napi scheduled: (?P<poll_scheduled>[01])(?:\. napi CPU: (?P<cpu>-?\d+))?"
        r"(?:\. msecs since (?:last )?interrupt: (?P<since_interrupt_ms>\d+))?",
    ),
    rule(
        "nic_poll_starved",
        "napi handler hasn't been called for a long time but is scheduled",
    ),
    rule(
        "nic_tx_late",
        "Found a Tx that wasn't completed on time",
        r"Found a Tx that wasn't completed on time, qid (?P<queue>\d+), index (?P<index>\d+)\."
        r"(?: (?P<since_poll_us>\d+) usecs have passed since last napi execution\."
        r" Missing Tx timeout value (?P<threshold_ms>\d+) msecs)?",
    ),
    rule(
        "nic_tx_late",
        "TX hasn't completed",  # 2.7.2
        r"TX hasn't completed, qid:? (?P<queue>\d+), index:? (?P<index>\d+)[.,] "
        r"(?P<since_poll_us>\d+) usecs from last napi execution, "
        r"napi scheduled: (?P<poll_scheduled>[01])",
    ),
    rule(
        "nic_tx_late",
        "TX hasn't completed",  # 2.12
        r"TX hasn't completed, qid:? (?P<queue>\d+), index:? (?P<index>\d+)[.,] "
        rf"{_NEW_AGE}, napi scheduled: (?P<poll_scheduled>[01])",
    ),
    rule(
        "nic_tx_late",
        "new missed TX completions",  # 2.17
        r"\[1/2\] (?P<late>\d+) new missed TX completions, qid: (?P<queue>\d+)"
        rf"(?:, {_NEW_AGE}, napi scheduled: (?P<poll_scheduled>[01]))?",
    ),
    rule(
        "nic_tx_late",
        "highest TX completion pending time",
        r"\[2/2\] qid: (?P<queue>\d+), highest TX completion pending time \(msec\): "
        r"(?P<pending_ms>\d+), napi sched changes: (?P<poll_schedule_changes>\d+), "
        r"napi CPU: (?P<cpu>-?\d+)",
    ),
    rule(
        "nic_tx_timeout",
        "The number of lost tx completion",
        r"The number of lost tx completions? is above the threshold "
        r"\((?P<lost>\d+) > (?P<lost_threshold>\d+)\)",
        resets=True,
    ),
    rule(
        "nic_tx_timeout",
        "Lost TX completions are above",  # 2.7.2; 2.17 numbers it and adds the queue
        r"Lost TX completions are above (?:the )?threshold "
        r"\((?P<lost>\d+) > (?P<lost_threshold>\d+)\)"
        r"(?:[.,] [Cc]ompletion (?:transmission )?timeout: (?P<threshold_ms>\d+) \(msec\)"
        rf"(?:[.,] {_NEW_AGE})?(?:, qid: (?P<queue>\d+))?)?",
        resets=True,
    ),
    rule(
        "nic_tx_late",
        "[2/2] qid: ",
        r"\[2/2\] qid: (?P<cpu>-?\d+), napi CPU: (?P<queue>\d+)",  # printed the wrong way round
        resets=True,
    ),
    rule(
        "nic_keepalive_lost",
        "Keep alive watchdog timeout",  # with the time since 2.12
        r"Keep alive watchdog timeout(?:, (?P<since_keepalive_ms>\d+) msecs)?",
    ),
    rule("nic_reset", "Trigger reset is on"),
    rule(
        "nic_reset_done",
        "Device reset completed",  # since 2.13.1 with a status
        r"Device reset completed(?: successfully|, status: (?P<status>0)\b)"
        r"(?:, Driver info: (?P<version>[^\n]+))?",
    ),
    rule(
        "nic_reset_failed",
        "Device reset completed",
        r"Device reset completed, status: (?P<status>-?\d+)"
        r"(?:, Driver info: (?P<version>[^\n]+))?",
    ),
    rule("nic_reset_failed", "Restore attempt failed"),
    rule("nic_reset_failed", "Reset attempt failed. Can not reset the device"),
)
