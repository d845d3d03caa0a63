"""The wheel is the tree, holds nothing at top level but stillwatch, and runs in a venv that never saw the checkout."""

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


def run(*command, cwd):
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
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
        if path.suffix in {".py", ".toml", ".swenc"}
    }
    assert held == wanted


def test_the_wheel_runs_in_a_fresh_venv_outside_the_checkout(wheel, tmp_path):
    run(sys.executable, "-m", "venv", str(tmp_path / "venv"), cwd=tmp_path)
    bin_dir = tmp_path / "venv" / "bin"
    run(str(bin_dir / "python"), "-m", "pip", "install", "--quiet", str(wheel), cwd=tmp_path)
    run(
        str(bin_dir / "stillwatch"),
        "run",
        "--source",
        "synthetic:transect?n_frames=60",
        "--out",
        "out",
        "--set",
        "publish.endpoint=",
        cwd=tmp_path,
    )
    summary = json.loads(pathlib.Path(tmp_path / "out" / "summary.json").read_text())
    assert summary["frames"] == 60
    where = run(str(bin_dir / "python"), "-c", "import stillwatch; print(stillwatch.__file__)", cwd=tmp_path)
    assert str(tmp_path / "venv") in where
