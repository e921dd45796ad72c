"""dockerd's recorded answers, over a socket, and answers nobody should give."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sources.containers.daemons import RECORDED, FakeDocker, listening
from tests.waiting import wait_for

from nodescope.errors import MalformedSource, NodescopeError, SourceAbsent, SourceError
from nodescope.sources.containers.container import ContainerHappening, HappeningKind
from nodescope.sources.containers.docker import Docker, parse_event, parse_inspect
from nodescope.sources.containers.docker_files import DockerFiles, parse_config
from nodescope.sources.places import Places

FOLDER = RECORDED / "docker-20.10"
INFO = (FOLDER / "info.json").read_bytes()
LIST = (FOLDER / "list.json").read_bytes()
AGAIN = (FOLDER / "inspect-again.json").read_bytes()
KEEP = (FOLDER / "inspect-keep.json").read_bytes()
EVENTS = (FOLDER / "events.jsonl").read_bytes().splitlines()
AGAIN_ID, KEEP_ID = (json.loads(each)["Id"] for each in (AGAIN, KEEP))
NOW = 1794833000_000000000


class Clock:
    """A clock that a test moves."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def fake() -> FakeDocker:
    return FakeDocker(
        {
            "/info": INFO,
            "/containers/json": LIST,
            f"/containers/{AGAIN_ID}/json": AGAIN,
            f"/containers/{KEEP_ID}/json": KEEP,
        }
    )


@pytest.fixture
def socket_path(tmp_path: Path, fake: FakeDocker) -> Iterator[Path]:
    with listening(tmp_path / "docker.sock", fake.talk):
        yield tmp_path / "docker.sock"


def event(action: str, identifier: str, name: str, wall_ns: int, **attributes: str) -> bytes:
    actor = {"ID": identifier, "Attributes": {"name": name, "image": "looper", **attributes}}
    said = {"Type": "container", "Action": action, "Actor": actor, "timeNano": wall_ns}
    return json.dumps(said).encode()


def poll_until(docker: Docker, wall_ns: int = NOW) -> list[ContainerHappening]:
    return wait_for(lambda: docker.poll(wall_ns), "something happened")


def brief(happenings: list[ContainerHappening]) -> list[tuple[str, str | None, int | None]]:
    return [(h.kind.value, h.container.name, h.container.exit_status) for h in happenings]


def test_inspection_of_one_that_runs_and_one_that_restarts() -> None:
    keep, _ = parse_inspect(KEEP, "x")
    assert (keep.name, keep.image, keep.state) == ("keep", "looper", "running")
    assert keep.pid is not None
    assert keep.exit_status is None
    again, _ = parse_inspect(AGAIN, "x")
    assert (again.name, again.state, again.exit_status) == ("again", "restarting", 3)
    assert (again.restarts or 0) > 10
    assert again.pid is None
    assert (again.finished_wall_ns or 0) > (again.started_wall_ns or 0) > 0


def test_the_files_say_the_same_as_the_api() -> None:
    for name, inspected in (("keep", KEEP), ("again", AGAIN)):
        config = (FOLDER / f"config-{name}.json").read_bytes()
        host = (FOLDER / f"hostconfig-{name}.json").read_bytes()
        by_file, by_api = parse_config(config, host, "x")[0], parse_inspect(inspected, "x")[0]
        assert (by_file.id, by_file.name, by_file.image) == (by_api.id, by_api.name, by_api.image)
        assert (by_file.state, by_file.exit_status) == (by_api.state, by_api.exit_status)


def test_recorded_events() -> None:
    parsed = [parse_event(line, "x") for line in EVENTS]
    assert [(e.action, e.name, e.exit_status) for e in parsed if e][-2:] == [
        ("start", "again", None),
        ("die", "again", 3),
    ]
    assert None in parsed  # a network's


def test_the_first_look_says_what_there_is_and_that_nothing_happened(
    socket_path: Path, tmp_path: Path
) -> None:
    docker = Docker(socket_path, tmp_path / "proc")
    assert docker.poll(NOW) == []
    assert {each.name for each in docker.containers.values()} == {"keep", "again"}
    assert docker.containers[KEEP_ID].cgroup == f"/docker/{KEEP_ID}"
    assert docker.containers[KEEP_ID].cgroup_parent == "/docker"
    docker.close()


