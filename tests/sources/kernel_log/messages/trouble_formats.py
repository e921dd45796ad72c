"""Lines about memory, storage, limits, accelerators and hardware, in the formats of versions."""

from __future__ import annotations

from typing import Any, NamedTuple


class Format(NamedTuple):
    text: str
    kind: str
    subject: str
    says: dict[str, Any]  # fields of the message and details


_MEMORY = (
    Format("kworker/u97:3: page allocation failure: order:4, mode:0x40dc0(GFP_KERNEL|__GFP_COMP), "
           "nodemask=(null),cpuset=/,mems_allowed=0-1", "page_alloc_failed", "kworker/u97:3",
           {"order": 4, "reason": "page allocation failure"}),
    Format("swapper/3: page allocation failure: order:0, mode:0x20", "page_alloc_failed",
           "swapper/3", {"order": 0}),
    Format("SLUB: Unable to allocate memory on node -1 (gfp=0x20)", "page_alloc_failed", "kernel",
           {"reason": "Unable to allocate memory on node -1"}),
    Format("SLUB: Unable to allocate memory on CPU 7 (of node 0) on node -1, gfp=0xcc0(GFP_KERNEL)",
           "page_alloc_failed", "kernel", {}),
    Format("modprobe: vmalloc error: size 16777216, failed to allocate pages, mode:0xcc2",
           "page_alloc_failed", "modprobe", {"reason": "vmalloc error: size"}),
    Format("iptables: vmalloc: allocation failure: 8192 bytes, mode:0x24000c2",
           "page_alloc_failed", "iptables", {}),
    Format("__vm_enough_memory: pid: 8124, comm: postgres, bytes: 8589934592 not enough memory "
           "for the allocation", "page_alloc_failed", "postgres", {"pid": 8124}),
    Format("Out of memory and no killable processes...", "page_alloc_failed", "kernel", {}),
    Format("MCE 0x7f3a21: Killing qemu-kvm:5412 due to hardware memory corruption",
           "memory_poisoned", "0x7f3a21", {"comm": "qemu-kvm", "pid": 5412}),
    Format("Memory failure: 0x1a2b3c: Killing java:901 due to hardware memory corruption",
           "memory_poisoned", "0x1a2b3c", {"comm": "java", "pid": 901}),
    Format("Memory failure: 0x1a2b3c: Sending SIGBUS to a:b:902 due to hardware memory corruption",
           "memory_poisoned", "0x1a2b3c", {"comm": "a:b", "pid": 902}),
    Format("Memory failure: 0x1a2b3c: recovery action for dirty LRU page: Recovered",
           "memory_poisoned", "0x1a2b3c",
           {"reason": "recovery action for dirty LRU page: Recovered"}),
)  # fmt: skip

