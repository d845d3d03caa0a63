"""The command itself, as a user or a service manager sees it: exit codes, one clear line, a clean end, real peers."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from types import SimpleNamespace

import pytest
from recordings import make_video

from stillwatch.process import RunOptions, run_agent
from stillwatch.settings import load_config
from stillwatch.tools import ground
from stillwatch.tools.cli import main
from stillwatch.transport.disk.run_folder import open_run
from stillwatch.transport.wire import Score

pytestmark = pytest.mark.slow

SMALL = "synthetic:room?n_frames={n}&width=160&height=120&seed=3"  # built at once, unlike the sea floor
FAST = ["--set", "source.width=160", "--set", "source.height=120"]


def command(*arguments):
    return [sys.executable, "-m", "stillwatch.tools.cli", *map(str, arguments)]


def finished(*arguments, timeout=120):
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=timeout, check=False)


@pytest.fixture
def started():
    """Start commands that are ended with the test, whatever happens."""
    processes = []

    def start(*arguments):
        process = subprocess.Popen(command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def called(capsys):
    """Call the command's entry point in this process; what it does to signals is undone."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}

    def call(*arguments):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as usage:  # argparse's own
            code = usage.code
        said = capsys.readouterr()
        return SimpleNamespace(returncode=code, stdout=said.out, stderr=said.err)

    yield call
    for number, handler in handlers.items():
        signal.signal(number, handler)


# One of each way to end runs as a process; the others call the same entry point, which alone makes codes and lines.
OF_A_PROCESS = [
    (["run", "--source", "/no/such/clip.mp4"], 2, "/no/such/clip.mp4"),
    (["run", "--set", "limits.memory_bytes=1000000"], 78, "limits.memory_bytes"),
    (["ground", "nonsense"], 4, "nonsense"),
    (["fly"], 2, "is no command"),
]


@pytest.mark.parametrize(("arguments", "code", "words"), OF_A_PROCESS)
def test_a_process_called_wrongly_ends_with_its_code_and_no_traceback(tmp_path, arguments, code, words):
    if arguments[0] == "run":
        arguments = [*arguments, "--out", tmp_path / "out"]
    done = finished(*arguments)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        *OF_A_PROCESS,
        (["run", "--source", "synthetic:moon"], 78, "moon"),
        (["run", "/no/such/config.toml"], 2, "/no/such/config.toml"),
        (["run", "--set", "source.width=7"], 78, "source.width: 7 is not a whole number in [32, 4096]"),
        (["run", "--set", "publish.endpoint=tcp://0.0.0.0:0"], 78, "publish.endpoint"),
        (["report", "/no/such/folder"], 2, "/no/such/folder"),
        (["ground"], 2, "ENDPOINT"),
    ],
)
def test_a_wrong_call_ends_with_its_code_and_no_traceback(tmp_path, called, arguments, code, words):
    if arguments[0] == "run":
        arguments = [*arguments, "--out", tmp_path / "out"]
    ended = called(*arguments)
    assert ended.returncode == code, ended.stderr
    assert words in ended.stderr
    assert "Traceback" not in ended.stderr


def test_what_the_ground_hears_is_what_the_run_folder_holds(tmp_path, started):
    n_frames = 50  # 5 s: longer than the pause after which a station that waited for the agent tries again
    video = make_video(tmp_path / "v.mkv", frames=n_frames, rate=10)
    endpoint = f"ipc://{tmp_path}/live"
    ground = started("ground", endpoint, "--out", tmp_path / "ground", "--until-end")
    assert "listening" in ground.stderr.readline()
    run = finished(
        "run",
        "--source",
        f"{video}?pace=1",
        *FAST,
        "--out",
        tmp_path / "run",
        "--set",
        f'publish.endpoint="{endpoint}"',
        "--set",
        "publish.control=",
    )
    assert run.returncode == 0, run.stderr
    assert ground.wait(20) == 0
    folders = {name: open_run(tmp_path / name) for name in ("run", "ground")}
    kept = {name: [k for k, _ in folder.messages()] for name, folder in folders.items()}
    assert folders["run"].summary["frames"] == n_frames
    assert kept["run"].count("score") == n_frames
    gaps = folders["ground"].summary["gaps"]
    for kind in ("alert", "model", "summary"):
        assert kept["ground"].count(kind) + gaps.get(kind, 0) >= min(kept["run"].count(kind), 1)
    assert kept["ground"].count("score") + gaps.get("score", 0) <= n_frames


