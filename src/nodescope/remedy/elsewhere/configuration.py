"""A lasting change as files of systemd, cloud-init and Ansible."""

from __future__ import annotations

from collections.abc import Iterable

from nodescope.remedy.elsewhere.change import LastingChange


def render_preset(change: LastingChange) -> str:
    """Return a preset that keeps units off on first boot and on `systemctl preset`."""
    lines = [f"disable {unit}" for unit in change.off]
    return _file("/etc/systemd/system-preset/10-nodescope.preset", lines)


def render_drop_ins(change: LastingChange) -> str:
    """Return the drop-ins that set properties, and those that keep units off."""
    parts = []
    for unit in change.off:
        path = f"/etc/systemd/system/{unit}.d/nodescope.conf"
        parts.append(_file(path, ["[Unit]", "ConditionPathExists=/nonexistent"]))
    for unit, prop, value in change.properties:
        section = _section(unit)
        path = f"/etc/systemd/system/{unit}.d/nodescope-{prop}.conf"
        parts.append(_file(path, [f"[{section}]", f"{prop}={value}"]))
    if sysctls := _sysctls(change):
        parts.append(_file("/etc/sysctl.d/60-nodescope.conf", sysctls))
    if paths := _paths(change):
        lines = [f"w {path} - - - - {value}" for path, value in paths]
        parts.append(_file("/etc/tmpfiles.d/nodescope.conf", lines))
    return "\n".join(parts)


def render_cloud_init(change: LastingChange) -> str:
    """Return user data that writes the drop-ins before units start, and disables units."""
    lines = ["#cloud-config", "write_files:"]
    for path, content in _files(change):
        lines += [f"  - path: {path}", "    permissions: '0644'", "    content: |"]
        lines += [f"      {line}" for line in content]
    lines += ["bootcmd:", "  - [systemctl, daemon-reload]"]
    lines += [f"  - [systemctl, disable, --now, '{unit}']" for unit in change.off]
    return "\n".join(lines) + "\n"


def render_ansible(change: LastingChange) -> str:
    """Return the tasks of a playbook, which `--check` shows without doing them."""
    lines: list[str] = []
    for unit in change.off:
        lines += [f"- name: keep {unit} off", "  ansible.builtin.systemd_service:",
                  f"    name: '{unit}'", "    state: stopped", "    enabled: false"]  # fmt: skip
    for path, content in _files(change, off=False):
        lines += [f"- name: write {path}", "  ansible.builtin.copy:", f"    dest: '{path}'",
                  "    mode: '0644'", "    content: |"]  # fmt: skip
        lines += [f"      {line}" for line in content]
    if change.properties:
        lines += ["- name: read unit files anew", "  ansible.builtin.systemd_service:",
                  "    daemon_reload: true"]  # fmt: skip
    return "\n".join(lines) + "\n"


def list_files(change: LastingChange) -> list[tuple[str, list[str]]]:
    """Return every file that an image needs, with its lines."""
    return list(_files(change))


def _files(change: LastingChange, *, off: bool = True) -> Iterable[tuple[str, list[str]]]:
    if off and change.off:
        lines = [f"disable {unit}" for unit in change.off]
        yield "/etc/systemd/system-preset/10-nodescope.preset", lines
    for unit, prop, value in change.properties:
        path = f"/etc/systemd/system/{unit}.d/nodescope-{prop}.conf"
        yield path, [f"[{_section(unit)}]", f"{prop}={value}"]
    if sysctls := _sysctls(change):
        yield "/etc/sysctl.d/60-nodescope.conf", sysctls
    if paths := _paths(change):
        yield "/etc/tmpfiles.d/nodescope.conf", [f"w {p} - - - - {value}" for p, value in paths]


def _section(unit: str) -> str:
    return unit.rpartition(".")[2].capitalize()


def _sysctls(change: LastingChange) -> list[str]:
    return [f"{name} = {value}" for name, value in change.values if not name.startswith("/")]


def _paths(change: LastingChange) -> list[tuple[str, str]]:
    return [(name, value) for name, value in change.values if name.startswith("/")]


def _file(path: str, lines: list[str]) -> str:
    return "" if not lines else "\n".join((f"# {path}", *lines)) + "\n"
