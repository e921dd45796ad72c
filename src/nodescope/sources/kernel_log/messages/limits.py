"""Tables and limits of the kernel that are full: net/, kernel/cgroup/pids.c, fs/file_table.c.

Some are written once (`fork rejected`, per cgroup; SYN flooding, per socket) or rarely: that a
line is absent says nothing.
"""

from __future__ import annotations

from nodescope.sources.kernel_log.messages.message import MessageRule, rule

RULES: tuple[MessageRule, ...] = (
    rule(
        "conntrack_full",
        "_conntrack: table full",
        # Another network namespace is named since 6.18.
        r"_conntrack: table full(?: in (?P<scope>netns \d+))?, dropping packet",
        about="conntrack",
        limit="conntrack",
    ),
    rule(
        "syn_queue_full",
        "ossible SYN flooding on port ",
        r"ossible SYN flooding on port (?:\S{1,64}:)?(?P<port>\d{1,5})\. ",
        about="port {port}",
    ),
    rule("tcp_memory", "TCP: out of memory", about="TCP", limit="tcp_memory"),
    rule("tcp_memory", "too many orphaned sockets", about="TCP", limit="orphans"),
    rule(
        "neighbour_full",
        " table overflow",
        r"(?:(?P<about>\w+): )?[Nn]eighbou?r table overflow",
        limit="neighbours",
    ),
    rule(
        "netdev_stuck",
        "unregister_netdevice: ",
        r"unregister_netdevice: waiting for (?P<about>\S{1,64}) to become free\. Usage count = ",
    ),
    rule(
        "pids_limit",
        "fork rejected by pids ",
        r"fork rejected by pids controller in (?P<cgroup>[^\n]{1,4096})",
        about="{cgroup}",
    ),
    rule(
        "files_exhausted",
        "VFS: file-max limit ",
        r"VFS: file-max limit (?P<most>\d{1,18}) reached",
        about="files",
        limit="files",
        scope="node",
    ),
)
