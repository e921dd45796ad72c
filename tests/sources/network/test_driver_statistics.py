from __future__ import annotations

import pytest

from nodescope.records.event_kinds import EVENT_KINDS
from nodescope.sources.network.driver_statistics import classify_statistic


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("tx_timeout", "nic_tx_timeout"),  # ENA, and what the kernel counts
        ("tx_timeouts", "nic_tx_timeout"),  # gve
        ("tx_queue_3_tx_timeouts", "nic_tx_timeout"),  # virtio_net
        ("tx_timeout_count", "nic_tx_timeout"),  # igb
        ("port.tx_timeout", "nic_tx_timeout"),  # i40e
        ("tx_timeout.nic", "nic_tx_timeout"),  # ice
        ("suspected_poll_starvation", "nic_poll_starved"),
        ("wd_expired", "nic_keepalive_lost"),
        ("total_resets", "nic_reset"),
        ("reset_cnt", "nic_reset"),  # gve
        ("reset_fail", "nic_reset_failed"),
        ("[0]: rx_resets", None),  # bnxt: of one ring
        ("queue_5_tx_missed_tx", None),
        ("pps_allowance_exceeded", None),
        ("queue_5_tx_cnt", None),
    ],
)
def test_some_counters_count_what_the_log_tells(name: str, kind: str | None) -> None:
    assert classify_statistic(name).kind == kind
    assert kind is None or EVENT_KINDS[kind].serious
