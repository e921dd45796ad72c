"""What systemd starts at boot: everything that the default target pulls in, and by which link.

The order is that of systemd.unit(5): `Wants=`, `Requires=`, `BindsTo=` and `Upholds=` of files and
drop-ins, and the links in `.wants`, `.requires` and `.upholds` folders. On a first boot (no
machine id, machine-id(5)) systemd applies all presets before, so that links appear that the image
does not have.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nodescope.sources.image.image_files import ImageFiles
from nodescope.sources.systemd.presets import PresetRule
from nodescope.sources.systemd.unit import Unit
from nodescope.sources.systemd.unit_files import UnitFiles
from nodescope.sources.systemd.unit_syntax import Settings

PULLS = ("Wants", "Requires", "BindsTo", "Upholds")
_INSTALL = ("WantedBy", "RequiredBy", "UpheldBy")
_TARGETS = ("default.target", "graphical.target", "multi-user.target")
_INSTALLABLE = ("service", "socket", "timer", "path", "target", "mount", "automount")
_MAX_STEPS = 100_000


@dataclass(frozen=True, slots=True)
class Pull:
    """Why systemd starts a unit: one step of the way to it."""

    parent: str
    kind: str  # link, setting, drop-in, preset or target
    path: str | None = None  # the link, the unit file or the drop-in
    rule: PresetRule | None = None  # of a preset; None: no rule covers the unit
    by_alias: bool = False  # the parent names an alias, which may point at any unit


@dataclass(frozen=True, slots=True)
class BootUnit:
    """A unit that boot starts, and the way from the default target to it."""

    unit: Unit
    pull: Pull
    chain: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BootGraph:
    """Everything that boot starts; `default` is None where there is no target to reach."""

    default: str | None
    first_boot: bool
    units: Mapping[str, BootUnit]
    pulls: Mapping[str, tuple[tuple[str, Pull], ...]]  # what each unit pulls in


def is_first_boot(files: ImageFiles) -> bool:
    """Decide whether systemd takes the next boot for the first: no machine id, or uninitialized.

    An empty file is no first boot: the id is then made for that boot only (machine-id(5)).
    """
    mode = files.mode("/etc/machine-id")
    return mode is None or files.read_text("/etc/machine-id", 64).strip() == "uninitialized"


def read_boot_graph(image: ImageFiles, files: UnitFiles, units: Mapping[str, Unit]) -> BootGraph:
    """Follow every dependency from the default target on."""
    first = is_first_boot(image)
    known = dict(units)
    links = _links(files)
    if first:
        for parent, found in _preset_links(files, known).items():
            links[parent] += found
    default = next((name for name in _TARGETS if files.fragment_of(name) is not None), None)
    if default is None:
        return BootGraph(None, first, {}, {})
    begin = files.alias_of(default)
    chains: dict[str, tuple[str, ...]] = {
        begin: (default,) if default == begin else (default, begin)
    }
    reached: dict[str, BootUnit] = {}
    pulls: dict[str, tuple[tuple[str, Pull], ...]] = {}
    pending = deque([begin])
    while pending and len(chains) < _MAX_STEPS:
        name = pending.popleft()
        pulls[name] = tuple(_pulled_by(files, name, links))
        for other, pull in pulls[name]:
            if other in chains:
                continue
            unit = known[other] = known.get(other) or files.unit(other)
            if unit.load in ("masked", "not-found"):
                continue
            chains[other] = (*chains[name], other)
            reached[other] = BootUnit(unit, pull, chains[other])
            pending.append(other)
    return BootGraph(default, first, reached, pulls)


def _links(files: UnitFiles) -> dict[str, list[tuple[str, Pull]]]:
    """Return the links of every `.wants`, `.requires` and `.upholds` folder, by who wants."""
    links: dict[str, list[tuple[str, Pull]]] = defaultdict(list)
    for name in files.names():
        for link in files.links_of(name):
            parent, other = files.alias_of(link.parent), files.alias_of(name)
            pull = Pull(parent, "link", link.path, by_alias=other != name)
            links[parent].append((other, pull))
    return links


def _preset_links(files: UnitFiles, units: Mapping[str, Unit]) -> dict[str, list[tuple[str, Pull]]]:
    """Return the links that presets make on a first boot: systemd enables, and disables nothing."""
    links: dict[str, list[tuple[str, Pull]]] = defaultdict(list)
    pending = [name for name, unit in units.items() if _is_installable(unit)]
    pending += [name for name in files.templates() if files.alias_of(name) == name]
    enabled: dict[str, PresetRule | None] = {}
    for name in pending:
        rule = files.rule_for(name)
        if rule is None or rule.verb == "enable":
            enabled[name] = rule
    for name, rule in list(enabled.items()):
        for other in files.settings(name).words("Install", "Also"):
            enabled.setdefault(files.alias_of(other), rule)
    for name, rule in enabled.items():
        settings = files.settings(name)
        for instance in _instances(name, rule, settings):
            for key in _INSTALL:
                for parent in settings.words("Install", key):
                    parent = files.alias_of(parent)
                    links[parent].append((instance, Pull(parent, "preset", rule=rule)))
    return links


def _is_installable(unit: Unit) -> bool:
    return unit.load == "loaded" and unit.suffix in _INSTALLABLE and unit.vendor != "generator"


def _instances(name: str, rule: PresetRule | None, settings: Settings) -> Iterator[str]:
    """Return the unit itself; of a template the instances that it or its preset names."""
    stem, at, suffix = name.partition("@.")
    if not at:
        yield name
        return
    default = settings.last("Install", "DefaultInstance")
    named = rule.instances if rule is not None and rule.instances else ()
    for instance in named or ((default,) if default else ()):
        yield f"{stem}@{instance}.{suffix}"


def _pulled_by(
    files: UnitFiles, name: str, links: Mapping[str, list[tuple[str, Pull]]]
) -> Iterator[tuple[str, Pull]]:
    yield from links.get(name, ())
    fragment = files.fragment_of(name)
    settings = files.settings(name)
    drop_ins: dict[str, str] = {}
    for path, content in files.drop_ins(name).items():
        added = Settings()
        added.read(content)
        for key in PULLS:
            drop_ins |= dict.fromkeys(added.words("Unit", key), path)
    for key in PULLS:
        for word in settings.words("Unit", key):
            named = expand_name(word, name)
            other = files.alias_of(named)
            if word in drop_ins:
                yield other, Pull(name, "drop-in", drop_ins[word])
            else:
                where = None if fragment is None else files.resolved(fragment.path)
                yield other, Pull(name, "setting", where, by_alias=other != named)


def expand_name(word: str, name: str) -> str:
    """Return a dependency's name with the specifiers that stand for parts of a unit's own."""
    if "%" not in word:
        return word
    stem = name.rpartition(".")[0]
    prefix, _, instance = stem.partition("@")
    parts = {"%i": instance, "%I": instance, "%p": prefix, "%n": name, "%N": stem}
    for specifier, value in parts.items():
        word = word.replace(specifier, value)
    return word


def started_by(unit: Unit, settings: Settings) -> str | None:
    """Return the service that a socket, timer or path starts; None for other units."""
    if unit.suffix not in ("socket", "timer", "path"):
        return None
    stem = unit.name.rpartition(".")[0]
    if unit.suffix == "socket" and settings.is_true("Socket", "Accept", False):
        return f"{stem.partition('@')[0]}@.service"
    return unit.triggers or f"{stem}.service"
