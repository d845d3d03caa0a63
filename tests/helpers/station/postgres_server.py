"""A PostgreSQL server of a test's own: made, started and thrown away; none where the machine has no PostgreSQL."""

import contextlib
import glob
import itertools
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator

MISSING = "PostgreSQL's initdb and pg_ctl are not installed (Debian: apt install postgresql)"
_numbers = itertools.count()


def find(name: str) -> str | None:
    """Return the path of one of PostgreSQL's programs, or None."""
    found = shutil.which(name) or next(iter(sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"), reverse=True)), None)
    return found


@contextlib.contextmanager
def running_server() -> Iterator[str]:
    """Yield the folder of a running server's socket. It refuses root: then it runs as nobody."""
    owner = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.getuid() == 0 else {}
    folder = pathlib.Path(tempfile.mkdtemp(prefix="pg-", dir="/dev/shm" if os.path.isdir("/dev/shm") else "/tmp"))
    if owner:
        shutil.chown(folder, "nobody")
    try:
        options = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/", **owner}
        subprocess.run([find("initdb"), "-D", folder / "data", "-A", "trust", "-U", "station", "-N"], **options)
        control = [find("pg_ctl"), "-D", folder / "data", "-w"]
        settings = f"-k {folder} -c listen_addresses= -c fsync=off -c max_connections=60 -c shared_buffers=16MB"
        subprocess.run([*control, "-o", settings, "-l", folder / "log", "start"], **options)
        try:
            yield str(folder)
        finally:
            pid = int((folder / "data" / "postmaster.pid").read_text().split()[0])
            os.kill(pid, signal.SIGQUIT)  # at once: nothing of it is kept
            while (folder / "data" / "postmaster.pid").exists():
                time.sleep(0.01)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def new_database(folder: str) -> str:
    """Return the address of a new, empty database of the server."""
    import psycopg

    name = f"station{next(_numbers)}_{os.getpid()}"
    with psycopg.connect(host=folder, user="station", dbname="postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"postgresql://station@/{name}?host={folder}"
