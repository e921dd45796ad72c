from __future__ import annotations

import shlex

import pytest

from nodescope.cli.main import build_parser
from nodescope.diagnosis.links.kernel_work import _choose
from nodescope.diagnosis.rules.mechanism import classify, load_mechanisms, parse_mechanism
from nodescope.errors import NodescopeError
from nodescope.records.action import with_names
from nodescope.records.action_words import describe_action
from nodescope.records.view_forms import render_command

READ = ["do_syscall_64", "vfs_read", "seq_read", "memcg_numa_stat_show", "mem_cgroup_nr_lru_pages"]
RECLAIM = [
    "do_user_addr_fault", "handle_mm_fault", "try_charge_memcg", "try_to_free_mem_cgroup_pages",
    "do_try_to_free_pages", "shrink_node", "mem_cgroup_iter",
]  # fmt: skip


SYSCALL = ["entry_SYSCALL_64_after_hwframe", "do_syscall_64"]
FAULT = ["asm_exc_page_fault", "exc_page_fault", "do_user_addr_fault", "handle_mm_fault",
         "__handle_mm_fault"]  # fmt: skip
READING = [*SYSCALL, "ksys_read", "vfs_read"]
CHARGE = [
    *READING, "filemap_read", "filemap_get_pages", "page_cache_ra_order", "filemap_add_folio",
    "__mem_cgroup_charge", "charge_memcg", "try_charge_memcg", "try_to_free_mem_cgroup_pages",
    "do_try_to_free_pages", "shrink_node",
]  # fmt: skip
EXIT = [*SYSCALL, "__x64_sys_exit_group", "do_group_exit", "do_exit", "__mmput", "exit_mmap",
        "unmap_vmas", "unmap_page_range", "folio_remove_rmap_ptes"]  # fmt: skip
MUNMAP = [*SYSCALL, "__x64_sys_munmap", "__vm_munmap", "do_vmi_munmap", "do_vmi_align_munmap",
          "vms_complete_munmap_vmas", "vms_clear_ptes.part.0"]  # fmt: skip
PACKET = ["handle_softirqs", "net_rx_action", "__napi_poll", "ena_io_poll", "napi_gro_receive",
          "__netif_receive_skb_one_core", "ip_rcv", "nf_hook_slow"]  # fmt: skip
CLONE = [*SYSCALL, "__do_sys_clone", "kernel_clone", "copy_process"]
WATCH = [*SYSCALL, "__x64_sys_inotify_add_watch", "fsnotify_add_mark_locked",
         "fsnotify_recalc_mask"]  # fmt: skip

# Stacks as kernels have them: where the lab's recordings hold one, it is theirs.
STACKS = [
    (READ, "memcg_walk_by_read"),
    ([*READ[:-1], "mem_cgroup_nr_lru_pages.constprop.0"], "memcg_walk_by_read"),
    (["vfs_read", "memcg_stat_show", "cgroup_rstat_flush", "cgroup_rstat_flush_locked"],
     "memcg_rstat"),
    (["worker_thread", "process_one_work", "cleanup_net", "ops_exit_list", "tcp_sk_exit_batch",
      "inet_twsk_purge"], "namespace_teardown"),
    (["nf_setsockopt", "do_ipt_set_ctl", "__do_replace", "get_counters"], "firewall_change"),
    (["nfnetlink_rcv_batch", "nf_tables_commit"], "firewall_change"),
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
    ([*WATCH, "__fsnotify_update_child_dentry_flags"], "fsnotify"),
    # Renamed by 172e422ffea2 (2024), which stable kernels have as well.
    ([*WATCH, "fsnotify_set_children_dentry_flags"], "fsnotify"),
    ([*CHARGE, "shrink_slab", "do_shrink_slab", "super_cache_count", "list_lru_count_one"],
     "slab_shrink"),
    ([*PACKET, "nft_do_chain_ipv4", "nft_do_chain"], "netfilter_rules"),
    ([*PACKET, "ipt_do_table"], "netfilter_rules"),
    (["asm_sysvec_apic_timer_interrupt", "irqentry_exit_to_user_mode", "task_work_run",
      "task_numa_work", "change_prot_numa", "change_protection", "change_pte_range"],
     "numa_balancing"),
    ([*READING, "seq_read", "seq_read_iter", "show_map", "show_map_vma", "seq_path", "d_path",
      "prepend_path"], "proc_reading"),
    ([*READING, "seq_read", "seq_read_iter", "show_smaps_rollup", "smap_gather_stats",
      "walk_page_vma", "walk_pgd_range", "smaps_pte_range"], "proc_reading"),
    ([*CLONE, "dup_mmap", "copy_page_range"], "process_start"),
    (EXIT, "process_exit"),
    # A new program takes down what was there before it.
    ([*SYSCALL, "__x64_sys_execve", "do_execveat_common.isra.0", "bprm_execve",
      "load_elf_binary", "begin_new_exec", "__mmput", "exit_mmap", "unmap_vmas"],
     "process_exit"),
    ([*MUNMAP, "unmap_vmas", "unmap_page_range"], "unmapping"),
    ([*SYSCALL, "__x64_sys_madvise", "do_madvise", "madvise_vma_behavior",
      "zap_page_range_single", "unmap_page_range"], "unmapping"),
    ([*SYSCALL, "do_readv", "vfs_readv", "do_iter_readv_writev", "get_random_bytes_user",
      "chacha_block_generic", "chacha_permute"], "random_bytes"),
    ([*FAULT, "do_swap_page", "swapin_readahead", "swap_read_folio"], "swapping"),
    ([*MUNMAP, "tlb_finish_mmu", "flush_tlb_mm_range", "native_flush_tlb_multi",
      "on_each_cpu_cond_mask", "smp_call_function_many_cond"], "tlb_shootdown"),
    ([*READING, "filemap_read", "copy_page_to_iter", "_copy_to_iter"], "file_io"),
]  # fmt: skip

