"""Samples and side-band records through `perf_event_open(2)`, without the `perf` binary.

Data flows `event` (open) → `ring` (drain) → `decode` (columns) → `processes`
(who was that, in which address space) → `stacks` (which functions).
"""