_FAULTS = (
    Format("BUG: unable to handle kernel NULL pointer dereference at 0000000000000018",
           "kernel_oops", "kernel", {}),
    Format("BUG: unable to handle kernel paging request at ffffc90001234000", "kernel_oops",
           "kernel", {"reason": "unable to handle kernel paging request"}),
    Format("BUG: kernel NULL pointer dereference, address: 0000000000000040", "kernel_oops",
           "kernel", {"reason": "kernel NULL pointer dereference"}),
    Format("BUG: unable to handle page fault for address: ffffffffc0a81234", "kernel_oops",
           "kernel", {"reason": "unable to handle page fault"}),
    Format("Unable to handle kernel NULL pointer dereference at virtual address 00000000000000a8",
           "kernel_oops", "kernel", {}),
    Format("kernel BUG at mm/slub.c:4092!", "kernel_oops", "mm/slub.c:4092",
           {"reason": "kernel BUG"}),
    Format("BUG: Bad page state in process kswapd0  pfn:8a2f1", "kernel_oops", "kswapd0",
           {"reason": "Bad page state"}),
    Format("BUG: Bad rss-counter state mm:00000000a1b2 type:MM_ANONPAGES val:3", "kernel_oops",
           "kernel", {}),
    Format("BUG: scheduling while atomic: kworker/3:1/412/0x00000002", "kernel_oops",
           "kworker/3:1", {"pid": 412}),
    Format("BUG: KASAN: slab-out-of-bounds in foo_read+0x12/0x340 [foo]", "kernel_oops",
           "foo_read", {"function": "foo_read", "module": "foo"}),
    Format("Oops: 0002 [#1] SMP PTI", "kernel_oops", "kernel", {"reason": "Oops"}),
    Format("general protection fault: 0000 [#2] SMP NOPTI", "kernel_oops", "kernel",
           {"reason": "general protection fault"}),
    Format("general protection fault, probably for non-canonical address 0xdead000000000108: "
           "0000 [#1] PREEMPT SMP", "kernel_oops", "kernel", {}),
    Format("Oops: general protection fault, probably for non-canonical address 0xdead000000000108: "
           "0000 [#1] SMP", "kernel_oops", "kernel", {}),
    Format("Internal error: Oops: 0000000096000006 [#1] SMP", "kernel_oops", "kernel",
           {"reason": "Internal error: Oops"}),
    Format("Kernel panic - not syncing: Fatal exception in interrupt", "kernel_panic", "kernel",
           {"reason": "Fatal exception in interrupt"}),
    Format("WARNING: CPU: 12 PID: 3301 at net/sched/sch_generic.c:525 dev_watchdog+0x23a/0x250",
           "kernel_warning", "cpu12",
           {"cpu": 12, "pid": 3301, "function": "dev_watchdog",
            "reason": "net/sched/sch_generic.c:525"}),
    Format("WARNING: CPU: 1 PID: 77 at drivers/x/y.c:9 y_probe+0x1/0x20 [y]", "kernel_warning",
           "cpu1", {"module": "y"}),
    Format("WARNING: at fs/buffer.c:1112 mark_buffer_dirty+0x8a/0xa0() (Not tainted)",
           "kernel_warning", "mark_buffer_dirty", {"function": "mark_buffer_dirty"}),
    Format("WARNING: kernel/sched/core.c:5012 at sched_foo+0x5d/0x70, CPU#3: stress-ng/8812",
           "kernel_warning", "stress-ng", {"cpu": 3, "pid": 8812}),
    Format("BUG: sleeping function called from invalid context at mm/slab.h:494", "kernel_warning",
           "kernel", {}),
    Format("train.py[48123]: segfault at 28 ip 00007f21c0d51a3b sp 00007ffe2f47f3a8 error 4 in "
           "libnccl.so.2.18.5[7f21c0a00000+8c00000]", "process_crash", "train.py",
           {"pid": 48123, "module": "libnccl.so.2.18.5", "reason": "segfault"}),
    Format("a b[7][31]: segfault at 0 ip 0000000000401136 sp 00007ffc error 6 in a.out[1136,401000"
           "+1000] likely on CPU 5 (core 2, socket 0)", "process_crash", "a b[7]",
           {"pid": 31, "cpu": 5, "module": "a.out"}),
    Format("curl[9]: segfault at 0 ip (null) sp 00007ffd", "process_crash", "curl", {"pid": 9}),
    Format("traps: python3[6120] trap divide error ip:55d0c1 sp:7ffd1 error:0 in python3.11"
           "[55d0c0000000+1f8000]", "process_crash", "python3",
           {"pid": 6120, "reason": "divide error", "module": "python3.11"}),
    Format("traps: node[77] general protection fault ip:7f01 sp:7f02 error:0", "process_crash",
           "node", {"reason": "general protection fault", "pid": 77}),
    Format("traps: x[5] trap invalid opcode ip:401136 sp:7ffe error:0 in x[401000+1000]",
           "process_crash", "x", {"reason": "invalid opcode"}),
    Format("app[412]: unhandled level 2 translation fault (11) at 0x00000000, esr 0x92000006, in "
           "libc.so[7f9000+14d000]", "process_crash", "app",
           {"pid": 412, "reason": "level 2 translation fault", "module": "libc.so"}),
)  # fmt: skip

