"""A clean stop at any moment: while the kernels compile, and while a camera says nothing in each way it can."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import pytest
from power_processes import wait_for

pytestmark = pytest.mark.slow

RUN = [sys.executable, "-m", "stillwatch.tools.cli", "run", "--set", "publish.endpoint="]


def patience():
    """Return how much slower than a free machine this one is."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def children(process):
    return pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()


def stopped(process, number):
    """Send a signal; return (exit code, what was said). It must end in 5 s of a free machine."""
    began = time.monotonic()
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert time.monotonic() - began < 5.0 * patience()
    return process.returncode, said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_while_kernels_compile_leaves_no_compiler_behind(tmp_path, number):
    environment = {**os.environ, "STILLWATCH_CACHE_DIR": str(tmp_path / "cold"), "NUMBA_DISABLE_JIT": "0"}
    call = [*RUN, "synthetic:room", "--out", str(tmp_path / "run")]
    with subprocess.Popen(call, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            compilers = wait_for(lambda: children(process))
            time.sleep(1.0)  # it is at work
            code, said = stopped(process, number)
        finally:
            process.kill()
    assert (code, said) == (0, "stopped while starting: nothing was watched\n")
    assert not any(pathlib.Path(f"/proc/{pid}").exists() for pid in compilers)


def test_a_reload_while_it_starts_ends_nothing(tmp_path):
    config = tmp_path / "a.toml"
    config.write_text('[source]\nuri = "synthetic:room?n_frames=3"\n')
    with subprocess.Popen([*RUN, str(config), "--out", str(tmp_path / "run")], stderr=subprocess.PIPE) as process:
        wait_for(lambda: catches(process.pid, signal.SIGHUP) or process.poll() is not None)
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=60)
    assert process.returncode == 0


def catches(pid, number):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


# Whether the camera answers our probe, and then what the library asks first, before it says no more: of one that says
# nothing at all see ../test_run_process.py.
@pytest.mark.parametrize("answers", [[True, False], [True, True]], ids=["options", "describe"])
def test_a_stop_while_the_camera_hangs(tmp_path, answers):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        uri = f"rtsp://127.0.0.1:{listener.getsockname()[1]}/x"
        with subprocess.Popen([*RUN, uri, "--out", str(tmp_path / "run")], stderr=subprocess.PIPE, text=True) as run:
            held = []
            try:
                listener.settimeout(60.0)
                for answered in answers:
                    held.append(listener.accept()[0])
                    held[-1].settimeout(60.0)
                    held[-1].recv(4096)
                    if answered:
                        held[-1].sendall(b"RTSP/1.0 200 OK\r\nCSeq: 1\r\nPublic: DESCRIBE, SETUP, PLAY\r\n\r\n")
                code, said = stopped(run, signal.SIGTERM)
            finally:
                run.kill()
                for each in held:
                    each.close()
    assert code == 0, said
    assert "Traceback" not in said
