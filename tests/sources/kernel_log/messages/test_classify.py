from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sources.kernel_log.messages.formats import FORMATS, OF_NO_KIND
from tests.sources.kernel_log.messages.trouble_formats import ANNOUNCED, Format

from nodescope.records.details import read_details
from nodescope.records.event import details_of_kind
from nodescope.records.event_kinds import EVENT_KINDS
from nodescope.sources.kernel_log.messages import KernelMessage, classify, join
from nodescope.sources.kernel_log.messages.classify import RULES
from nodescope.sources.kernel_log.messages.message import Speaker, parse_speaker


def said(message: KernelMessage) -> dict[str, object]:
    fields = {
        name: getattr(message, name) for name in ("driver", "device", "interface", "queue", "cpu")
    }
    return {**fields, **message.details}


@pytest.mark.parametrize("known", [*FORMATS, *ANNOUNCED], ids=lambda known: known.text[:60])
def test_each_format_says_what_it_means(known: Format) -> None:
    message = classify(known.text)
    assert message is not None
    assert (message.kind, message.subject) == (known.kind, known.subject)
    assert message.announces == (known in ANNOUNCED)
    assert said(message) | known.says == said(message)
    declared = details_of_kind(message.kind)
    assert read_details(declared, message.details).others == {}


@pytest.mark.parametrize("text", OF_NO_KIND)
def test_what_says_nothing_of_the_kind_has_none(text: str) -> None:
    assert classify(text) is None


def test_every_rule_is_shown_by_a_format() -> None:
    for rule in RULES:
        assert rule.kind in EVENT_KINDS
        assert rule.types.keys() >= rule.constants.keys()  # each detail is declared, or an error
        shown = [known for known in (*FORMATS, *ANNOUNCED) if rule.pattern.search(known.text)]
        assert shown, rule


@pytest.mark.parametrize(
    ("prefix", "speaker"),
    [
        ("ena 0000:90:00.0 eth0: ", Speaker("ena", "0000:90:00.0", "eth0")),
        ("ena 0000:90:00.0 eth0 (uninitialized): ", Speaker("ena", "0000:90:00.0", "eth0")),
        (
            "ena 0000:90:00.0 (unnamed net_device) (uninitialized): ",
            Speaker("ena", "0000:90:00.0"),
        ),
        ("ena 0000:90:00.0: ", Speaker("ena", "0000:90:00.0")),
        ("some words: ena 0000:90:00.0 eth0: ", Speaker("ena", "0000:90:00.0", "eth0")),
        ("mlx5_core 0000:08:00.0: poll:8:(pid 0): ", Speaker("mlx5_core", "0000:08:00.0")),
        ("virtio_net virtio0 eth0: ", Speaker("virtio_net", "virtio0", "eth0")),
        ("net eth7: ", Speaker(interface="eth7")),
        ("eth7: ", Speaker(interface="eth7")),
        ("", Speaker()),
        ("it is so: ", Speaker()),
    ],
)
def test_who_speaks(prefix: str, speaker: Speaker) -> None:
    assert parse_speaker(prefix) == speaker


def test_the_two_lines_of_an_oom_kill_are_one() -> None:
    first = classify(
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,"
        "oom_memcg=/a,task_memcg=/a/b,task=java,pid=12,uid=0"
    )
    killed = "Memory cgroup out of memory: Killed process {} (java) total-vm:8kB, anon-rss:4kB"
    assert first is not None
    joined = join(first, killed.format(12))
    assert joined is not None
    assert joined.details["memcg"] == "/a"
    assert joined.details["anonymous_bytes"] == 4096
    assert join(first, killed.format(13)) is None
    assert join(first, "Tasks state (memory values in pages):") is None


def test_before_5_1_the_one_chosen_and_the_one_killed_are_one() -> None:
    chosen = classify("Out of memory: Kill process 12 (java) score 900 or sacrifice child")
    killed = "Killed process {} ({}) total-vm:8kB, anon-rss:4kB, file-rss:0kB, shmem-rss:0kB"
    assert chosen is not None
    child = join(chosen, killed.format(13, "worker"))
    assert child is not None
    assert (child.subject, child.details["pid"], child.details["score"]) == ("worker", 13, 900)
    assert child.details["anonymous_bytes"] == 4096
    assert join(child, killed.format(14, "worker")) is None  # a second kill is another event
    other = "Out of memory: Kill process 15 (java) score 800 or sacrifice child"
    assert join(chosen, other) is None
    # 5.0 says where first
    where = classify(
        "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,"
        "global_oom,task_memcg=/a,task=java,pid=12,uid=0"
    )
    assert where is not None
    announced = join(where, "Out of memory: Kill process 12 (java) score 900 or sacrifice child")
    assert announced is not None
    whole = join(announced, killed.format(12, "java"))
    assert whole is not None
    assert (whole.details["task_memcg"], whole.details["virtual_bytes"]) == ("/a", 8192)


def test_lines_after_an_oom_kill_say_that_all_of_the_group_die() -> None:
    killed = classify(
        "Memory cgroup out of memory: Killed process 7 (a) total-vm:8kB, anon-rss:4kB"
    )
    assert killed is not None
    joined = join(killed, "Tasks in /a/b are going to be killed due to memory.oom.group set")
    assert joined is not None
    assert (joined.details["whole_group"], joined.details["pid"]) == (True, 7)