_STORAGE = (
    Format("end_request: I/O error, dev sdb, sector 1953525168", "disk_io_error", "sdb",
           {"sector": 1953525168, "error": "I/O"}),
    Format("end_request: critical medium error, dev sdc, sector 88", "disk_io_error", "sdc",
           {"error": "critical medium"}),
    Format("print_req_error: I/O error, dev loop4, sector 16", "disk_io_error", "loop4", {}),
    Format("blk_update_request: critical target error, dev dm-3, sector 400 op 0x1:(WRITE) flags "
           "0x8800 phys_seg 12 prio class 0", "disk_io_error", "dm-3",
           {"operation": "WRITE", "error": "critical target"}),
    Format("I/O error, dev nvme1n1, sector 2048 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class",
           "disk_io_error", "nvme1n1", {"operation": "READ", "sector": 2048}),
    Format("critical space allocation error, dev loop0, sector 77 op 0x1:(WRITE) flags 0x0",
           "disk_io_error", "loop0", {"error": "critical space allocation"}),
    Format("device offline error, dev sdf, sector 0 op 0x0:(READ) flags 0x0", "disk_io_error",
           "sdf", {"error": "device offline"}),
    Format("Buffer I/O error on dev sda2, logical block 517, lost async page write",
           "disk_io_error", "sda2", {"error": "lost async page write"}),
    Format("Buffer I/O error on device vdb1, logical block 9", "disk_io_error", "vdb1", {}),
    Format("sd 2:0:1:0: rejecting I/O to offline device", "disk_io_error", "2:0:1:0",
           {"error": "rejecting I/O to offline device"}),
    Format("ata3.00: exception Emask 0x0 SAct 0x40 SErr 0x0 action 0x6 frozen", "disk_io_error",
           "ata3.00", {}),
    Format("dd: attempt to access beyond end of device\nloop7: rw=2049, sector=4096, nr_sectors = "
           "8 limit=2048", "disk_io_error", "loop7", {"comm": "dd"}),
    Format("attempt to access beyond end of device", "disk_io_error", "kernel", {}),
    Format("Read-error on swap-device (253:0:81920)", "disk_io_error", "253:0", {}),
    Format("Write-error on swap-device (8:3:1024)", "disk_io_error", "8:3", {}),
    Format("device-mapper: multipath: 253:2: Failing path 8:32.", "disk_io_error", "253:2", {}),
    Format("device-mapper: thin: 253:4: switching pool to out-of-data-space mode", "disk_io_error",
           "253:4", {}),
    Format("nvme nvme2: I/O 77 QID 12 timeout, aborting", "nvme_timeout", "nvme2",
           {"error": "timeout, aborting"}),
    Format("nvme nvme0: I/O 5 (I/O Cmd) QID 3 timeout, reset controller", "nvme_timeout", "nvme0",
           {}),
    Format("nvme nvme1: I/O tag 22 (1016) opcode 0x2 (I/O Cmd) QID 5 timeout, aborting "
           "req_op:READ(0) size:4096", "nvme_timeout", "nvme1", {"error": "timeout, aborting"}),
    Format("nvme 0000:01:00.0: I/O 2 QID 0 timeout, disable controller", "nvme_timeout",
           "0000:01:00.0", {}),
    Format("nvme nvme0: I/O 8 QID 1 timeout, completion polled", "nvme_timeout", "nvme0", {}),
    Format("nvme nvme3: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff",
           "nvme_timeout", "nvme3",
           {"error": "controller is down; will reset: CSTS=0xffffffff"}),
    Format("nvme nvme3: Disabling device after reset failure: -19", "nvme_timeout", "nvme3", {}),
    Format("nvme nvme4: Device not ready; aborting reset, CSTS=0x1", "nvme_timeout", "nvme4", {}),
    Format("block nvme0n1: no usable path - requeuing I/O", "nvme_timeout", "nvme0n1", {}),
    Format("nvme nvme0: no available path - failing I/O", "nvme_timeout", "nvme0", {}),
    Format("EXT4-fs error (device nvme1n1p1): ext4_find_entry:1683: inode #131073: comm kubelet: "
           "reading directory lblock 0", "fs_error", "nvme1n1p1",
           {"function": "ext4_find_entry", "comm": "kubelet", "file_system": "EXT4"}),
    Format("EXT4-fs error (device sdb) in ext4_reserve_inode_write:5764: Journal has aborted",
           "fs_error", "sdb", {}),
    Format("EXT4-fs warning (device nvme1n1): ext4_dirblock_csum_verify:405: inode #12: comm ls: "
           "No space for directory leaf checksum", "fs_warning", "nvme1n1", {"comm": "ls"}),
    Format("FAT-fs (sda1): error, fat_get_cluster: invalid cluster chain (i_pos 0)", "fs_error",
           "sda1", {"file_system": "FAT"}),
    Format("Aborting journal on device dm-0-8.", "fs_error", "dm-0", {"error": "Aborting journal"}),
    Format("XFS (nvme1n1): Metadata corruption detected at xfs_agf_read_verify+0x79/0xd0 [xfs]",
           "fs_error", "nvme1n1", {"file_system": "XFS"}),
    Format("XFS (dm-2): metadata I/O error in \"xfs_imap_to_bp+0x5c/0xa0\" at daddr 0x80 len 32",
           "fs_error", "dm-2", {}),
    Format("XFS (dm-2): log I/O error -5", "fs_error", "dm-2", {"error": "log I/O error"}),
    Format("BTRFS: error (device sdc: state A) in btrfs_commit_transaction:2461: errno=-5 IO "
           "failure", "fs_error", "sdc", {"file_system": "BTRFS"}),
    Format("BTRFS critical (device vdb): corrupt leaf: root=5 block=30408704", "fs_error", "vdb",
           {}),
    Format("EXT4-fs (loop3): Remounting filesystem read-only", "fs_readonly", "loop3",
           {"file_system": "EXT4"}),
    Format("FAT-fs (sda1): Filesystem has been set read-only", "fs_readonly", "sda1", {}),
    Format("BTRFS info (device sdc: state EA): forced readonly", "fs_readonly", "sdc", {}),
    Format("XFS (dm-2): Log I/O Error Detected. Shutting down filesystem", "fs_readonly", "dm-2",
           {"error": "Log I/O Error Detected"}),
    Format("XFS (sdb): Corruption of in-memory data (0x8) detected at xfs_defer_finish_noroll+0x25d"
           "/0x540 [xfs] (fs/xfs/libxfs/xfs_defer.c:504).  Shutting down filesystem.",
           "fs_readonly", "sdb", {}),
    Format("XFS (sdb): Filesystem has been shut down due to log error (0x2).", "fs_readonly", "sdb",
           {}),
    Format("nfs: server fs-0a1b.efs.eu-west-1.amazonaws.com not responding, still trying",
           "nfs_stalled", "fs-0a1b.efs.eu-west-1.amazonaws.com", {"file_system": "nfs"}),
    Format("nfs: server 10.2.3.4 not responding, timed out", "nfs_stalled", "10.2.3.4",
           {"server": "10.2.3.4"}),
    Format("nfs: server 10.2.3.4 OK", "nfs_recovered", "10.2.3.4", {}),
    Format("md/raid1:md127: Disk failure on sdb1, disabling device.", "raid_degraded", "sdb1",
           {"error": "md/raid1:md127: Disk failure"}),
    Format("md/raid0:md0: Disk failure on nvme2n1 detected, failing array.", "raid_degraded",
           "nvme2n1", {}),
    Format("CIFS: VFS: \\\\files01 has not responded in 180 seconds. Reconnecting...",
           "nfs_stalled", "files01", {"server": "files01", "file_system": "CIFS"}),
    Format("CIFS VFS: Server files01 has not responded in 120 seconds. Reconnecting...",
           "nfs_stalled", "files01", {"server": "files01"}),
    Format("ceph: mds0 hung", "nfs_stalled", "mds0", {"server": "mds0"}),
)  # fmt: skip

