"""Every format of the kernel's log that is classified, with what it says.

The lines are made from the printf formats of the versions named in
`nodescope.sources.kernel_log.messages`; addresses and numbers are arbitrary.
"""

from __future__ import annotations

from typing import Any

from tests.sources.kernel_log.messages.trouble_formats import NO_TROUBLE, TROUBLES, Format


def _ena(text: str, kind: str, **says: Any) -> Format:
    said = {"driver": "ena", "device": "0000:90:00.0", "interface": "eth0", **says}
    return Format(f"ena 0000:90:00.0 eth0: {text}", kind, "eth0", said)


FORMATS: tuple[Format, ...] = (
    Format("NETDEV WATCHDOG: eno2 (xxx): transmit queue 8 timed out", "nic_tx_timeout", "eno2",
           {"driver": "xxx", "queue": 8}),
    Format("NETDEV WATCHDOG: eni1np1 (netdevsim): transmit queue 0 timed out 1975 ms",
           "nic_tx_timeout", "eni1np1",
           {"driver": "netdevsim", "queue": 0, "timed_out_ms": 1975}),
    _ena("NETDEV WATCHDOG: CPU: 56: transmit queue 11 timed out 5340 ms", "nic_tx_timeout",
         queue=11, timed_out_ms=5340, runs_timer_on=56, cpu=None),
    _ena("Transmit time out", "nic_tx_timeout"),
    _ena("TX q 11 is paused for too long (threshold 5000000). Time since last napi 5340000 usec. "
         "napi scheduled: 1", "nic_tx_timeout",
         queue=11, threshold_ms=5000, since_poll_ms=5340, poll_scheduled=True),
    _ena("TX q 11 is paused for too long (threshold 5000000). Time since last napi 5340000 usec. "
         "napi scheduled: 0. msecs since last interrupt: 5341", "nic_tx_timeout",
         queue=11, since_poll_ms=5340, since_interrupt_ms=5341, poll_scheduled=False),
    _ena("TX q 5 is paused for too long (threshold 5000000). usecs since napi 6120000. "
         "napi scheduled: 1. napi CPU: 37. msecs since interrupt: 6121", "nic_tx_timeout",
         queue=5, cpu=37, since_poll_ms=6120, since_interrupt_ms=6121, poll_scheduled=True),
    _ena("TX q 5 is paused for too long (threshold 5000000). usecs since napi 6120000. "
         "napi scheduled: 1. napi CPU: -1. msecs since interrupt: 6121", "nic_tx_timeout",
         queue=5, cpu=None),
    _ena("napi handler hasn't been called for a long time but is scheduled", "nic_poll_starved"),
    _ena("Found a Tx that wasn't completed on time, qid 4, index 787.", "nic_tx_late",
         queue=4, index=787),
    _ena("Found a Tx that wasn't completed on time, qid 2, index 0. 5756000 usecs have passed "
         "since last napi execution. Missing Tx timeout value 5000 msecs", "nic_tx_late",
         queue=2, index=0, since_poll_ms=5756, threshold_ms=5000),
    _ena("TX hasn't completed, qid 2, index 5. 5756000 usecs from last napi execution, "
         "napi scheduled: 1", "nic_tx_late",
         queue=2, index=5, since_poll_ms=5756, poll_scheduled=True),
    _ena("TX hasn't completed, qid 2, index 5. 5756 msecs since last interrupt, 5700 msecs since "
         "last napi execution, napi scheduled: 1", "nic_tx_late",
         queue=2, index=5, since_interrupt_ms=5756, since_poll_ms=5700, poll_scheduled=True),
    _ena("[1/2] 12 new missed TX completions, qid: 2, 5756 msecs since interrupt, 5700 msecs since "
         "napi, napi scheduled: 1", "nic_tx_late",
         queue=2, late=12, since_interrupt_ms=5756, since_poll_ms=5700, poll_scheduled=True),
    _ena("[2/2] qid: 2, highest TX completion pending time (msec): 5800, napi sched changes: 1, "
         "napi CPU: 37", "nic_tx_late",
         queue=2, cpu=37, pending_ms=5800, poll_schedule_changes=1),
    _ena("The number of lost tx completions is above the threshold (248 > 128). Reset the device",
         "nic_tx_timeout", lost=248, lost_threshold=128, resets=True),
    _ena("The number of lost tx completion is above the threshold (248 > 128). Reset the device",
         "nic_tx_timeout", lost=248, lost_threshold=128, resets=True),
    _ena("Lost TX completions are above the threshold (248 > 128). Completion transmission "
         "timeout: 5000 (msec). 1 msecs since last interrupt, 2 msecs since last napi execution.",
         "nic_tx_timeout", lost=248, lost_threshold=128, threshold_ms=5000,
         since_interrupt_ms=1, since_poll_ms=2, resets=True),
    _ena("[1/2] Lost TX completions are above threshold (248 > 128), completion timeout: 5000 "
         "(msec), 10 msecs since interrupt, 20 msecs since napi, qid: 3", "nic_tx_timeout",
         queue=3, lost=248, since_interrupt_ms=10, since_poll_ms=20, threshold_ms=5000),
    # The driver hands the two over in the wrong order: queue 3, served by core 17.
    _ena("[2/2] qid: 17, napi CPU: 3", "nic_tx_late", queue=3, cpu=17),
    _ena("Keep alive watchdog timeout.", "nic_keepalive_lost"),
    _ena("Keep alive watchdog timeout, 6100 msecs since last keep alive.", "nic_keepalive_lost",
         since_keepalive_ms=6100),
    _ena("Trigger reset is on", "nic_reset"),
    Format("ena 0000:00:05.0: Device reset completed successfully", "nic_reset_done",
           "0000:00:05.0", {"driver": "ena", "device": "0000:00:05.0", "interface": None}),
    Format("ena 0000:00:05.0: Device reset completed successfully, Driver info: Elastic Network "
           "Adapter (ENA) v2.4.0g", "nic_reset_done", "0000:00:05.0",
           {"version": "Elastic Network Adapter (ENA) v2.4.0g"}),
    Format("ena 0000:00:05.0: Device reset completed, status: 0, Driver info: Elastic Network "
           "Adapter (ENA) v2.17.0g", "nic_reset_done", "0000:00:05.0",
           {"status": 0, "version": "Elastic Network Adapter (ENA) v2.17.0g"}),
    Format("ena 0000:00:05.0: Device reset completed, status: -62, Driver info: Elastic Network "
           "Adapter (ENA) v2.17.0g", "nic_reset_failed", "0000:00:05.0", {"status": -62}),
    Format("ena 0000:00:05.0: Restore attempt failed.", "nic_reset_failed", "0000:00:05.0", {}),
    _ena("Reset attempt failed. Can not reset the device", "nic_reset_failed"),
    Format("mlx5_core 0000:08:00.0 eth2: TX timeout detected", "nic_tx_timeout", "eth2",
           {"driver": "mlx5_core", "device": "0000:08:00.0"}),
    Format("mlx5_core 0000:08:00.0 eth2: TX timeout on queue: 4, SQ: 0x11ec, CQ: 0x146e, "
           "SQ Cons: 0x0 SQ Prod: 0x1, usecs since last trans: 21085000", "nic_tx_timeout", "eth2",
           {"queue": 4, "since_tx_ms": 21085}),
    Format("mlx5_core 0000:08:00.0 eth2: Recovered 3 eqes on EQ 0xf", "nic_event_recovered",
           "eth2", {"recovered": 3}),
    Format("mlx5_core 0000:08:00.0: poll_health:800:(pid 0): device's health compromised - "
           "reached miss count", "nic_health", "0000:08:00.0", {"driver": "mlx5_core"}),
    Format("mlx5_core 0000:08:00.0: print_health_info:424:(pid 0): Health issue observed, High "
           "temperature, severity(3) ERROR:", "nic_health", "0000:08:00.0",
           {"driver": "mlx5_core"}),
    Format("BUG: spinlock bad magic on CPU#3, kworker/3:1/211", "kernel_warning", "kernel",
           {"reason": "spinlock bad magic on CPU#3, kworker/3:1/211"}),
    Format("ixgbe 0000:05:00.0 eth2: initiating reset due to tx timeout", "nic_reset", "eth2",
           {"driver": "ixgbe", "reason": "tx_timeout"}),
    Format("ixgbe 0000:05:00.0 eth2: Detected Tx Unit Hang\n  Tx Queue             <7>\n"
           "  TDH, TDT             <0>, <5>", "nic_tx_timeout", "eth2", {"queue": 7}),
    Format("ixgbe 0000:05:00.0 eth2: Detected Tx Unit Hang", "nic_tx_timeout", "eth2",
           {"queue": None}),
    Format("e1000e 0000:00:1f.6 eno1: Detected Hardware Unit Hang:", "nic_tx_timeout", "eno1", {}),
    Format("ixgbe 0000:05:00.0 eth2: Reset adapter", "nic_reset", "eth2", {}),
    Format("i40e 0000:18:00.0 ens1f0: tx_timeout: VSI_seid: 390, Q 3, NTC: 0x10, HWB: 0x11, "
           "NTU: 0x12, TAIL: 0x12, INT: 0x0", "nic_tx_timeout", "ens1f0", {"queue": 3}),
    Format("i40e 0000:18:00.0 ens1f0: tx_timeout recovery level 1, txqueue 3", "nic_reset",
           "ens1f0", {"level": 1, "queue": 3}),
    Format("i40e 0000:18:00.0 ens1f0: tx_timeout recovery unsuccessful", "nic_reset_failed",
           "ens1f0", {}),
    Format("ice 0000:18:00.0 ens1f0: tx_timeout: VSI_num: 14, Q 3, NTC: 0x10, HW_HEAD: 0x11, "
           "NTU: 0x12, INT: 0x0", "nic_tx_timeout", "ens1f0", {"driver": "ice", "queue": 3}),
    Format("virtio_net virtio0 eth0: TX timeout on queue: 0, sq: output.0, vq: 0x1, "
           "name: output.0, 6180000 usecs ago", "nic_tx_timeout", "eth0",
           {"driver": "virtio_net", "device": "virtio0", "queue": 0, "since_tx_ms": 6180}),
    Format("gvnic 0000:00:04.0 eth0: Timeout on tx queue, 3", "nic_tx_timeout", "eth0",
           {"queue": 3}),
    Format("gvnic 0000:00:04.0 eth0: Kicking queue 3", "nic_event_recovered", "eth0",
           {"queue": 3}),
    Format("gvnic 0000:00:04.0: Performing reset", "nic_reset", "0000:00:04.0", {}),
    Format("bnxt_en 0000:3b:00.0 ens3: TX timeout detected, starting reset task!",
           "nic_tx_timeout", "ens3", {"resets": True}),
    Format("watchdog: BUG: soft lockup - CPU#58 stuck for 23s! [kworker/u146:7:707658]",
           "soft_lockup", "cpu58",
           {"cpu": 58, "stuck_s": 23, "comm": "kworker/u146:7", "pid": 707658}),
    Format("NMI watchdog: Watchdog detected hard LOCKUP on cpu 3", "hard_lockup", "cpu3",
           {"cpu": 3}),
    Format("watchdog: CPU1: Watchdog detected hard LOCKUP on cpu 3", "hard_lockup", "cpu3",
           {"cpu": 3}),
    Format("rcu: INFO: rcu_preempt self-detected stall on CPU", "rcu_stall", "kernel",
           {"flavor": "rcu_preempt"}),
    Format("rcu: INFO: rcu_sched detected stalls on CPUs/tasks:", "rcu_stall", "kernel",
           {"flavor": "rcu_sched"}),
    Format("rcu: INFO: rcu_sched detected expedited stalls on CPUs/tasks: { 3-.... } 21001 "
           "jiffies s: 533 root: 0x8/.", "rcu_stall", "cpu3", {"cpu": 3}),
    Format("rcu: rcu_preempt kthread starved for 21003 jiffies! g4361 f0x0 "
           "RCU_GP_WAIT_FQS(5) ->state=0x0 ->cpu=2", "rcu_stall", "cpu2",
           {"cpu": 2, "starved_jiffies": 21003}),
    Format("INFO: task kworker/u8:1:1234 blocked for more than 120 seconds.", "hung_task",
           "kworker/u8:1", {"pid": 1234, "blocked_s": 120}),
    Format("INFO: task dd:1234 blocked in I/O wait for more than 120 seconds.", "hung_task", "dd",
           {"pid": 1234, "blocked_s": 120}),
    Format("workqueue: drain_vmap_area_work hogged CPU for >10000us 4 times, consider switching "
           "to WQ_UNBOUND", "workqueue_hogged", "drain_vmap_area_work",
           {"hogged_ms": 10, "times": 4}),
    Format("workqueue: mlx5e_rx_dim_work [mlx5_core] hogged CPU for >10000us 5 times, consider "
           "switching to WQ_UNBOUND", "workqueue_hogged", "mlx5e_rx_dim_work", {"times": 5}),
    Format("BUG: workqueue lockup - pool cpus=3 node=0 flags=0x0 nice=0 stuck for 31s!",
           "workqueue_lockup", "kernel", {"stuck_s": 31, "pool_cpus": "3"}),
    Format("oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=cri-containerd-abc.scope,"
           "mems_allowed=0-1,oom_memcg=/kubepods.slice/x,task_memcg=/kubepods.slice/x/y,task=java,"
           "pid=123,uid=0", "oom_kill", "java",
           {"memcg": "/kubepods.slice/x", "task_memcg": "/kubepods.slice/x/y", "pid": 123,
            "uid": 0, "constraint": "CONSTRAINT_MEMCG"}),
    Format("oom-kill:constraint=CONSTRAINT_NONE,nodemask=0,2-3,cpuset=/,mems_allowed=0,2-3,"
           "global_oom,task_memcg=/user.slice,task=a, b,pid=77,uid=1000", "oom_kill", "a, b",
           {"task_memcg": "/user.slice", "pid": 77, "uid": 1000}),
    Format("Memory cgroup out of memory: Killed process 4550 (metrics-server) total-vm:834776kB, "
           "anon-rss:100100kB, file-rss:33900kB, shmem-rss:0kB, UID:65534 pgtables:300kB "
           "oom_score_adj:999", "oom_kill", "metrics-server",
           {"pid": 4550, "anonymous_bytes": 100100 * 1024, "constraint": "CONSTRAINT_MEMCG"}),
    Format("Out of memory: Killed process 4551 (stress) total-vm:834776kB, anon-rss:100100kB, "
           "file-rss:0kB", "oom_kill", "stress", {"pid": 4551}),
    # up to 5.0: the one that is killed, and before it the one that is chosen
    Format("Killed process 4552 (java) total-vm:834776kB, anon-rss:100100kB, file-rss:33900kB, "
           "shmem-rss:0kB", "oom_kill", "java", {"pid": 4552, "anonymous_bytes": 100100 * 1024}),
    Format("Killed process 4553 (java), UID 1000, total-vm:834776kB, anon-rss:8kB, file-rss:0kB",
           "oom_kill", "java", {"pid": 4553, "uid": 1000, "anonymous_bytes": 8192}),
    Format("Memory cgroup out of memory: Kill process 4554 (java) score 1987 or sacrifice child",
           "oom_kill", "java", {"pid": 4554, "score": 1987, "constraint": "CONSTRAINT_MEMCG"}),
    Format("Out of memory: Kill process 77 (a (b) c) score 12 or sacrifice child", "oom_kill",
           "a (b) c", {"pid": 77, "score": 12}),
    Format("Out of memory (oom_kill_allocating_task): Kill process 78 (a) score 0 or sacrifice "
           "child", "oom_kill", "a", {"pid": 78}),
    *TROUBLES,
)  # fmt: skip

OF_NO_KIND = (
    "",
    "oom_reaper: reaped process 4550 (java), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB",
    "systemd-journald[96]: Received client request to flush runtime journal.",
    "smpboot: CPU 1 is now offline",
    "usb 1-1: reset high-speed USB device number 2 using xhci_hcd",
    "usb 1-1: Performing reset",
    "aacraid 0000:00:05.0: Reset adapter",
    "EXT4-fs (vda): mounted filesystem with ordered data mode",
    "ena 0000:00:05.0 eth0: Local page cache is disabled for less than 16 channels",
    "INFO: task is done",
    "NETDEV WATCHDOG: what",
    *NO_TROUBLE,
)
