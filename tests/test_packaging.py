"""The wheel is the tree, holds nothing at top level but stillwatch, and runs in a venv that never saw the checkout."""

import importlib.util
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROOMS = ("agent", "kernels", "transport", "configs", "tools")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def run(*command, cwd, **more):
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
    environment |= more
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr[-2000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build sdist, then the wheel from it, out of a clean copy: a stale build folder ships deleted modules."""
    copy = tmp_path_factory.mktemp("source")
    for room in ROOMS:
        shutil.copytree(ROOT / room, copy / room, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", str(out), cwd=copy)
    return next(out.glob("*.whl"))


def test_the_wheel_holds_the_tree_and_nothing_else(wheel):
    held = {n for n in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in n}
    wanted = {
        f"stillwatch/{path.relative_to(ROOT)}".replace("stillwatch/agent/", "stillwatch/")
        for room in ROOMS
        for path in (ROOT / room).rglob("*")
        if path.suffix in {".py", ".toml", ".swenc", ".npz", ".json", ".html", ".css", ".js", ".svg", ".txt"}
    }
    assert held == wanted


def site_packages(python, cwd):
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return pathlib.Path(run(str(python), "-c", code, cwd=cwd).strip())


def dependencies_of_this_venv():
    """Folders that hold numpy and the rest. Python runs no .pth found there: an editable checkout stays unseen."""
    folders = {
        pathlib.Path(importlib.util.find_spec(name).origin).parent.parent for name in ("numpy", "zmq", "msgspec")
    }
    return "".join(f"{folder}\n" for folder in sorted(folders))


@dataclass(frozen=True)
class Installed:
    """The wheel in a venv of its own, below a folder that any user may read."""

    folder: pathlib.Path
    is_whole: bool  # with its dependencies from the index and compiled kernels, or with ours and plain Python

    @property
    def programs(self):
        return self.folder / "venv" / "bin"

    @property
    def environment(self):
        return {} if self.is_whole else {"NUMBA_DISABLE_JIT": "1"}

    @property
    def small(self):
        return [] if self.is_whole else ["--set", "source.width=32"]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(False, id="small, kernels as plain Python"),
        pytest.param(True, id="as a user installs it", marks=pytest.mark.soak),  # downloads and compiles everything
    ],
)
def installed(wheel, request):
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="stillwatch-test-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        python = folder / "venv" / "bin" / "python"
        if request.param:
            run(sys.executable, "-m", "venv", str(folder / "venv"), cwd=folder)
            run(str(python), "-m", "pip", "install", "--quiet", str(wheel) + "[metrics]", cwd=folder)
        else:  # by our own pip: to install another takes longer than to run the agent
            run(sys.executable, "-m", "venv", "--without-pip", str(folder / "venv"), cwd=folder)
            pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
            run(*pip, "--no-deps", "--no-index", str(wheel), cwd=folder)
        if not request.param:
            (site_packages(python, folder) / "dependencies.pth").write_text(dependencies_of_this_venv())
        yield Installed(folder, request.param)


def test_the_wheel_runs_in_a_fresh_venv_outside_the_checkout(installed, tmp_path):
    settings = [*installed.small, "--set", "publish.endpoint="]
    program = str(installed.programs / "stillwatch")
    call = [program, "run", "synthetic:transect?n_frames=10", "--out", "out", *settings]
    run(*call, cwd=tmp_path, **installed.environment)
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["frames"] == 10
    where = run(str(installed.programs / "python"), "-c", "import stillwatch; print(stillwatch.__file__)", cwd=tmp_path)
    assert str(installed.programs.parent) in where


def containerfile():
    """Return the instructions of the Containerfile: a list of arguments by name, the last where there are several."""
    text = (ROOT / "Containerfile").read_text().replace("\\\n", " ")
    rows = [line.partition(" ") for line in text.splitlines() if line and not line.startswith("#")]
    return {name: rest.strip() for name, _, rest in rows}


def words_of(instruction):
    """Return the JSON list of words in an instruction."""
    return json.loads(instruction[instruction.index("[") :])


def test_the_image_runs_as_a_user_is_checked_by_health_and_stops_by_sigterm():
    told = containerfile()
    assert told["USER"] == "stillwatch"
    assert "useradd --system" in told["RUN"]
    assert "stillwatch warm-up" in told["RUN"]
    assert words_of(told["HEALTHCHECK"])[:2] == ["stillwatch", "health"]
    assert words_of(told["ENTRYPOINT"]) == ["stillwatch"]
    assert told["STOPSIGNAL"] == "SIGTERM"
    assert told["VOLUME"] in words_of(told["HEALTHCHECK"])[2]


# In a mount namespace of its own: the root read-only but for the state, a fresh /tmp, another user with no rights.
AS_IN_THE_IMAGE = """
mount --bind {state} {state} && mount -o remount,ro,bind / && mount -t tmpfs tmpfs /tmp || exit 99
exec setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs --bounding-set=-all "$@"
"""


@pytest.mark.skipif(
    not (shutil.which("unshare") and shutil.which("setpriv")) or os.geteuid() != 0, reason="no namespaces here"
)
@pytest.mark.skipif(
    any(folder.startswith("/tmp/") for folder in dependencies_of_this_venv().split()),
    reason="our packages lie in /tmp: an image has one of its own",
)
def test_the_steps_of_the_image_work_with_a_read_only_root_and_no_rights(installed, tmp_path):
    root, told = installed.folder, containerfile()
    state = root / "var/lib/stillwatch"
    state.mkdir(parents=True)
    os.chown(state, 65534, 65534)
    (root / "etc").mkdir()
    source = "synthetic:transect?n_frames=100000"
    width = "" if installed.is_whole else "width = 32\n"
    (root / "etc/stillwatch.toml").write_text(f'[source]\nuri = "{source}"\n{width}[publish]\nendpoint = ""\n')
    environment = dict(word.split("=", 1) for word in told["ENV"].split()) | installed.environment
    environment["STILLWATCH_CACHE_DIR"] = str(root) + environment["STILLWATCH_CACHE_DIR"]
    stillwatch = str(installed.programs / "stillwatch")
    run(stillwatch, "warm-up", cwd=root, **environment)

    def in_image(words):
        placed = [str(root) + word if word.startswith("/") else word for word in words]
        placed[0] = stillwatch if placed[0] == "stillwatch" else placed[0]
        shell = ["unshare", "-m", "sh", "-c", AS_IN_THE_IMAGE.format(state=state), "sh", *placed]
        whole = {**os.environ, **environment, "HOME": str(state)}
        return subprocess.Popen(shell, cwd=state, env=whole, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def is_well():
        check = in_image(words_of(told["HEALTHCHECK"]))
        return check.wait(120) == 0, check.communicate()

    agent = in_image([*words_of(told["ENTRYPOINT"]), *words_of(told["CMD"])])
    try:
        until = time.monotonic() + 120
        while not (answer := is_well())[0] and agent.poll() is None and time.monotonic() < until:
            time.sleep(0.5)
        assert answer[0], (answer, agent.poll())
        assert state.stat().st_uid == (state / "run/run.json").stat().st_uid == 65534
        agent.send_signal(signal.SIGTERM)
        _, said = agent.communicate(timeout=60)
    finally:
        agent.kill()
        agent.communicate()
    assert agent.returncode == 0, said
    assert "first start compiles" not in said
    assert not is_well()[0]


@pytest.mark.soak
def test_a_builder_builds_the_image_and_it_says_its_version(tmp_path):
    builders = [name for name in ("podman", "docker") if shutil.which(name)]
    usable = [n for n in builders if subprocess.run([n, "info"], capture_output=True, check=False).returncode == 0]
    if not usable:
        pytest.skip("no builder of images here")
    run(usable[0], "build", "-q", "-f", "Containerfile", "-t", "stillwatch-test", ".", cwd=ROOT)
    assert "stillwatch" in run(usable[0], "run", "--rm", "--read-only", "stillwatch-test", "--version", cwd=tmp_path)