_LIMITS = (
    Format("nf_conntrack: nf_conntrack: table full, dropping packet", "conntrack_full",
           "conntrack", {"limit": "conntrack"}),
    Format("nf_conntrack: nf_conntrack: table full in netns 4026532345, dropping packet",
           "conntrack_full", "conntrack", {"scope": "netns 4026532345"}),
    Format("ip_conntrack: table full, dropping packet.", "conntrack_full", "conntrack", {}),
    Format("TCP: request_sock_TCP: Possible SYN flooding on port 8443. Sending cookies.  Check "
           "SNMP counters.", "syn_queue_full", "port 8443", {"port": 8443}),
    Format("TCP: request_sock_TCPv6: Possible SYN flooding on port [::]:443. Sending cookies.",
           "syn_queue_full", "port 443", {"port": 443}),
    Format("TCP: request_sock_TCP: Possible SYN flooding on port 10.0.0.7:80. Dropping request.",
           "syn_queue_full", "port 80", {}),
    Format("TCP: out of memory -- consider tuning tcp_mem", "tcp_memory", "TCP",
           {"limit": "tcp_memory"}),
    Format("TCP: too many orphaned sockets", "tcp_memory", "TCP", {"limit": "orphans"}),
    Format("neighbour: arp_cache: neighbor table overflow!", "neighbour_full", "arp_cache",
           {"limit": "neighbours"}),
    Format("ipv4: Neighbour table overflow.", "neighbour_full", "ipv4", {}),
    Format("unregister_netdevice: waiting for veth3a1 to become free. Usage count = 2",
           "netdev_stuck", "veth3a1", {}),
    Format("cgroup: fork rejected by pids controller in /system.slice/fork er.service",
           "pids_limit", "/system.slice/fork er.service",
           {"cgroup": "/system.slice/fork er.service"}),
    Format("VFS: file-max limit 810342 reached", "files_exhausted", "files",
           {"most": 810342, "limit": "files"}),
)  # fmt: skip


