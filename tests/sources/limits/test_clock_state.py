from __future__ import annotations

import pytest

from nodescope.sources.limits.clock_state import read_clock_state


@pytest.mark.live
def test_the_kernel_answers() -> None:
    state = read_clock_state()
    assert state.maximum_error_us >= 0
    # The kernel itself gives up at sixteen seconds (NTP_PHASE_LIMIT).
    assert not state.synchronised or state.maximum_error_us <= 16_000_000
