from __future__ import annotations

import pytest

from nodescope.diagnosis.kernel_work import _choose
from nodescope.diagnosis.mechanism import classify, load_mechanisms, parse_mechanism
from nodescope.errors import NodescopeError

READ = ["do_syscall_64", "vfs_read", "seq_read", "memcg_numa_stat_show", "mem_cgroup_nr_lru_pages"]
RECLAIM = [
    "do_user_addr_fault", "handle_mm_fault", "try_charge_memcg", "try_to_free_mem_cgroup_pages",
    "do_try_to_free_pages", "shrink_node", "mem_cgroup_iter",
]  # fmt: skip


@pytest.mark.parametrize(
    ("frames", "name"),
    [
        (READ, "memcg_walk_by_read"),
        ([*READ[:-1], "mem_cgroup_nr_lru_pages.constprop.0"], "memcg_walk_by_read"),
        (RECLAIM, "memcg_walk_by_reclaim"),
        # In the function itself: from one cgroup to the next. Below it: at work.
        ([*RECLAIM[:-1], "shrink_lruvec"], "memcg_walk_by_reclaim"),
        ([*RECLAIM[:-1], "shrink_lruvec", "shrink_folio_list"], "direct_reclaim"),
        (["handle_mm_fault", "do_anonymous_page", "clear_huge_page"], "huge_page_clearing"),
        (["asm_exc_page_fault", "handle_mm_fault", "do_anonymous_page"], "page_faults"),
        (["kswapd", "balance_pgdat", "shrink_node", "shrink_folio_list"], "background_reclaim"),
        (["compact_zone", "isolate_migratepages_block"], "compaction"),
        (["vfs_read", "native_queued_spin_lock_slowpath"], "lock_contention"),
        (["cgroup_rstat_flush_locked"], "memcg_rstat"),
        (["worker_thread", "css_free_rwork_fn"], "cgroup_teardown"),
        (["net_rx_action", "ena_io_poll"], "softirq_storm"),
        (["net_rx_action", "nf_conntrack_in"], "conntrack"),
        (["__sys_bpf", "bpf_prog_test_run_skb", "bpf_test_run", "bpf_prog_0a"], "bpf_program"),
        # One that only looks at packets is part of serving them.
        (["net_rx_action", "bpf_prog_0a"], "softirq_storm"),
    ],
)
def test_a_stack_belongs_to_its_mechanism(frames: list[str], name: str) -> None:
    found = classify(frames)
    assert found is not None
    assert found.name == name


def test_a_stack_of_no_family_has_no_mechanism() -> None:
    assert classify(["do_syscall_64", "ksys_nonsense"]) is None
    assert classify([]) is None


def test_every_mechanism_says_what_it_means_and_what_helps() -> None:
    mechanisms = load_mechanisms()
    assert len(mechanisms) >= 20
    assert len({each.rank for each in mechanisms}) == len(mechanisms)
    for each in mechanisms:
        assert each.title
        assert each.meaning
        assert each.check
        assert each.fix


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("rank = ", "Invalid value"),
        ('rank = 1\ntitle = "t"\nmeaning = "m"', "no functions"),
        ('rank = 1\ntitle = "t"\nmeaning = "m"\nfunctions = ["f"]\nneeds = "luck"', "luck"),
        ('rank = 1\ntitle = "t"\nmeaning = "m"\nfunctions = "f"', "functions is not a list"),
        ('rank = 1\ntitle = "t"\nmeaning = "m"\nfunctions = ["f"]\nwhy = 1', "unknown key 'why'"),
        ('rank = 1\nmeaning = "m"\nfunctions = ["f"]', "title"),
    ],
)
def test_a_wrong_file_is_refused_by_name(text: str, reason: str) -> None:
    with pytest.raises(NodescopeError, match="mechanism mine:") as caught:
        parse_mechanism("mine", text)
    assert reason in str(caught.value)


def test_a_way_into_the_kernel_gives_way_to_what_is_done_there() -> None:
    known = {each.name: each for each in load_mechanisms()}
    assert {name for name, each in known.items() if each.entry} == {"page_faults", "file_io"}
    shares = {"page_faults": (0.5, known["page_faults"]),
              "direct_reclaim": (0.4, known["direct_reclaim"])}  # fmt: skip
    assert _choose(shares) == "direct_reclaim"
    shares["direct_reclaim"] = (0.2, known["direct_reclaim"])
    assert _choose(shares) == "page_faults"
