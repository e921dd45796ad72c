"""Call traces in the shapes of several kernels, whole, interleaved and cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nodescope.quantities import SECOND_NS
from nodescope.sources.kernel_log.call_traces import CallTrace, CallTraces

_HUNG = """\
task:tar             state:D stack:0     pid:2210  tgid:2210  ppid:988    task_flags:0x400000
Call Trace:
 <TASK>
 __schedule+0x4ba/0xbc0
 ? srso_alias_return_thunk+0x5/0xfbef5
 schedule+0x27/0xf0
 rwsem_down_write_slowpath+0x2b1/0x6f0
 ext4_buffered_write_iter+0x3a/0xf0 [ext4 8f2c1d]
 entry_SYSCALL_64_after_hwframe+0x76/0x7e
RIP: 0033:0x7fc8a1d14887
RSP: 002b:00007ffc0f2 EFLAGS: 00000246 ORIG_RAX: 0000000000000001
 </TASK>
"""
_SOFT_LOCKUP = """\
CPU: 11 PID: 5521 Comm: kubelet Kdump: loaded Tainted: P           OE     5.10.0-1160
Workqueue: events_unbound flush_to_ldisc
RIP: 0010:mem_cgroup_nr_lru_pages+0x5a/0x80
Code: 48 8b
RSP: 0018:ffffb1c8 EFLAGS: 00000246
Call Trace:
 memcg_stat_show+0x1e1/0x4a0
 seq_read+0xa3/0x420
 ? __fsnotify_parent+0x2a/0x300
 vfs_read+0x9d/0x190
Code: 64
"""
_FORMER = """\
java            D ffff88103fcd3480     0 18034  17990 0x00000084
 ffff88085a2a3b78 0000000000000082 ffff880855b45c00
Call Trace:
 [<ffffffff8163a909>] schedule+0x29/0x70
 [<ffffffff8163bd96>] ? rwsem_down_read_failed+0x26/0x30
 [<ffffffff8164e2b7>] xfs_file_buffered_aio_write+0x12b/0x2a0 [xfs]
 [<ffffffff81645909>] system_call_fastpath+0x16/0x1b
"""
_FORMER_TICK = """\
CPU: 2 PID: 77 Comm: swapper/2 Not tainted 3.10.0-957.el7.x86_64 #1
Call Trace:
 <IRQ>  [<ffffffff81635429>] dump_stack+0x19/0x1b
 [<ffffffff8111d9cc>] rcu_check_callbacks+0x2c/0x60
 [<ffffffff81645c1d>] apic_timer_interrupt+0x6d/0x80
 <EOI>  [<ffffffff81052de6>] native_queued_spin_lock_slowpath+0x6/0x10
 [<ffffffff81513f52>] list_lru_walk+0xd2/0x310
"""
_ARM = """\
CPU: 6 PID: 901 Comm: containerd Not tainted 6.18.0 #1
pc : cgroup_rstat_updated+0x40/0x128
lr : __mod_memcg_state+0x50/0xc8
Call trace:
 cgroup_rstat_updated+0x40/0x128 (P)
 __mod_memcg_state+0x50/0xc8
 el0t_64_sync+0x1a0/0x1a4
Code: 91000294
"""
_ARM_TICK = """\
CPU: 1 PID: 33 Comm: spin Not tainted 5.15.0 #1
Call trace:
 dump_backtrace+0x0/0x1c0
 show_stack+0x20/0x30
 rcu_sched_clock_irq+0x7b4/0xd70
 el1_interrupt+0x34/0x60
 el1h_64_irq+0x7c/0x80
 busy_loop+0x18/0x40 [spin]
 ret_from_fork+0x10/0x20
"""
_SOFT_INTERRUPT = """\
CPU: 4 PID: 0 Comm: swapper/4 Not tainted 6.1.0 #1
RIP: 0010:__netif_receive_skb_core+0x51/0x1000
Call Trace:
 <IRQ>
 process_backlog+0x8c/0x120
 net_rx_action+0x2a2/0x360
 sysvec_apic_timer_interrupt+0x6a/0x90
 </IRQ>
 <TASK>
 asm_sysvec_apic_timer_interrupt+0x16/0x20
RIP: 0010:cpuidle_enter_state+0xc6/0x420
 cpuidle_enter+0x29/0x40
 </TASK>