def _xid(text: str, kind: str, **says: Any) -> Format:
    return Format(f"NVRM: Xid (PCI:0000:8D:00): {text}", kind, "0000:8d:00.0",
                  {"device": "0000:8d:00.0", **says})  # fmt: skip


_ACCELERATORS = (
    _xid("31, pid=71234, name=python3, Ch 00000010, intr 00000000. MMU Fault: ENGINE GRAPHICS",
         "gpu_app_fault", xid=31, pid=71234, comm="python3"),
    _xid("13, Graphics SM Warp Exception on (GPC 0, TPC 0): Illegal Address", "gpu_app_fault",
         xid=13),
    _xid("45, pid='<unknown>', name=<unknown>, Ch 00000008", "gpu_app_fault", xid=45),
    _xid("45, pid=812, name=a.out, Ch 00000008, caused by previous Xid 31", "gpu_app_fault",
         pid=812, comm="a.out", previous_xid=31),
    _xid("48, pid='<unknown>', name=<unknown>, An uncorrectable double bit error (DBE) has been "
         "detected on GPU in the framebuffer at partition 4", "gpu_ecc", xid=48),
    _xid("94, pid=5512, name=ray::IDLE, Contained: SM (0x1). RST: No, D-RST: No", "gpu_ecc",
         comm="ray::IDLE"),
    _xid("63, pid='<unknown>', name=<unknown>, Row Remapper: New row marked for remapping",
         "gpu_memory_retired", xid=63),
    _xid("74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 3(0x10000)",
         "gpu_nvlink", xid=74, link=3),
    _xid("149, NETIR_LINK_EVT Fatal XC0 i0 Link 11 (0x1e2 0x0)", "gpu_nvlink", fatal=True, link=11),
    _xid("145, RLW_REMAP Nonfatal XC0 i0 Link 02 (0x4 0x0)", "gpu_nvlink", fatal=False, link=2),
    _xid("79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", "gpu_lost", xid=79),
    _xid("119, pid=9, name=nvidia-smi, Timeout after 6s of waiting for RPC response from GPU1 GSP! "
         "Expected function 76 (GSP_RM_CONTROL) (0x2080a0d7 0x4).", "gpu_hung", xid=119),
    _xid("154, pid='<unknown>', name=<unknown>, GPU recovery action changed from 0x0 (None) to 0x2 "
         "(Node Reboot Required)", "gpu_action", action="Node Reboot Required"),
    _xid("54, Auxiliary power is not connected", "gpu_action", xid=54),
    _xid("125, pid=7, name=x, Inforom fault", "gpu_error", xid=125),
    Format("NVRM: Xid (PCI:0000:3b:00 GPU-I:01 GPU-CI:00): 31, pid=4, name=b, Ch 1",
           "gpu_app_fault", "0000:3b:00.0", {"pid": 4}),
    Format("NVRM: Xid (0000:03:00): 62, 0b1c(2f8c) 00000000 00000000", "gpu_hung", "0000:03:00.0",
           {"xid": 62}),
    Format("NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.", "gpu_lost", "0000:3b:00.0", {}),
    Format("NVRM: The NVIDIA GPU 0000:3b:00.0\nNVRM: (PCI ID: 10de:20b0) installed in this system "
           "has\nNVRM: fallen off the bus and is not responding to commands.", "gpu_lost",
           "0000:3b:00.0", {}),
    Format("NVRM: fallen off the bus and is not responding to commands.", "gpu_lost", "GPU", {}),
    Format("NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x62:0x65:1860)", "gpu_hung",
           "0000:3b:00.0", {}),
    Format("nvidia-nvswitch2: SXid (PCI:0000:c3:00.0): 24007, Fatal, Link 44 sourcetrack timeout "
           "error (First)", "nvswitch_error", "0000:c3:00.0",
           {"xid": 24007, "link": 44, "fatal": True}),
    Format("nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress non-posted "
           "PRIV error (First)", "gpu_error", "0000:c1:00.0", {"fatal": False}),
    Format("neuron: NEURON_HW_ERR=HBM_UNCORRECTABLE_ERROR instance-id=i-0 nd-id=3", "gpu_ecc",
           "neuron", {}),
    Format("neuron: NEURON_HW_ERR=DMA_ERROR instance-id=i-0 nd-id=3", "gpu_hung", "neuron", {}),
    Format("amdgpu 0000:03:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=18, emitted seq=20",
           "gpu_hung", "0000:03:00.0", {}),
    Format("[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring sdma0 timeout, signaled seq=1, emitted "
           "seq=3", "gpu_hung", "amdgpu", {}),
    Format("amdgpu 0000:03:00.0: amdgpu: GPU reset(2) failed", "gpu_hung", "0000:03:00.0", {}),
)  # fmt: skip

