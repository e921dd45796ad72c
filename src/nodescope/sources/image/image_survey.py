"""Everything that an image says about its first boot: units, packages, and other starters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nodescope.sources.image.boot_containers import read_containers
from nodescope.sources.image.boot_graph import BootGraph, read_boot_graph, started_by
from nodescope.sources.image.boot_items import BootItem
from nodescope.sources.image.bus_names import read_bus_names
from nodescope.sources.image.crontabs import read_crontabs
from nodescope.sources.image.dpkg_records import read_dpkg
from nodescope.sources.image.image_files import ImageFiles
from nodescope.sources.image.init_scripts import (
    read_generators,
    read_init_scripts,
    read_lingering,
    read_local_script,
)
from nodescope.sources.image.installed import Installed, join_installed
from nodescope.sources.image.network_mounts import read_network_mounts
from nodescope.sources.image.rpm_records import read_rpm
from nodescope.sources.systemd.presets import DIRECTORIES, PresetRule
from nodescope.sources.systemd.unit import Unit
from nodescope.sources.systemd.unit_files import UnitFiles

_HELPER = "/var/lib/systemd/deb-systemd-helper-enabled"
INIT = ("/usr/lib/systemd/systemd", "/lib/systemd/systemd")


@dataclass(frozen=True, slots=True)
class ImageSurvey:
    """The facts of an image that decide what its first boot starts."""

    graph: BootGraph
    fragments: Mapping[str, str]  # the file of each unit that boot starts
    triggers: Mapping[str, str]  # the service that a socket, timer or path starts
    items: tuple[BootItem, ...]
    installed: Installed
    preset_rules: tuple[PresetRule, ...]
    helper_links: frozenset[str]  # `TARGET.wants/UNIT` that maintainer scripts of Debian made
    missing: tuple[str, ...] = field(default=())


def read_image(root: Path, units: Mapping[str, Unit]) -> ImageSurvey:
    """Read an image; `units` are those of its unit files. `SourceAbsent` if it has none."""
    image, files = ImageFiles(root), UnitFiles(root)
    graph = read_boot_graph(image, files, units)
    fragments, triggers = {}, {}
    for name, found in graph.units.items():
        fragment = files.fragment_of(name)
        if fragment is not None:
            fragments[name] = files.resolved(fragment.path)
        service = started_by(found.unit, files.settings(name))
        if service is not None:
            triggers[name] = service
    missing: list[str] = []
    is_debian = image.exists("/var/lib/dpkg/status")
    items = (
        *read_init_scripts(image, lambda name: files.fragment_of(name) is not None),
        *read_local_script(image),
        *read_crontabs(image, strict_names=is_debian),
        *read_network_mounts(image),
        *read_containers(image, missing),
        *read_generators(image),
        *read_lingering(image),
        *read_bus_names(image),
    )
    wanted = {
        *fragments.values(),
        *(pull.path for found in graph.pulls.values() for _, pull in found if pull.path),
        *(item.path for item in items),
        *(str(image.resolve(item.path)).removeprefix(str(root)) for item in items),
        *(f"/{folder}/{name}" for folder in DIRECTORIES for name in image.names(f"/{folder}")),
        *INIT,
    }
    records = (read_dpkg(image, wanted), read_rpm(image, wanted))
    installed = join_installed([each for each in records if each is not None])
    return ImageSurvey(
        graph,
        fragments,
        triggers,
        items,
        installed,
        tuple(files.preset_rules),
        frozenset(
            f"{folder}/{name}"
            for folder in image.names(_HELPER)
            if folder.endswith((".wants", ".requires"))
            for name in image.names(f"{_HELPER}/{folder}")
        ),
        (*installed.unreadable, *missing),
    )