def test_events_become_happenings_though_their_containers_are_gone(
    socket_path: Path, fake: FakeDocker, tmp_path: Path
) -> None:
    docker = Docker(socket_path, tmp_path / "proc")
    docker.poll(NOW)
    fake.say(
        event("create", "a1", "job", 100),
        event("start", "a1", "job", 200),
        event("exec_start", "a1", "job", 250),
        event("die", "a1", "job", 700, exitCode="9"),
        event("destroy", "a1", "job", 800),
    )
    found = poll_until(docker)
    assert brief(found) == [
        ("started", "job", None),
        ("exited", "job", 9),
        ("removed", "job", None),
    ]
    assert found[1].ran_ns == 500
    assert found[0].container.cgroup == "/docker/a1"
    assert "a1" not in docker.containers
    docker.close()


def test_a_start_that_a_list_had_already_is_told_once(
    socket_path: Path, fake: FakeDocker, tmp_path: Path
) -> None:
    docker = Docker(socket_path, tmp_path / "proc")
    docker.poll(NOW)
    started = docker.containers[KEEP_ID].started_wall_ns
    ended = docker.containers[AGAIN_ID].finished_wall_ns
    assert started is not None
    assert ended is not None
    fake.say(
        event("start", KEEP_ID, "keep", started + 400_000),
        event("die", AGAIN_ID, "again", ended + 400_000, exitCode="3"),
        event("start", "a1", "job", 200),
    )
    assert brief(poll_until(docker)) == [("started", "job", None)]
    docker.close()


def test_what_no_event_told_is_found_by_the_next_list(
    socket_path: Path, fake: FakeDocker, tmp_path: Path
) -> None:
    clock = Clock()
    docker = Docker(socket_path, tmp_path / "proc", clock)
    docker.poll(NOW)
    fake.answers["/containers/json"] = json.dumps(
        [each for each in json.loads(LIST) if each["Id"] == AGAIN_ID]
    ).encode()
    assert docker.poll(NOW) == []
    clock.now_s = 100
    assert brief(docker.poll(NOW)) == [("exited", "keep", None), ("removed", "keep", None)]
    assert set(docker.containers) == {AGAIN_ID}
    docker.close()


def test_a_stream_that_ends_is_followed_again(
    socket_path: Path, fake: FakeDocker, tmp_path: Path
) -> None:
    docker = Docker(socket_path, tmp_path / "proc")
    docker.poll(NOW)
    fake.say(event("start", "a1", "job", 200))
    poll_until(docker)
    fake.hang_up()
    with pytest.raises(SourceError, match="ended the connection"):
        wait_for(lambda: docker.poll(NOW), "never")
    assert docker.poll(NOW) == []
    fake.say(event("start", "b2", "job", 900))
    assert brief(poll_until(docker)) == [("started", "job", None)]
    docker.close()


def test_what_began_while_the_first_list_was_read_is_told(
    socket_path: Path, fake: FakeDocker, tmp_path: Path
) -> None:
    docker = Docker(socket_path, tmp_path / "proc")
    started, _ = parse_inspect(KEEP, "x")
    assert started.started_wall_ns is not None
    docker.poll(started.started_wall_ns - 1)
    fake.say(event("start", KEEP_ID, "keep", started.started_wall_ns + 400_000))
    assert brief(poll_until(docker)) == [("started", "keep", None)]
    docker.close()


def test_the_stream_is_asked_for_from_where_it_broke(
    socket_path: Path, fake: FakeDocker, tmp_path: Path
) -> None:
    docker = Docker(socket_path, tmp_path / "proc")
    docker.poll(5_000_000_000)
    fake.say(event("start", "a1", "job", 7_000_000_500))
    poll_until(docker)
    fake.hang_up()
    with pytest.raises(SourceError):
        wait_for(lambda: docker.poll(NOW), "never")
    docker.poll(NOW)
    assert [query["since"] for query in fake.queries] == ["5.000000000", "7.000000501"]
    docker.close()


def test_an_event_cut_in_two(socket_path: Path, fake: FakeDocker, tmp_path: Path) -> None:
    docker = Docker(socket_path, tmp_path / "proc")
    docker.poll(NOW)
    line = event("start", "a1", "job", 200) + b"\n"
    docker._take(line[:50])
    assert brief(docker._take(line[50:])) == [("started", "job", None)]
    docker.close()