def test_a_dead_camera_does_not_delay_the_end(tmp_path, started):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"rtsp://user:s3cret-word@127.0.0.1:{silent.getsockname()[1]}/x"
        run = started("run", "--source", url, "--out", tmp_path / "run", "--set", "publish.endpoint=")
        deadline = time.monotonic() + 60
        while not (tmp_path / "run" / "run.json").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1.0)
        asked = time.monotonic()
        run.send_signal(signal.SIGTERM)
        out, err = run.communicate(timeout=30)
        assert time.monotonic() - asked < 5.0
    assert run.returncode == 0
    assert "Traceback" not in err
    everything = (
        out
        + err
        + "".join(path.read_text(errors="replace") for path in (tmp_path / "run").rglob("*") if path.is_file())
    )
    assert "s3cret-word" not in everything
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["frames"] == 0


def test_a_running_agent_answers_commands_from_another_process(tmp_path, started, called):
    endpoint = f"ipc://{tmp_path}/live"
    run = started(
        "run",
        "--source",
        f"{SMALL.format(n=100_000)}",
        *FAST,
        "--out",
        tmp_path / "run",
        "--set",
        f'publish.endpoint="{endpoint}"',
    )
    control = f"{endpoint}.control"
    status = called("control", control, "status", "--deadline", 60)
    assert status.returncode == 0, status.stderr
    assert json.loads(status.stdout)["frames"] >= 0
    assert called("control", control, "set_alert_budget", "alerts_per_hour=3").returncode == 0
    refused = called("control", control, "set_alert_budget", "alerts_per_hour=-3")
    assert refused.returncode != 0
    assert "alerts_per_hour" in refused.stderr
    run.send_signal(signal.SIGINT)
    assert run.wait(10) == 0
    assert pathlib.Path(tmp_path / "run" / "summary.json").exists()


@pytest.mark.parametrize(("options", "code", "frames"), [([], 0, 10), (["--strict"], 4, None)])
def test_a_taken_port_ends_only_a_strict_run(tmp_path, called, options, code, frames):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        live = ["--set", f"publish.endpoint=tcp://127.0.0.1:{port}"]
        run = called if options else finished  # whose log goes to stderr
        done = run("run", "--source", SMALL.format(n=10), *FAST, "--out", tmp_path / "run", *live, *options)
    assert done.returncode == code, done.stderr
    assert str(port) in done.stderr
    assert "Traceback" not in done.stderr
    if frames is not None:
        assert json.loads((tmp_path / "run" / "summary.json").read_text())["frames"] == frames
        notices = [message.code for _, message in open_run(tmp_path / "run").messages({"log"})]
        assert "port_taken" in notices


def test_a_run_that_goes_on_says_so_first_and_a_second_agent_is_refused(tmp_path, started, called):
    call = ["run", "--source", SMALL.format(n=100_000), *FAST, "--out", tmp_path / "run", "--set", "publish.endpoint="]
    first = started(*call)
    wait_for(lambda: (tmp_path / "run" / "run.json").exists())
    second = called(*call)
    assert second.returncode == 78
    assert f"process {first.pid}" in second.stderr
    wait_for(lambda: any(open_run(tmp_path / "run").messages({"score"})))
    first.send_signal(signal.SIGHUP)  # as when a terminal closes: the end is an orderly one
    assert first.wait(20) == 0
    frames = json.loads((tmp_path / "run" / "summary.json").read_text())["frames"]
    again = started(*call)
    assert again.stderr.readline().startswith("goes on from 20")
    again.send_signal(signal.SIGTERM)
    assert again.wait(20) == 0
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["frames"] >= frames > 0
    other = called(*call, "--set", "agent.id=cam9")
    assert other.returncode == 78
    assert "cam9" in other.stderr


