"""The node that a remedy reads and changes: its root, its systemd, its container engines."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from nodescope.errors import RemedyError
from nodescope.sources.places import Places
from nodescope.sources.systemd.locations import unit_root
from nodescope.sources.systemd.manager import Manager


@dataclass(slots=True)
class NodeAccess:
    """A node within reach; connections are opened when first asked for."""

    places: Places
    _manager: Manager | None = field(default=None, init=False)

    @property
    def manager(self) -> Manager:
        """Return the conversation with its systemd; `SourceError` where there is none."""
        if self._manager is None:
            self._manager = Manager.open(self.places)
        return self._manager

    @property
    def unit_root(self) -> Path:
        """Return the root below which its unit files lie; refuse where that is not known.

        A bus that was given by hand may be another system's: its files are never looked for,
        or changed, below our own root.
        """
        root = unit_root(self.places)
        if root is None:
            raise RemedyError(
                f"where the systemd at {self.places.systemd_bus} has its files is not known",
                hint="`--root DIR` names the root of that system",
            )
        return root

    @property
    def engine_places(self) -> Places:
        """Return where its container engines listen: below the root that its systemd sees."""
        return replace(self.places, root=self.unit_root)

    def close(self) -> None:
        """Close what was opened."""
        if self._manager is not None:
            self._manager.close()
            self._manager = None