_HARDWARE = (
    Format("mce: [Hardware Error]: CPU 22: Machine Check Exception: 5 Bank 4: be00000000800400",
           "mce", "cpu22", {"bank": 4, "status": "be00000000800400"}),
    Format("mce: [Hardware Error]: CPU 2: Machine Check: 0 Bank 7: 8c00004000010090",
           "mce_corrected", "cpu2", {"bank": 7, "corrected": True}),
    Format("[Hardware Error]: CPU 2: Machine Check: 0 Bank 7: cc00004000010090", "mce_corrected",
           "cpu2", {}),
    Format("[Hardware Error]: Uncorrected, software restartable error.", "mce", "kernel", {}),
    Format("[Hardware Error]: System Fatal error.", "mce", "kernel",
           {"severity": "System Fatal error"}),
    Format("[Hardware Error]: Corrected error, no action required.", "mce_corrected", "kernel", {}),
    Format("mce: [Hardware Error]: Machine check events logged", "mce_corrected", "kernel", {}),
    Format("EDAC MC1: 3 CE memory read error on CPU_SrcID#1_MC#0_Chan#1_DIMM#0 (channel:1 slot:0 "
           "page:0x2f81a3 offset:0x40 grain:32 syndrome:0x0)", "edac_ce",
           "CPU_SrcID#1_MC#0_Chan#1_DIMM#0", {"errors": 3, "corrected": True}),
    Format("EDAC MC0: 1 UE uncorrected error on mc#0csrow#2channel#0 (csrow:2 channel:0 page:0x12 "
           "offset:0x0 grain:0)", "edac_ue", "mc#0csrow#2channel#0", {"errors": 1}),
    Format("EDAC MC0: CE page 0x12f, offset 0x0, grain 0, syndrome 0x1, row 0, channel 1, label",
           "edac_ce", "MC0", {}),
    Format("EDAC MC0: UE page 0x12f, offset 0x0, grain 4096, row 0, labels", "edac_ue", "MC0", {}),
    Format("{1}[Hardware Error]: event severity: recoverable", "hw_error", "firmware",
           {"severity": "recoverable"}),
    Format("{7}[Hardware Error]: event severity: corrected", "hw_corrected", "firmware",
           {"corrected": True}),
    Format("pcieport 0000:d7:00.0: AER: PCIe Bus Error: severity=Corrected, type=Physical Layer, "
           "(Receiver ID)", "pcie_corrected", "0000:d7:00.0", {"severity": "Corrected"}),
    Format("nvidia 0000:8d:00.0: PCIe Bus Error: severity=Correctable, type=Data Link Layer, "
           "(Transmitter ID)", "pcie_corrected", "0000:8d:00.0", {}),
    Format("nvme 0000:01:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction "
           "Layer, (Requester ID)", "pcie_error", "0000:01:00.0",
           {"severity": "Uncorrected (Non-Fatal)"}),
    Format("pcieport 0000:d7:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Physical "
           "Layer", "pcie_error", "0000:d7:00.0", {}),
    Format("pcieport 0000:d7:00.0: AER: device recovery failed", "pcie_error", "0000:d7:00.0", {}),
    Format("pcieport 0000:3a:00.0: DPC: containment event, status:0x1f01 source:0x0000",
           "pcie_error", "0000:3a:00.0", {}),
    Format("mlx5_core 0000:08:00.0: Port module event[error]: module 0, Cable error, Bus stuck "
           "(I2C or data shorted)", "rdma_errors", "0000:08:00.0", {}),
    Format("mlx5_core 0000:08:00.0: mlx5_pcie_event:299:(pid 288): Detected insufficient power on "
           "the PCIe slot (25W).", "rdma_errors", "0000:08:00.0", {}),
    Format("mlx5_core 0000:08:00.0: poll_health:761:(pid 0): Fatal error 1 detected", "rdma_errors",
           "0000:08:00.0", {"severity": "Fatal error 1"}),
    Format("mlx5_core 0000:08:00.0: wait_func_handle_exec_timeout:1117:(pid 9): cmd[0]: "
           "ACCESS_REG(0x805) timeout. Will cause a leak of a command resource", "rdma_errors",
           "0000:08:00.0", {}),
    Format("infiniband rdmap16s27: Failed to process command CREATE_AH (opcode 5) err -12",
           "rdma_errors", "rdmap16s27", {}),
    Format("CPU11: Core temperature above threshold, cpu clock throttled (total events = 7)",
           "cpu_hot", "cpu11", {"cpu": 11}),
    Format("mce: CPU5: Package temperature is above threshold, cpu clock is throttled (total "
           "events = 1)", "cpu_hot", "cpu5", {}),
    Format("thermal thermal_zone0: critical temperature reached (108 C), shutting down", "cpu_hot",
           "thermal_zone0", {}),
    Format("clocksource: timekeeping watchdog on CPU3: Marking clocksource 'tsc' as unstable "
           "because the skew is too large:", "clocksource_unstable", "tsc", {}),
    Format("Clocksource tsc unstable (delta = -171798691852 ns)", "clocksource_unstable", "tsc",
           {}),
)  # fmt: skip

