"""A lasting change as a step of an image's build."""

from __future__ import annotations

from nodescope.remedy.elsewhere.change import LastingChange
from nodescope.remedy.elsewhere.configuration import list_files


def render_dockerfile(change: LastingChange) -> str:
    """Return the instructions of a Dockerfile (heredocs: BuildKit, buildah 1.33)."""
    lines = []
    for path, content in list_files(change):
        lines += [f"COPY <<'END' {path}", *content, "END"]
    if change.off:
        quoted = ", ".join(f'"{unit}"' for unit in change.off)
        lines.append(f'RUN ["systemctl", "--root=/", "disable", {quoted}]')
    return "\n".join(lines) + "\n"


def render_packer(change: LastingChange) -> str:
    """Return a provisioner of Packer (HCL) with the same commands."""
    commands = []
    for path, content in list_files(change):
        folder = path.rpartition("/")[0]
        commands.append(f"install -d {folder}")
        printed = " ".join(f"'{line}'" for line in content)
        commands.append(f"printf '%s\\\\n' {printed} > {path}")
    commands += [f"systemctl disable {unit}" for unit in change.off]
    listed = ",\n".join(f'    "{each}"' for each in commands)
    return f'provisioner "shell" {{\n  inline = [\n{listed}\n  ]\n}}\n'
