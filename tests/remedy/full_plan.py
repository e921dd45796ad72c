"""A plan with every part filled, for tests of its forms."""

from __future__ import annotations

from nodescope.records.action import Target
from nodescope.remedy.plan import Baseline, Fact, Plan, PlanStep, Predicted, Refused

STOP = PlanStep(
    "stop_unit", Target("unit", "agent.service"), "it loops", {"timeout_s": "90"},
    ("unit agent.service: activating (auto-restart) → inactive",),
    ("systemctl", "stop", "--", "agent.service"), "start it again, as it ran before",
    (Predicted("restarts", 0, 0, 0, "stopped, it restarts no more"),),
)  # fmt: skip
DISABLE = PlanStep(
    "disable_unit", Target("unit", "agent.service"), "so that it stays off", {},
    ("/etc/systemd/system/multi-user.target.wants/agent.service (link): removed",),
    ("systemctl", "disable", "--", "agent.service"), "put the same links back",
)  # fmt: skip
LIMIT = PlanStep(
    "set_unit_property", Target("unit", "db.service"), "killed at its limit",
    {"property": "MemoryMax", "value": "2147483648", "was": "1073741824"},
    ("MemoryMax of db.service: 1 GiB → 2 GiB",),
    ("systemctl", "set-property", "--", "db.service", "MemoryMax=2147483648"), "set it back",
)  # fmt: skip
VALUE = PlanStep(
    "set_kernel_value", Target("kernel_value", "net.netfilter.nf_conntrack_max"), "it is full",
    {"value": "524288", "was": "262144"}, ("262144 → 524288",), ("sysctl", "-w"), "write it back",
)  # fmt: skip
FREE = PlanStep(
    "delete_files", Target("mount", "/dev/shm/agent"), "they pin zombies", {"files": "[]"},
    ("4,007 files in /dev/shm/agent: deleted",), ("rm", "--"), "never",
    (Predicted("zombies", 4007, 3806, 4207, "4,007 files"),), consent="/dev/shm/agent",
)  # fmt: skip


def make_plan(*steps: PlanStep) -> Plan:
    """Return a plan of a node that does not exist."""
    return Plan(
        node="node-1", boot="b" * 36, made_ns=1_794_886_175_000_000_000,
        expires_ns=1_794_889_775_000_000_000,
        rests_on=(Fact("unit_file", "agent.service", "sha256:ab"), Fact("boot", "", "b" * 36)),
        steps=steps or (STOP, DISABLE, LIMIT, VALUE, FREE),
        refused=(Refused(Target("unit", "kubelet.service"), "12 pods run in it", "kubelet.service"),
                 Refused(Target("container", "web", "default/web"), "a pod declares it")),
        cannot=("a reboot clears all 4,206 zombies",),
        baselines=(Baseline("unit_restarts", "agent.service", "mechanism", 12, 13.0),
                   Baseline("zombies", "node", "mechanism", 4206, 13.0, 1.5)),
        elsewhere={"preset": "disable agent.service\n"}, archive="/var/lib/nodescope",
    )  # fmt: skip
