"""Which packages and units of an image are the distribution's own base system.

No list of names decides. A package is of the base if its distribution says so (dpkg: `Essential`,
`Protected`, priority required or important; rpm: `protected.d` of dnf), if it is built from the
same source as the init system, or if such a package requires it. A unit is of the base if such a
package owns its file, or if a unit of the base names it in its own file.
"""

from __future__ import annotations

from nodescope.sources.image.image_survey import INIT, ImageSurvey
from nodescope.sources.image.installed import Installed


def find_base_packages(installed: Installed) -> set[str]:
    """Return the packages of the base system, and those that they require."""
    providers: dict[str, str] = {}
    for name, package in installed.packages.items():
        for provided in package.provides:
            providers.setdefault(provided, name)
    init = next(filter(None, map(installed.owner, INIT)), None)
    pending = [
        name
        for name, package in installed.packages.items()
        if package.essential or (init is not None and package.source == init.source)
    ]
    base: set[str] = set()
    while pending:
        name = pending.pop()
        if name in base:
            continue
        base.add(name)
        for need in installed.packages[name].needs:
            for alternative in need.split("|"):
                found = alternative if alternative in installed.packages else None
                found = found or providers.get(alternative)
                if found is not None:
                    pending.append(found)
                    break
    return base


def find_base_units(survey: ImageSurvey, base: set[str]) -> set[str]:
    """Return the started units that belong to the base system.

    A name that stands for whichever unit an alias points at (`display-manager.service`) makes
    none of them a unit of the base.
    """
    graph, fragments, triggers = survey.graph, survey.fragments, survey.triggers

    def of_base(path: str | None) -> bool:
        owner = survey.installed.owner(path)
        return owner is not None and owner.name in base

    found = {name for name, path in fragments.items() if of_base(path)}
    pending = [name for name in graph.pulls if name in found or name not in fragments]
    while pending:
        name = pending.pop()
        service = triggers.get(name)
        if name in found and service is not None and service in fragments.keys() - found:
            found.add(service)
            pending.append(service)
        for other, pull in graph.pulls.get(name, ()):
            if other in found or other not in fragments or pull.by_alias:
                continue
            if pull.kind in ("setting", "link") and of_base(pull.path):
                found.add(other)
                pending.append(other)
    return found
