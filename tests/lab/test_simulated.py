from __future__ import annotations

import pytest

from nodescope.lab.simulated import GIVEN_UP_S, NIC, reset_lines
from nodescope.lab.steered_traffic import render_mask
from nodescope.sources.kernel_log.messages.classify import classify


def test_the_drivers_lines_are_heard_as_the_real_ones_are() -> None:
    lines = [line.removeprefix("<4>") for _, line in reset_lines(queue=3, cpu=39, held_s=5.2)]
    heard = [message for message in map(classify, lines) if message is not None]
    assert [message.kind for message in heard] == ["nic_tx_timeout", "nic_reset", "nic_reset_done"]
    assert {message.interface for message in heard} == {NIC}
    assert (heard[0].queue, heard[0].cpu) == (3, 39)


def test_the_drivers_lines_come_when_the_real_ones_do() -> None:
    pauses = [pause for pause, _ in reset_lines(queue=3, cpu=39, held_s=5.2)]
    assert 5 < GIVEN_UP_S < 6  # five seconds without a completion, looked for once a second
    assert sum(pauses) <= 1


@pytest.mark.parametrize(
    ("core", "mask"),
    [(0, "1"), (31, "80000000"), (32, "1,00000000"), (95, "80000000,00000000,00000000")],
)
def test_one_core_as_a_mask(core: int, mask: str) -> None:
    assert render_mask(core) == mask
