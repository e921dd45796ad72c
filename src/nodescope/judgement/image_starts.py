"""What an image starts on its first boot, who put it there, and whether anybody asked for it.

An administrator asks in words: a preset of his own that names the unit, or an entry of the
allow-list. A link alone is no such word: in an image nobody can tell whether whoever builds it now
made a link, or whoever built the image below.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from nodescope.judgement.base_system import find_base_packages, find_base_units
from nodescope.sources.image.boot_graph import BootUnit, Pull
from nodescope.sources.image.boot_items import BootItem, When
from nodescope.sources.image.image_survey import ImageSurvey
from nodescope.sources.image.installed import InstalledPackage
from nodescope.sources.systemd.presets import PresetRule

_STARTERS = ("service", "socket", "timer", "path", "mount", "automount")
_WHEN = {"timer": When.SCHEDULE, "automount": When.DEMAND}
_KEPT = ("condition:", "assert:", "dependency:")
_ENABLES = re.compile(r"systemctl\b[^\n;&|]*\b(?:enable|reenable|preset)\b|update-rc\.d|chkconfig")


@dataclass(frozen=True, slots=True)
class ImageStart:
    """One thing that an image starts, and everything known about who wants it."""

    kind: str  # unit, or the kind of a `BootItem`
    name: str
    when: When
    path: str | None  # the file that is started
    line: int | None
    detail: str
    origin: str  # script, package, preset, administrator or unknown
    how: str  # the same in words
    chain: tuple[str, ...]
    package: str | None = None
    version: str | None = None
    automatic: bool | None = None  # its package was installed only because another needs it
    needed_by: tuple[str, ...] = ()
    base: bool = False
    asked: str | None = None  # the word of an administrator, in words
    kept: str | None = None  # why it does not start after all
    unsure: tuple[str, ...] = ()  # conditions that only a running system can answer

    @property
    def unasked(self) -> bool:
        """Return whether it starts although nobody asked for it."""
        return not (self.base or self.asked or self.kept or self.when is When.DEMAND)


def find_starts(survey: ImageSurvey) -> list[ImageStart]:
    """Return everything that the image starts, of the base system or not."""
    judge = _Judge(survey)
    return [*judge.units(), *judge.items()]


class _Judge:
    """Knows an image's base system."""

    def __init__(self, survey: ImageSurvey) -> None:
        self._survey = survey
        self._installed = survey.installed
        self._base = find_base_packages(survey.installed)
        self._base_units = find_base_units(survey, self._base)

    def units(self) -> Iterator[ImageStart]:
        for name, found in self._survey.graph.units.items():
            if found.unit.suffix in _STARTERS:
                yield self._unit(name, found)

    def _unit(self, name: str, found: BootUnit) -> ImageStart:
        unit = found.unit
        fragment = self._survey.fragments.get(name)
        package = self._installed.owner(fragment)
        origin, how = self._origin(name, found.pull, package)
        why = unit.why_not_started or ""
        service = self._survey.triggers.get(name)
        return ImageStart(
            "unit",
            name,
            _WHEN.get(unit.suffix, When.BOOT),
            fragment,
            None,
            f"starts {service}" if service else "",
            origin,
            how,
            found.chain,
            *self._facts(package),
            base=name in self._base_units,
            asked=self._word(name, found.pull, package),
            kept=why if why.startswith(_KEPT) else None,
            unsure=tuple(
                str(each) for each in (*unit.conditions, *unit.asserts) if each.met is None
            ),
        )

    def _facts(
        self, package: InstalledPackage | None
    ) -> tuple[str | None, str | None, bool | None, tuple[str, ...]]:
        if package is None:
            return None, None, None, ()
        called = {package.name, *package.provides}
        needed_by = sorted(
            name
            for name, each in self._installed.packages.items()
            if name != package.name
            and any(not called.isdisjoint(need.split("|")) for need in each.needs)
        )
        return package.name, package.version, package.automatic, tuple(needed_by)

    def _word(self, name: str, pull: Pull, package: InstalledPackage | None) -> str | None:
        """Return an administrator's preset that names a packaged unit; None if there is none."""
        rule = self._rule(name, pull)
        if rule is None or package is None or rule.verb != "enable" or rule.pattern != name:
            return None
        path = rule.where.rpartition(":")[0]
        mine = path.startswith("/etc/") and self._installed.owner(path) is None
        return f"the preset `enable {name}` ({rule.where})" if mine else None

    def _rule(self, name: str, pull: Pull) -> PresetRule | None:
        if pull.rule is not None:
            return pull.rule
        return next((rule for rule in self._survey.preset_rules if rule.covers(name)), None)

    def _origin(self, name: str, pull: Pull, package: InstalledPackage | None) -> tuple[str, str]:
        if pull.kind == "preset":
            where = f"`enable {pull.rule.pattern}` ({pull.rule.where})" if pull.rule else None
            how = f"the preset {where}" if where else "the presets' default, as no rule covers it"
            return "preset", f"enabled on first boot by {how}"
        if pull.kind == "setting":
            return self._by_file(pull, f"pulled in by {pull.parent}")
        if pull.kind == "drop-in":
            return self._by_file(pull, f"pulled in by {pull.parent} through {pull.path}")
        owner = self._installed.owner(pull.path)
        if owner is not None:
            return "package", f"linked by package {owner}: {pull.path}"
        return self._by_link(name, pull, package)

    def _by_file(self, pull: Pull, how: str) -> tuple[str, str]:
        owner = self._installed.owner(pull.path)
        return ("package", f"{how} (package {owner})") if owner else ("administrator", how)

    def _by_link(self, name: str, pull: Pull, package: InstalledPackage | None) -> tuple[str, str]:
        """Decide who made a link that no package owns."""
        path = pull.path or ""
        if path.rpartition("/system/")[2] in self._survey.helper_links and package is not None:
            return "script", f"enabled by the maintainer script of {package}"
        rule = self._rule(name, pull)
        if rule is not None and rule.verb == "enable":
            return "preset", f"enabled by the preset `enable {rule.pattern}` ({rule.where})"
        if package is not None and _ENABLES.search(package.scripts):
            return "script", f"enabled by the maintainer script of {package}"
        if path.startswith("/etc/") or package is not None:
            return "administrator", f"enabled by a link that no package made: {path}"
        return "unknown", f"enabled by a link that no package made: {path}"

    def items(self) -> Iterator[ImageStart]:
        for item in self._survey.items:
            yield self._item(item)

    def _item(self, item: BootItem) -> ImageStart:
        package = self._installed.owner(item.path)
        kept = item.kept
        chain: tuple[str, ...] = (item.name,)
        started = self._survey.graph.units
        engine = next((each for each in item.engines if each in started), None)
        if engine is not None:
            chain = (*started[engine].chain, item.name)
        elif item.engines and package is not None and kept is None:
            kept = f"{' or '.join(item.engines[:2])} does not start"
        if package is not None:
            origin, how = "package", f"comes with package {package}"
            if item.kind == "sysv" and _ENABLES.search(package.scripts):
                origin, how = "script", f"enabled by the maintainer script of {package}"
        else:
            origin, how = "unknown", f"no package owns {item.path}"
        if item.engines and engine is None and package is None:
            how += (
                f"; it waits for {' or '.join(item.engines[:2])}, which this image does not start"
            )
        return ImageStart(
            item.kind,
            item.name,
            item.when,
            item.path,
            item.line,
            item.detail,
            origin,
            how,
            chain,
            *self._facts(package),
            base=package is not None and package.name in self._base,
            kept=kept if package is not None or item.kind not in ("sysv", "rc-local") else None,
        )