@pytest.mark.parametrize(
    ("line", "lock", "holder"),
    [
        ("INFO: task dd:12 is blocked on a mutex likely owned by task kworker/u8:1:77.", "mutex",
         ("kworker/u8:1", 77)),
        ("INFO: task dd:12 blocked on a semaphore likely last held by task cat:9", "semaphore",
         ("cat", 9)),
        ("INFO: task dd:12 <writer> blocked on an rw-semaphore likely owned by task cp:8 <reader>",
         "rw-semaphore", ("cp", 8)),
        ("INFO: task dd:12 is blocked on a mutex, but the owner is not found.", "mutex",
         (None, None)),
    ],
)  # fmt: skip
def test_the_line_after_a_hung_task_names_who_holds_its_lock(
    line: str, lock: str, holder: tuple[str | None, int | None]
) -> None:
    hung = classify("INFO: task dd:12 blocked for more than 8 seconds.")
    assert hung is not None
    joined = join(hung, line)
    assert joined is not None
    assert joined.details["waits_for"] == lock
    assert (joined.details.get("holder"), joined.details.get("holder_pid")) == holder
    assert join(hung, line.replace("dd:12", "dd:13")) is None
    assert join(hung, "INFO: task dd:12 blocked for more than 16 seconds.") is None


def test_the_lines_of_an_oops_are_one() -> None:
    first = classify("BUG: kernel NULL pointer dereference, address: 0000000000000040")
    assert first is not None
    second = join(first, "Oops: 0002 [#1] SMP PTI")
    assert second == first
    third = join(first, "CPU: 7 UID: 0 PID: 812 Comm: modprobe Tainted: G           OE")
    assert third is not None
    whole = join(third, "RIP: 0010:foo_init+0x12/0x40 [foo]")
    assert whole is not None
    assert (whole.subject, whole.cpu) == ("modprobe", 7)
    assert (whole.details["function"], whole.details["module"]) == ("foo_init", "foo")
    assert whole.details["pid"] == 812
    old = join(third, "RIP: 0010:[<ffffffffa0123456>]  [<ffffffffa0123456>] bar+0x1/0x2")
    arm = join(third, "pc : baz+0x1/0x2 [baz]")
    assert old is not None
    assert arm is not None
    assert (old.details["function"], arm.details["module"]) == ("bar", "baz")
    assert join(whole, "RIP: 0033:0x7f419478f46e") is None


def test_the_second_of_two_lines_names_the_device_or_the_core() -> None:
    beyond = classify("attempt to access beyond end of device")
    assert beyond is not None
    joined = join(beyond, "loop3: rw=0, want=8, limit=4")
    assert joined is not None
    assert joined.subject == "loop3"
    check = classify("[Hardware Error]: Uncorrected, software containable error.")
    assert check is not None
    named = join(
        check, "[Hardware Error]: CPU:9 (19:1:1) MC0_STATUS[Over|UE|MiscV|-]: 0xbc00080001"
    )
    assert named is not None
    assert (named.cpu, named.details["bank"], named.details["status"]) == (9, 0, "bc00080001")
    lost = classify("ena 0000:00:05.0 eth0: [1/2] Lost TX completions are above threshold (9 > 8), "
                    "completion timeout: 5 (msec), 10 msecs since interrupt, 20 msecs since napi, "
                    "qid: 3")  # fmt: skip
    assert lost is not None
    placed = join(lost, "ena 0000:00:05.0 eth0: [2/2] qid: 17, napi CPU: 3")
    assert placed is not None
    assert (placed.queue, placed.cpu) == (3, 17)
    assert join(lost, "ena 0000:00:05.0 eth0: [2/2] qid: 17, napi CPU: 4") is None


def test_the_line_after_names_the_core_that_held_up_rcu() -> None:
    stall = classify("rcu: INFO: rcu_preempt self-detected stall on CPU")
    assert stall is not None
    joined = join(stall, "rcu: \t3-....: (20999 ticks this GP) idle=b2c/1/0x4000")
    assert joined is not None
    assert (joined.cpu, joined.subject) == (3, "cpu3")
    assert join(joined, "rcu: \t4-....: (1 ticks this GP)") is None
    assert join(stall, "Sending NMI from CPU 0 to CPUs 3:") is None


@given(st.text(max_size=200), st.sampled_from(FORMATS), st.integers(0, 200))
def test_nothing_that_is_written_breaks_it(noise: str, known: Format, cut: int) -> None:
    classify(noise)
    classify(known.text[:cut] + noise)
    classify(noise + known.text)


def test_a_hostile_line_costs_no_more_than_an_honest_one() -> None:
    # Would take hours if a pattern went back over what it has read.
    for part in (",cpuset=", ",mems_allowed=", ",task_memcg=", ",task=", ",pid=1"):
        classify("oom-kill:constraint=A,nodemask=" + part * 20_000)
    classify("INFO: task " + "a:1 blocked " * 20_000)
    classify("NETDEV WATCHDOG: CPU: " + "9" * 100_000)
    for known in (*FORMATS, *ANNOUNCED):  # a line that goes on as it began, or ends so
        head, tail = known.text[: len(known.text) // 2], known.text[len(known.text) // 2 :]
        classify(head * (40_000 // len(head)))
        classify(head + " " * 40_000 + tail)
        classify(known.text + "a0:[( " * 6_000)
    assert classify("BUG: soft lockup - CPU#99999999 stuck for 9s! [a:1]") is not None
