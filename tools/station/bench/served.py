"""A station in a process of its own: started on settings, asked for pages, looked at from outside, ended.

Used by tools/station/bench. It takes the figures from the kernel, not from the station.
"""

import http.client
import os
import pathlib
import signal
import subprocess
import sys
import time
import urllib.parse

STARTS_WITHIN_S, ENDS_WITHIN_S = 120.0, 60.0
_TICKS_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Served:
    """One station. Used as a context; `address` is its page's."""

    def __init__(self, folder: pathlib.Path, settings: str):
        self._config, self._log = folder / "station.toml", folder / "station.log"
        self._config.write_text(settings)

    def __enter__(self) -> "Served":
        command = [sys.executable, "-m", "stillwatch.tools.cli", "station", str(self._config), "--port", "0"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith("station: "):
            self._process.kill()
            raise RuntimeError(f"the station did not start: {self._log.read_text()[-500:]}")
        self.address = line.split()[1]
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End it as a service manager does; what it heard is written."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _check(self) -> None:
        """Raise RuntimeError where it ended by itself: figures of a station that is not there are none."""
        if (code := self._process.poll()) is not None:
            raise RuntimeError(f"the station ended with {code}: {self._log.read_text()[-500:]}")

    def cpu_s(self) -> float:
        """Return the processor seconds that it has used."""
        self._check()
        fields = pathlib.Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS_S

    def rss_mb(self) -> float:
        """Return its resident memory."""
        self._check()
        return int(pathlib.Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]) * _PAGE_BYTES / 1e6

    def connection(self) -> http.client.HTTPConnection:
        """Return a connection to its page."""
        host = urllib.parse.urlsplit(self.address).netloc
        return http.client.HTTPConnection(host, timeout=60.0)


def fetch(connection: http.client.HTTPConnection, path: str) -> tuple[int, bytes, float]:
    """Return status, body and milliseconds of one request."""
    headers = {"X-Part": "1"} if path.startswith("/parts/") else {}
    for is_last in (False, False, True):
        began = time.perf_counter()
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            connection.close()  # it was idle too long, and is opened anew
            if is_last:
                raise
            continue
        break
    body = answer.read()
    return answer.status, body, 1e3 * (time.perf_counter() - began)