def test_the_past_as_the_daemon_remembers_it(
    socket_path: Path, fake: FakeDocker, tmp_path: Path
) -> None:
    fake.answers["/events"] = b"\n".join(EVENTS)
    docker = Docker(socket_path, tmp_path / "proc")
    for _ in range(2):  # before anything was listed, and after
        found = docker.read_recent(NOW, 0)
        assert {h.container.name for h in found} == {"looping", "again"}
        assert [h.container.exit_status for h in found if h.kind is HappeningKind.EXITED] == [7, 3]
        assert all((h.ran_ns or 0) > 0 for h in found if h.kind is HappeningKind.EXITED)
        docker.poll(NOW)
    docker.close()


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/info", b"[]"),
        ("/info", b"{"),
        ("/containers/json", b"{}"),
        ("/containers/json", b"null"),
        (f"/containers/{KEEP_ID}/json", b'{"State": {}}'),
        (f"/containers/{KEEP_ID}/json", b"[" * 50_000),
    ],
)
def test_wrong_answers_are_malformed(
    socket_path: Path, fake: FakeDocker, tmp_path: Path, path: str, said: bytes
) -> None:
    fake.answers[path] = said
    docker = Docker(socket_path, tmp_path / "proc")
    with pytest.raises(MalformedSource):
        docker.poll(NOW)


def test_lists_with_nonsense_in_them_are_read_around(
    socket_path: Path, fake: FakeDocker, tmp_path: Path
) -> None:
    listed = [None, 5, [], {"Id": 7}, {"Id": "../../info", "State": "running"}, *json.loads(LIST)]
    fake.answers["/containers/json"] = json.dumps(listed).encode()
    docker = Docker(socket_path, tmp_path / "proc")
    docker.poll(NOW)
    assert set(docker.containers) == {KEEP_ID, AGAIN_ID}
    docker.close()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["State", "Config", "Id", "Name", "Actor", "Type", "Labels"]), inner
        )
    ),
    max_leaves=20,
)


@given(VALUES)
def test_any_json_gives_a_container_or_an_error_of_ours(said: object) -> None:
    content = json.dumps(said).encode()
    for parse in (parse_inspect, parse_event):
        try:
            parse(content, "x")
        except NodescopeError:
            pass  # what was to be shown


def docker_root(root: Path) -> Path:
    for name, identifier in (("keep", KEEP_ID), ("again", AGAIN_ID)):
        folder = root / "var/lib/docker/containers" / identifier
        folder.mkdir(parents=True)
        (folder / "config.v2.json").write_bytes((FOLDER / f"config-{name}.json").read_bytes())
        (folder / "hostconfig.json").write_bytes((FOLDER / f"hostconfig-{name}.json").read_bytes())
    return root / "var/lib/docker/containers"


def test_containers_by_their_files_alone(tmp_path: Path) -> None:
    folder = docker_root(tmp_path)
    (folder / "half-made").mkdir()
    files = DockerFiles(Places(root=tmp_path))
    first = files.read()
    assert {each.name for each in first.values()} == {"keep", "again"}
    assert first[AGAIN_ID].exit_status == 3
    second = files.read()
    assert all(second[identifier] is each for identifier, each in first.items())
    (folder / KEEP_ID / "config.v2.json").write_bytes(b'{"ID": "cut')
    assert set(files.read()) == {AGAIN_ID}


def test_the_data_root_as_configured(tmp_path: Path) -> None:
    docker_root(tmp_path)
    (tmp_path / "var/lib/docker").rename(tmp_path / "elsewhere")
    places = Places(root=tmp_path)
    with pytest.raises(SourceAbsent):
        DockerFiles(places).read()
    (tmp_path / "etc/docker").mkdir(parents=True)
    (tmp_path / "etc/docker/daemon.json").write_text('{"data-root": "/elsewhere"}')
    assert len(DockerFiles(places).read()) == 2


def test_a_storm_of_events_is_told_and_costs_few_questions(
    socket_path: Path, fake: FakeDocker, tmp_path: Path
) -> None:
    docker = Docker(socket_path, tmp_path / "proc")
    docker.poll(NOW)
    before = fake.asked
    storm = [event("start", f"id{n}", "job", n) for n in range(300)]
    found = docker._take(b"\n".join(storm) + b"\n")
    assert len(found) == 300
    assert fake.asked - before < 50
    docker.close()