TROUBLES: tuple[Format, ...] = (
    *_MEMORY, *_FAULTS, *_STORAGE, *_LIMITS, *_ACCELERATORS, *_HARDWARE,
)  # fmt: skip

# Lines that add to an event which a later line makes
ANNOUNCED: tuple[Format, ...] = (
    Format("ray::train invoked oom-killer: gfp_mask=0x100cca(GFP_HIGHUSER_MOVABLE), order=0, "
           "oom_score_adj=984", "oom_kill", "kernel", {"asked_by": "ray::train"}),
    Format("Task in /kubepods/podab/12 killed as a result of limit of /kubepods/podab", "oom_kill",
           "kernel", {"task_memcg": "/kubepods/podab/12", "memcg": "/kubepods/podab"}),
    Format("memory: usage 1048576kB, limit 1048576kB, failcnt 81723", "oom_kill", "kernel",
           {"usage_bytes": 1 << 30, "limit_bytes": 1 << 30}),
    Format("NVRM: The NVIDIA GPU 0000:3b:00.0", "gpu_lost", "0000:3b:00.0", {}),
)  # fmt: skip

NO_TROUBLE = (
    "operation not supported error, dev loop1, sector 1024 op 0x9:(WRITE_ZEROES) flags 0x800",
    "blk_update_request: operation not supported error, dev sda, sector 8 op 0x3:(DISCARD)",
    "blk_update_request: I/O error, dev fd0, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1",
    "Buffer I/O error on dev fd0, logical block 0, async page read",
    "EXT4-fs (nvme0n1p1): mounted filesystem 7d0b r/w with ordered data mode. Quota mode: none.",
    "EXT4-fs (sda1): re-mounted 7d0b ro. Quota mode: none.",
    "XFS (nvme1n1): Mounting V5 Filesystem", "XFS (nvme1n1): Ending clean mount",
    "BTRFS info (device sda): using crc32c (crc32c-intel) checksum algorithm",
    "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.104.05",
    "NVRM: The NVIDIA GPU driver was loaded",
    "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 24007, Severity 5 Engine instance 44",
    "nvme nvme0: 8/0/0 default/read/poll queues", "nvme nvme0: pci function 0000:00:04.0",
    "mce: CPU supports 20 MCE banks", "MCE: In-kernel MCE decoding enabled.",
    "mce: CPU5: Core temperature/speed normal (total events = 1)",
    "EDAC MC0: Giving out device to module skx_edac controller Skylake Socket#0 IMC#0",
    "pcieport 0000:d7:00.0: AER: enabled with IRQ 38",
    "pcieport 0000:d7:00.0: AER: Corrected error received: 0000:d7:00.0",
    "pcieport 0000:d7:00.0: AER: device recovery successful",
    "{1}[Hardware Error]: event severity: info",
    "HEST: Table parsing has been initialized.",
    "nf_conntrack: default automatic helper assignment has been turned off",
    "TCP: Hash tables configured (established 524288 bind 65536)",
    "cgroup: fork: nothing rejected", "VFS: Disk quotas dquot_6.6.0",
    "clocksource: Switched to clocksource tsc",
    "tsc: Marking TSC unstable due to TSC halts in idle",
    "md/raid1:md0: active with 2 out of 2 mirrors", "nfs: mounting 10.0.0.1:/export",
    "memory+swap: usage 10240kB, limit 20480kB, failcnt 0", "kmem: usage 0kB, limit 9007199kB",
    "Memory: 32768K/65536K available", "Kernel command line: panic=10 oops=panic quiet",
    "Oops: is what people say", "warn_alloc: 3 callbacks suppressed",
    "traps: PANIC", "CPU: 3 PID: 8 Comm: x Not tainted 6.1.0", "Call Trace:",
    "usb 1-1: device recovery failed", "amdgpu 0000:03:00.0: amdgpu: ring gfx uses VM inv eng 0",
    "mlx5_core 0000:08:00.0: Port module event: module 0, Cable plugged",
    "Kdump: Fatal error handling enabled", "hid: Fatal error 3 detected",
)  # fmt: skip