def test_a_run_that_goes_on_tells_what_it_knows_before_its_first_frame(tmp_path):
    settings = [f'source.uri="{SMALL.format(n=200)}"', "source.width=160", "source.height=120", "publish.endpoint="]
    config = load_config(None, settings)
    again = RunOptions(out=tmp_path)
    again.on_message = lambda message: again.stop.set() if isinstance(message, Score) else None
    for options in (RunOptions(out=tmp_path), again):
        assert run_agent(config, options).exit_code == 0
    messages = list(open_run(tmp_path).messages())
    (first, second) = sorted({message.epoch for _, message in messages})
    told = [(kind, message) for kind, message in messages if message.epoch == second]
    early = [told[i] for i in range([kind for kind, _ in told].index("score"))]
    before = [(kind, message) for kind, message in messages if message.epoch == first]
    whiches = {kind: sorted(m.which for k, m in early if k == kind) for kind in ("model", "clumps")}
    assert whiches == {"model": ["patches", "scenes", "topics"], "clumps": ["patches", "scenes"]}
    # The checkpoint is of before the end, where the last epoch learnt becomes active: clumps are of that one already.
    newest = {m.which: m.model_epoch for k, m in before if k == "clumps"}
    assert {m.which: m.model_epoch for k, m in early if k == "clumps"} == newest
    assert {message.id for kind, message in early if kind == "exemplar"}


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [("tcp://no-such-host.invalid:5570", "no-such-host.invalid is not known"), ("tcp://127.0.0.1:9", "refused")],
)
def test_a_station_that_never_connects_says_since_when_and_why(monkeypatch, capsys, endpoint, words):
    monkeypatch.setattr(ground, "CONNECTED_WITHIN_S", 0.3)
    station = ground.GroundStation(endpoint, keys=None, agent=None, out=None)
    assert station.listen(threading.Event(), until_end=False, seconds=1.0) == 3
    said = capsys.readouterr().err
    assert f"not connected to {endpoint} for" in said
    assert words in said
    assert "no gap" not in said


def heard(socket_, until, seconds=60.0):
    """Return all that a service manager hears, up to a message that holds `until`."""
    said = []
    deadline = time.monotonic() + seconds
    socket_.settimeout(1.0)
    while not any(until in text for text in said) and time.monotonic() < deadline:
        try:
            said.append(socket_.recv(4096).decode())
        except TimeoutError:
            continue
    return said


def test_a_service_manager_hears_of_start_frames_and_end_and_metrics_are_served(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager, socket.socket() as free:
        manager.bind(str(tmp_path / "notify"))
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        call = ["run", "--source", SMALL.format(n=100_000), *FAST, "--out", tmp_path / "run", "--log", "json"]
        run = subprocess.Popen(
            command(*call, "--set", "publish.endpoint=", "--set", f"metrics.endpoint=127.0.0.1:{port}"),
            env={**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify")},
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert heard(manager, "READY=1")
            fed = heard(manager, "WATCHDOG=1")
            assert "frames" in fed[-1]
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
                assert b"stillwatch_frames_total" in answer.read()
            asked = time.monotonic()
            run.send_signal(signal.SIGTERM)
            assert run.wait(20) == 0
            assert time.monotonic() - asked < 5.0 * max(1.0, os.getloadavg()[0] / 2)
            assert any("STOPPING=1" in text for text in heard(manager, "STOPPING=1"))
        finally:
            run.kill()
            run.communicate()


def wait_for(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_states_of_the_source_in_a_run_that_goes_on_are_not_of_the_time_before(tmp_path):
    settings = [f'source.uri="{SMALL.format(n=200)}"', "source.width=160", "source.height=120", "publish.endpoint="]
    config = load_config(None, settings)
    first = RunOptions(out=tmp_path)
    first.on_message = lambda message: first.stop.set() if isinstance(message, Score) else None
    for options in (first, RunOptions(out=tmp_path)):
        assert run_agent(config, options).exit_code == 0
    messages = [message for _, message in open_run(tmp_path).messages({"score", "source"})]
    (before, now) = sorted({message.epoch for message in messages})
    last_ns = max(message.t_ns for message in messages if message.epoch == before)
    states = [m for m in messages if m.epoch == now and not isinstance(m, Score)]
    assert [m.state for m in states] == ["live", "ended"]
    assert states[0].t_ns >= last_ns > 0