# What goes nearly the same way and is something else.
NEIGHBOURS = [
    # Each write asks whether somebody watches; that is no storm of watches.
    ([*SYSCALL, "ksys_write", "vfs_write", "__fsnotify_parent"], "fsnotify"),
    ([*CHARGE, "shrink_lruvec", "shrink_inactive_list", "shrink_folio_list"], "slab_shrink"),
    ([*PACKET, "ipv4_conntrack_in", "nf_conntrack_in"], "netfilter_rules"),
    ([*SYSCALL, "__x64_sys_mprotect", "do_mprotect_pkey", "mprotect_fixup",
      "change_protection", "change_pte_range"], "numa_balancing"),
    (READ, "proc_reading"),
    (EXIT, "process_start"),
    ([*MUNMAP, "unmap_vmas", "unmap_page_range"], "process_exit"),
    (EXIT, "unmapping"),
    ([*READING, "filemap_read", "copy_page_to_iter"], "random_bytes"),
    ([*FAULT, "do_anonymous_page"], "swapping"),
    # It asks other cores as well, but to order memory.
    ([*SYSCALL, "__x64_sys_membarrier", "membarrier_private_expedited",
      "smp_call_function_many_cond"], "tlb_shootdown"),
    ([*READING, "pipe_read", "copy_page_to_iter", "_copy_to_iter"], "file_io"),
]  # fmt: skip


@pytest.mark.parametrize(("frames", "name"), STACKS)
def test_a_stack_belongs_to_its_mechanism(frames: list[str], name: str) -> None:
    found = classify(frames)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(("frames", "name"), NEIGHBOURS)
def test_a_neighbour_does_not(frames: list[str], name: str) -> None:
    found = classify(frames)
    assert found is None or found.name != name


def test_every_mechanism_has_a_stack() -> None:
    assert {name for _, name in STACKS} == {each.name for each in load_mechanisms()}


def test_what_to_check_is_a_command_of_ours() -> None:
    for mechanism in load_mechanisms():
        actions = [each.view for each in mechanism.fix if each.view is not None]
        for view in (*mechanism.check, *actions):
            program, *arguments = shlex.split(render_command(view))
            assert program == "nodescope"
            build_parser(arguments).parse_args(arguments)


def test_what_helps_is_said_of_whom_it_is_about() -> None:
    known = {each.name: each for each in load_mechanisms()}
    raise_limit = known["direct_reclaim"].fix[0]
    assert describe_action(raise_limit) == "raise the memory limit of the cgroup that reclaims"
    named = with_names(raise_limit, {"cgroup": "/a.slice", "process": "java"})
    assert describe_action(named) == "raise the memory limit of /a.slice"
    keep = with_names(known["unmapping"].fix[0], {"process": "java"})
    assert describe_action(keep) == "let java keep the memory it frees (malloc trimming)"


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


_SOUND = 'rank = 1\ntitle = "t"\nmeaning = "m"\nfunctions = ["f"]\n'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("rank = ", "Invalid value"),
        ('rank = 1\ntitle = "t"\nmeaning = "m"', "no functions"),
        ('rank = 1\ntitle = "t"\nmeaning = "m"\nfunctions = ["f"]\nneeds = "luck"', "luck"),
        ('rank = 1\ntitle = "t"\nmeaning = "m"\nfunctions = "f"', "functions is not a list"),
        ('rank = 1\ntitle = "t"\nmeaning = "m"\nfunctions = ["f"]\nwhy = 1', "unknown key 'why'"),
        ('rank = 1\nmeaning = "m"\nfunctions = ["f"]', "title"),
        (f'{_SOUND}check = ["nodescope top"]', "check is not a list of tables"),
        (f'{_SOUND}check = [{{ what = "tip" }}]', "no view 'tip'"),
        (f'{_SOUND}check = [{{ what = "top", unit = "x" }}]', "the view top takes no unit"),
        (f'{_SOUND}check = [{{ what = "top", filter = {{ frame = "(" }} }}]', "not a regular"),
        (f'{_SOUND}fix = [{{ kind = "pray" }}]', "no action 'pray'"),
        (f'{_SOUND}fix = [{{ kind = "reclaim", why = "" }}]', "an action has no 'why'"),
        (f'{_SOUND}stop = {{ kind = "stop_unit", target = "cgroup" }}', "not for a cgroup"),
    ],
)
def test_a_wrong_file_is_refused_by_name(text: str, reason: str) -> None:
    with pytest.raises(NodescopeError, match="mechanism mine:") as caught:
        parse_mechanism("mine", text)
    assert reason in str(caught.value)


def test_a_way_into_the_kernel_gives_way_to_what_is_done_there() -> None:
    known = {each.name: each for each in load_mechanisms()}
    entries = {name for name, each in known.items() if each.entry}
    assert entries == {"page_faults", "unmapping", "file_io"}
    shares = {"page_faults": (0.5, known["page_faults"]),
              "direct_reclaim": (0.4, known["direct_reclaim"])}  # fmt: skip
    assert _choose(shares) == "direct_reclaim"
    shares["direct_reclaim"] = (0.2, known["direct_reclaim"])
    assert _choose(shares) == "page_faults"
