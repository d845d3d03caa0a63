"""The rooms and their doors, read from the sources: which folder may import what, and how big a room may grow."""

import ast
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROOMS = ("agent", "kernels", "transport", "configs", "tools")
MAY_IMPORT = {
    "kernels": {"kernels"},
    "transport": {"transport"},
    "configs": {"configs"},
    "agent": {"agent", "kernels", "transport", "configs"},
    "tools": {"tools", "agent", "kernels", "transport", "configs"},
}
CONFINED = {
    "numba": ("kernels/",),
    "zmq": ("transport/",),
    "msgpack": ("transport/",),
    "av": ("agent/source", "tools/"),
    "pickle": (),
    "shelve": (),
}
MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60

SOURCES = sorted(path for room in ROOMS for path in (ROOT / room).glob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))


def name_of(path: pathlib.Path) -> str:
    return str(path.relative_to(ROOT))


def imports_of(path: pathlib.Path):
    """Yield (imported module, is inside a function) for every import in a file."""
    tree = ast.parse(path.read_text())
    inner = {id(node) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for node in ast.walk(f)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) in inner
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}: relative import"
            yield node.module, id(node) in inner


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_a_room_imports_only_rooms_downstream_of_it(path):
    room = path.parent.name
    for module, _ in imports_of(path):
        if module == "stillwatch" or module.startswith("stillwatch."):
            parts = module.split(".")
            if len(parts) > 1:
                assert parts[1] in MAY_IMPORT[room], f"{name_of(path)} imports {module}"
        assert module.split(".")[0] not in ROOMS, f"{name_of(path)} imports the bare name {module}"


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_libraries_stay_where_they_belong(path):
    for module, _ in imports_of(path):
        places = CONFINED.get(module.split(".")[0])
        if places is not None:
            assert name_of(path).startswith(places), f"{name_of(path)} imports {module}"


@pytest.mark.parametrize("path", [p for p in SOURCES if p.parent.name == "tools"], ids=name_of)
def test_tools_load_heavy_libraries_only_when_asked(path):
    heavy = {"matplotlib", "sklearn", "scipy", "river", "kmedoids", "mcap"}
    for module, is_inside in imports_of(path):
        assert is_inside or module.split(".")[0] not in heavy, f"{name_of(path)} imports {module} at the top"


@pytest.mark.parametrize("path", [p for p in SOURCES if p.name != "clock.py" and p.parent.name != "tools"], ids=name_of)
def test_only_the_clock_reads_the_time(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "time":
            raise AssertionError(f"{name_of(path)}:{node.lineno} reads time.{node.attr}: take a Clock")


@pytest.mark.parametrize("path", SOURCES + TESTS, ids=name_of)
def test_no_file_is_longer_than_a_reader_can_hold(path):
    assert len(path.read_text().splitlines()) <= MAX_FILE_LINES


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_no_function_is_longer_than_a_screen(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            length = node.end_lineno - node.lineno + 1
            assert length <= MAX_FUNCTION_LINES, f"{name_of(path)}:{node.lineno} {node.name} has {length} lines"


@pytest.mark.parametrize("path", [p for p in SOURCES if p.name != "__init__.py"], ids=name_of)
def test_every_module_says_what_it_is_and_who_calls_it(path):
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    assert len(docstring.splitlines()) >= 2 or path.name == "version.py", f"{name_of(path)} has no header"


@pytest.mark.parametrize("path", [p for p in SOURCES if p.parent.name == "kernels"], ids=name_of)
def test_kernels_are_made_by_our_decorators_alone(path):
    if path.name == "_jit.py":
        return
    text = path.read_text()
    assert "numba.njit" not in text
    assert "@njit" not in text
    assert "parallel=True" not in text
    for node in ast.parse(text).body:
        assert not isinstance(node, ast.ClassDef), f"{name_of(path)}: kernels/ holds functions only"


def test_bare_room_names_cannot_be_imported():
    for room in ROOMS:
        done = subprocess.run(
            [sys.executable, "-c", f"import {room}"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode != 0
        assert f"import stillwatch.{room}" in done.stderr


def test_folders_are_flat():
    for room in ROOMS:
        nested = [p for p in (ROOT / room).iterdir() if p.is_dir() and p.name != "__pycache__"]
        assert not nested, f"{room}/ has folders: {nested}"


def test_the_run_command_loads_no_plots_and_no_experiments():
    code = (
        "import sys; from stillwatch.tools.cli import build_parser; build_parser(['run']);"
        "heavy = ('matplotlib', 'sklearn', 'scipy.optimize', 'scipy.stats', 'rich', 'river');"
        "print([module for module in heavy if module in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "[]"
