"""A real `nodescope serve`, started and stopped as a person would."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from tests.waiting import wait_for

NODESCOPE = str(Path(sys.executable).with_name("nodescope"))


class Server:
    """Serves one archive; after `stop` it can be started again at the same address."""

    def __init__(self, archive: Path, options: Sequence[str] = ()) -> None:
        self.archive = archive
        self._options = options
        self.port = 0
        self.said: list[str] = []
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None

    @property
    def link(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    @property
    def rss_bytes(self) -> int:
        """What it holds in memory now."""
        assert self._process is not None
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) * 1024

    def start(self) -> None:
        """Returns when it has printed its link."""
        command = [NODESCOPE, "serve", "--archive", str(self.archive), "--port", str(self.port)]
        command += self._options
        self._process = process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._reader = threading.Thread(target=self._read, args=[process], daemon=True)
        self.said.clear()
        self._reader.start()
        try:
            self.port = wait_for(self._printed_port, "a link of nodescope serve", process=process)
        except AssertionError as error:
            self.stop()
            raise AssertionError(f"{error}: {''.join(self.said)}") from None

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.said.append(line)

    def _printed_port(self) -> int:
        found = re.search(r"https?://127\.0\.0\.1:(\d+)/", "".join(self.said))
        return int(found[1]) if found else 0

    def stop(self) -> None:
        """Returns when it has ended."""
        if self._process is None or self._reader is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(60)
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process = self._reader = None

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