"""


def _read(text: str, kind: str | None = None) -> list[CallTrace]:
    traces = CallTraces()
    found = [
        trace
        for number, line in enumerate(text.splitlines())
        for trace in traces.take(number * 1000, line, number, kind)
    ]
    return found + traces.flush()


def _only(text: str) -> CallTrace:
    (trace,) = _read(text)
    return trace


def test_a_blocked_task_shows_what_it_waits_in() -> None:
    trace = _only(_HUNG)
    assert (trace.comm, trace.pid, trace.cpu, trace.interrupted) == ("tar", 2210, None, False)
    assert trace.frames == (
        "entry_SYSCALL_64_after_hwframe", "ext4_buffered_write_iter", "rwsem_down_write_slowpath",
        "schedule", "__schedule",
    )  # fmt: skip


def test_the_function_of_the_registers_is_the_innermost() -> None:
    trace = _only(_SOFT_LOCKUP)
    assert (trace.comm, trace.pid, trace.cpu, trace.work) == ("kubelet", 5521, 11, "flush_to_ldisc")
    assert trace.frames == ("vfs_read", "seq_read", "memcg_stat_show", "mem_cgroup_nr_lru_pages")


def test_former_kernels_write_addresses_and_bare_columns() -> None:
    trace = _only(_FORMER)
    assert (trace.comm, trace.pid) == ("java", 18034)
    assert trace.frames == ("system_call_fastpath", "xfs_file_buffered_aio_write", "schedule")


def test_an_interrupt_that_came_to_print_is_left_out() -> None:
    former, arm = _only(_FORMER_TICK), _only(_ARM_TICK)
    assert former.interrupted
    assert former.frames == ("list_lru_walk", "native_queued_spin_lock_slowpath")
    assert arm.interrupted
    assert arm.frames == ("ret_from_fork", "busy_loop")


def test_an_interrupt_that_does_the_work_stays() -> None:
    trace = _only(_SOFT_INTERRUPT)
    assert not trace.interrupted
    assert trace.frames[:2] == ("cpuidle_enter", "cpuidle_enter_state")
    assert trace.frames[-2:] == ("process_backlog", "__netif_receive_skb_core")


def test_arm_names_no_section_and_no_frame_twice() -> None:
    trace = _only(_ARM)
    assert (trace.cpu, trace.pid) == (6, 901)
    assert trace.frames == ("el0t_64_sync", "__mod_memcg_state", "cgroup_rstat_updated")


def test_traces_that_follow_each_other_are_several() -> None:
    traces = _read(_HUNG + _FORMER + _ARM + _SOFT_LOCKUP)
    assert [trace.pid for trace in traces] == [2210, 18034, 901, 5521]
    assert [trace.sequence for trace in traces] == [0, 12, 19, 27]


def test_a_second_of_silence_ends_a_trace() -> None:
    traces = CallTraces()
    for line in _SOFT_LOCKUP.splitlines()[:7]:
        assert traces.take(0, line, 1) == []
    assert traces.flush(SECOND_NS) == []
    (trace,) = traces.take(2 * SECOND_NS, " vfs_read+0x9d/0x190", 9)
    assert trace.frames == ("memcg_stat_show", "mem_cgroup_nr_lru_pages")
    assert traces.flush() == []  # a frame without a header is nobody's


def test_the_caller_tells_interleaved_cores_apart() -> None:
    traces = CallTraces()
    found = []
    pairs = zip(_HUNG.splitlines(), (_ARM + "\n\n\n\n").splitlines(), strict=True)
    for number, (left, right) in enumerate(pairs):
        found += traces.take(number, left, number, None, "T77")
        found += traces.take(number, right, number, None, "C6")
    found += traces.flush()
    assert {*found} == {_only_at(_HUNG, found), _only_at(_ARM, found)}


def _only_at(text: str, found: list[CallTrace]) -> CallTrace:
    """The trace of a text alone, with the place it was found at."""
    alone = _only(text)
    (same,) = [trace for trace in found if trace.pid == alone.pid]
    return alone._replace(time_ns=same.time_ns, sequence=same.sequence)


def test_a_record_of_several_lines_is_read_line_by_line() -> None:
    traces = CallTraces()
    assert traces.take(0, _ARM, 5) + traces.flush() == [_only(_ARM)._replace(sequence=5)]
    escaped = _ARM.replace("\n", "\\n")  # as an import has it
    assert len(traces.take(0, escaped, 5) + traces.flush()) == 1


def test_memory_is_bounded() -> None:
    traces = CallTraces()
    for number in range(1000):
        traces.take(0, "Call Trace:", number, None, f"T{number}")
        traces.take(0, " f+0x1/0x2", number, None, f"T{number}")
    assert len(traces.flush()) <= 64
    traces.take(0, "Call Trace:", 0)
    for number in range(10_000):
        traces.take(0, f" f{number}+0x1/0x2", number)
    (trace,) = traces.flush()
    assert len(trace.frames) == 128
    traces.take(0, "Call Trace:", 0)
    for number in range(100):
        traces.take(0, "something else", number)
    assert traces.flush() == []


@given(
    st.lists(
        st.one_of(
            st.text(max_size=80),
            st.sampled_from(
                [line for text in (_HUNG, _ARM, _FORMER_TICK) for line in text.splitlines()]
            ),
        ),
        max_size=60,
    ),
    st.sampled_from(["", "T1", "C2"]),
)
def test_nothing_that_is_written_breaks_it(lines: list[str], caller: str) -> None:
    traces = CallTraces()
    found = []
    for number, line in enumerate(lines):
        found += traces.take(number, line, number, None, caller)
    for trace in found + traces.flush():
        assert trace.frames
        assert all(name and ";" not in name for name in trace.frames)
        assert trace.cpu is None or 0 <= trace.cpu < 1 << 15
        assert trace.pid is None or 0 <= trace.pid < 1 << 31


def test_a_hostile_line_costs_no_more_than_an_honest_one() -> None:
    for part in ("task:a ", "Workqueue: a ", "RIP: 0010:", "<a>", "[<ffffffff>] ", "a D ", "+0x1/"):
        _read("Call Trace:\n" + part * 20_000)
        _read(part * 20_000)
