"""Crontabs of an image, as cron reads them."""

from __future__ import annotations

import pytest

from nodescope.sources.image.crontabs import parse_crontab


@pytest.mark.parametrize(
    ("line", "with_user", "expected"),
    [
        ("@reboot root /bin/a --x", True, ("@reboot", "/bin/a --x")),
        ("@reboot /bin/a", False, ("@reboot", "/bin/a")),
        ("*/5 1 * * 0\troot\tcd / && run", True, ("*/5 1 * * 0", "cd / && run")),
        ("0 3 * * * /bin/a", False, ("0 3 * * *", "/bin/a")),
        ("  # a note", True, None),
        ("MAILTO = root", True, None),
        ("PATH=/bin:/usr/bin", False, None),
        ("0 3 * * *", False, None),
        ("@reboot root", True, None),
    ],
)
def test_an_entry(line: str, with_user: bool, expected: tuple[str, str] | None) -> None:
    found = list(parse_crontab(f"\n{line}\n", with_user=with_user))
    assert found == ([] if expected is None else [(2, *expected)])
