"""The wheel is the tree, holds nothing at top level but stillwatch, and runs in a venv that never saw the checkout."""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

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
        if path.suffix in {".py", ".toml", ".swenc", ".npz", ".json", ".html", ".css", ".js", ".svg"}
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


@pytest.mark.parametrize(
    ("is_whole", "n_frames"),
    [
        pytest.param(False, 10, id="small, kernels as plain Python"),
        pytest.param(True, 60, id="as a user installs it", marks=pytest.mark.soak),  # downloads and compiles everything
    ],
)
def test_the_wheel_runs_in_a_fresh_venv_outside_the_checkout(wheel, tmp_path, is_whole, n_frames):
    run(sys.executable, "-m", "venv", str(tmp_path / "venv"), cwd=tmp_path)
    python, stillwatch = (tmp_path / "venv" / "bin" / name for name in ("python", "stillwatch"))
    offline = [] if is_whole else ["--no-deps", "--no-index"]
    run(str(python), "-m", "pip", "install", "--quiet", *offline, str(wheel), cwd=tmp_path)
    if not is_whole:
        (site_packages(python, tmp_path) / "dependencies.pth").write_text(dependencies_of_this_venv())
    source = ["--source", f"synthetic:transect?n_frames={n_frames}"]
    small = [] if is_whole else ["--set", "source.width=32"]
    environment = {} if is_whole else {"NUMBA_DISABLE_JIT": "1"}
    settings = [*small, "--set", "publish.endpoint="]
    run(str(stillwatch), "run", *source, "--out", "out", *settings, cwd=tmp_path, **environment)
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["frames"] == n_frames
    where = run(str(python), "-c", "import stillwatch; print(stillwatch.__file__)", cwd=tmp_path)
    assert str(tmp_path / "venv") in where
