"""The house, read from the sources: which room may import what, what stays where, how big a room may grow.

One test a rule. Each collects every breach and shows them all.
"""

import ast
import functools
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

from places import ROOT
from syntax import looks_inside, reads_of_a_clock, statements

TOP = ("agent", "kernels", "transport", "configs", "tools")
CLOCK, WIRE, DISK, LIVE, THIN, MIRROR = (
    f"transport.{wing}" for wing in ("base", "wire", "disk", "live", "thin", "mirror")
)
TRANSPORT = {WIRE, DISK, LIVE, THIN, MIRROR}

# Who may import whom: every arrow runs up this table, so that it has no circle. "kernels" and "configs" are flat.
MAY_IMPORT: dict[str, set[str]] = {
    "base": set(),
    "kernels": set(),
    "configs": set(),
    CLOCK: set(),
    WIRE: set(),
    LIVE: {CLOCK, WIRE},
    MIRROR: {WIRE},
    DISK: {CLOCK, WIRE},
    THIN: {CLOCK, WIRE, MIRROR, DISK},
    "settings": {"base"},
    "worlds": {"base"},
    "sources": {"base", "settings", "worlds", WIRE, DISK},
    "gate": {"base", "settings", "kernels"},
    "features": {"base", "settings", "kernels"},
    "learn": {"base", "kernels"},
    "epochs": {"base", "settings", "learn"},
    "novelty": {"base", "settings", "gate", "features", "learn", "epochs", "kernels"},
    "describing": {"base", "settings", "gate", "features", "epochs", "novelty"},
    "contents": {"base", "settings", "features", "learn", "epochs", "novelty"},
    "events": {"base", "settings", "gate", "novelty", "contents", "epochs", WIRE},
    "pipeline": {
        "base",
        "settings",
        "gate",
        "features",
        "learn",
        "epochs",
        "novelty",
        "describing",
        "contents",
        "events",
        WIRE,
        MIRROR,
    },
    "runs": {"base", WIRE, DISK},
    "restart": {"base", "settings", "sources", "pipeline", WIRE, DISK},
    "clips": {"base", "settings", "sources", "pipeline"},
    "outlet": {"base", "settings", "sources", "pipeline", WIRE, LIVE, DISK, THIN},
    "process": {
        "base",
        "settings",
        "sources",
        "describing",
        "pipeline",
        "restart",
        "clips",
        "outlet",
        WIRE,
        LIVE,
        DISK,
        THIN,
    },
}
AGENT = {wing for wing in MAY_IMPORT if not wing.startswith("transport.")}
TOOLS_MAY_IMPORT: dict[str, set[str]] = {
    "tools.shared": set(),
    "tools.report": {"tools.shared"},
    "tools.evaluate": {"tools.shared"},
    "tools.encoders": {"tools.shared"},
    "tools.tables": {"tools.shared"},
    "tools.survey": {"tools.shared", "tools.tables"},
    "tools.station": {"tools.shared", "tools.report", "tools.tables", "tools.survey"},
    "tools.bench": {"tools.shared", "tools.evaluate"},
    "tools.experiments": {"tools.shared", "tools.encoders", "tools.survey"},
    "tools.recordings": {"tools.shared", "tools.report"},
    "tools.checks": {"tools.shared"},
    "tools.field": {"tools.shared"},
    "tools": {"tools.shared", "tools.report"},  # commands of one file
    "tools.pages": {"tools.shared", "tools"},  # the words of every command
}
MAY_IMPORT |= {wing: own | AGENT | TRANSPORT for wing, own in TOOLS_MAY_IMPORT.items()}

CONFINED = {
    "numba": ("kernels/",),
    "zmq": ("transport/live/",),
    "msgpack": ("transport/",),
    "av": ("agent/sources/", "agent/clips/", "tools/"),
    "cv2": ("agent/sources/", "agent/worlds/", "agent/gate/", "agent/features/", "agent/novelty/", "agent/describing/",
            "agent/pipeline/",
            "agent/restart/", "agent/clips/", "agent/process/", "transport/thin/thumbnails.py", "tools/"),
    "pickle": (),
    "shelve": (),
}  # fmt: skip
HEAVY = {"matplotlib", "sklearn", "scipy", "river", "kmedoids", "mcap", "pandas", "pyarrow"}
# Tests that still look inside: what they need becomes public behaviour or a contract test, then they leave this list.
LOOKS_INSIDE = {"tests/unit/kernels/test_kernel_cache.py", "tests/conftest.py"}
MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60
MAX_FOLDER_FILES = 15

SOURCES = sorted(path for top in TOP for path in (ROOT / top).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *(path for top in TOP for path in (ROOT / top).rglob("*") if path.suffix in (".md", ".toml"))]
)
# The packages stillwatch and stillwatch.transport hold wings and are none.
DOORS = [p for p in SOURCES if p.name == "__init__.py" and p.parent not in (ROOT / "agent", ROOT / "transport")]


def name_of(path: pathlib.Path) -> str:
    return str(path.relative_to(ROOT))


@functools.cache
def tree_of(path: pathlib.Path) -> ast.Module:
    return ast.parse(path.read_text())


def module_of(path: pathlib.Path) -> str:
    """Return the dotted name below stillwatch; '' for the package itself."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    parts = parts[1:] if parts[0] == "agent" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path) for path in SOURCES}


def wing_of(module: str) -> str:
    """Return the wing of a dotted name below stillwatch: transport and tools have wings of two words."""
    parts = module.split(".")
    if parts[0] in ("transport", "tools") and len(parts) > 1 and (ROOT / parts[0] / parts[1]).is_dir():
        return ".".join(parts[:2])
    return parts[0]


@functools.cache
def imports_of(path: pathlib.Path) -> list[tuple[str, str, bool]]:
    """Return (module, name or '', is inside a function) of every import in a file."""
    found = []
    for node, is_inside in statements(tree_of(path)):
        if isinstance(node, ast.Import):
            found += [(alias.name, "", is_inside) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}: relative import"
            found += [(node.module or "", alias.name, is_inside) for alias in node.names]
    return found


def ours(path: pathlib.Path) -> Iterator[tuple[str, bool]]:
    """Yield (dotted name below stillwatch of the module that is loaded, is inside a function)."""
    for module, name, is_inside in imports_of(path):
        if module == "stillwatch" or module.startswith("stillwatch."):
            below = module[len("stillwatch.") :]
            whole = f"{below}.{name}".lstrip(".")
            yield (whole if whole in MODULES else below), is_inside


def assert_none(breaches: list[str]) -> None:
    assert not breaches, "\n" + "\n".join(sorted(set(breaches)))


def test_the_table_of_imports_has_no_circle():
    for place, (wing, below) in enumerate(MAY_IMPORT.items()):
        later = below - set(list(MAY_IMPORT)[: place + 1])
        assert not later, f"{wing} may import {later}, which stand after it"


def test_a_wing_imports_only_wings_below_it():
    breaches = []
    for path in SOURCES:
        wing = wing_of(module_of(path))
        for module, _ in ours(path):
            other = wing_of(module)
            if other and wing and other != wing and other not in MAY_IMPORT[wing]:
                breaches.append(f"{name_of(path)} imports {module}")
    assert_none(breaches)


def test_nobody_imports_past_a_door():
    breaches = []
    for path in SOURCES:
        wing = wing_of(module_of(path))
        for module, name, _ in imports_of(path):
            if not module.startswith("stillwatch."):
                continue
            below = module[len("stillwatch.") :]
            other = wing_of(below)
            is_flat = other in ("kernels", "configs", "tools")
            if other != wing and not is_flat and below != other and path != ROOT / "agent" / "__init__.py":
                breaches.append(f"{name_of(path)} imports {module}.{name} past the door of {other}")
    assert_none(breaches)


def test_a_door_says_what_it_owns_and_what_it_lets_out():
    breaches = []
    for path in DOORS:
        text = (ast.get_docstring(tree_of(path)) or "").replace("In, out: ", "In: Out: ")
        missing = [word for word in ("Owns: ", "In: ", "Out: ", "Imports: ") if word not in text]
        if missing:
            breaches.append(f"{name_of(path)}: docstring without {missing}")
    assert_none(breaches)


def imports_said(path: pathlib.Path) -> set[str]:
    """Return the wings that a door's docstring names after "Imports:", in its last paragraph."""
    said = (ast.get_docstring(tree_of(path)) or "").partition("Imports: ")[2]
    whole = {"nothing of ours": set(), "the agent": AGENT, "transport": TRANSPORT}
    names = " ".join(said.split()).removesuffix(".").split(", ")
    return set().union(*(whole.get(name, {name}) for name in names))


def test_a_door_names_the_imports_of_the_table():
    """A folder inside a wing names no more than its wing may import, and the wing itself."""
    breaches = []
    for path in DOORS:
        wing, said = wing_of(module_of(path)), imports_said(path)
        is_wings_own = module_of(path) == wing
        wrong = said ^ MAY_IMPORT[wing] if is_wings_own else said - MAY_IMPORT[wing] - {wing}
        if wrong:
            breaches.append(f"{name_of(path)}: its imports and the table's differ in {sorted(wrong)}")
    assert_none(breaches)


def test_no_files_import_each_other_in_a_circle():
    doors = {module_of(path) for path in SOURCES if path.name == "__init__.py"}
    arrows = {module_of(p): {m for m, _ in ours(p) if m in MODULES and m not in doors} for p in SOURCES}
    done: set[str] = set()

    def visit(module: str, way: tuple[str, ...]) -> None:
        assert module not in way, f"circle: {' -> '.join((*way[way.index(module) :], module))}"
        if module not in done:
            for below in sorted(arrows.get(module, ())):
                visit(below, (*way, module))
            done.add(module)

    for module in sorted(arrows):
        visit(module, ())


def test_libraries_stay_where_they_belong():
    assert_none(
        [
            f"{name_of(path)} imports {module}"
            for path in SOURCES
            for module, _, _ in imports_of(path)
            if module.split(".")[0] in CONFINED and not name_of(path).startswith(CONFINED[module.split(".")[0]])
        ]
    )


def test_folders_are_imported_as_stillwatch_alone():
    assert_none([f"{name_of(p)} imports {m}" for p in SOURCES for m, _, _ in imports_of(p) if m.split(".")[0] in TOP])
    for top in TOP:
        done = subprocess.run(
            [sys.executable, "-c", f"import {top}"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode != 0, f"import {top} works: a second copy of every class"
        assert "import stillwatch" in done.stderr


def test_tools_load_heavy_libraries_only_when_asked():
    assert_none(
        [
            f"{name_of(path)} imports {module} at the top"
            for path in SOURCES
            if name_of(path).startswith("tools/")
            for module, _, is_inside in imports_of(path)
            if not is_inside and module.split(".")[0] in HEAVY
        ]
    )


def test_only_the_clock_reads_the_time():
    assert_none(
        [
            f"{name_of(path)}:{read}: take a Clock"
            for path in SOURCES
            if name_of(path) != "agent/base/clock.py" and not name_of(path).startswith("tools/")
            for read in reads_of_a_clock(tree_of(path))
        ]
    )


def test_the_rule_about_clocks_sees_every_way_to_read_one():
    for text in (
        "import time\ntime.time()",
        "from time import monotonic\nmonotonic()",
        "from datetime import datetime\ndatetime.now()",
        "import datetime\ndatetime.datetime.utcnow()",
        "from datetime import date\ndate.today()",
        "import time\ntime.sleep(1)",
    ):
        assert list(reads_of_a_clock(ast.parse(text))), text
    for text in ("clock.monotonic_ns()", "from datetime import timedelta\ntimedelta(seconds=1)", "frame.time"):
        assert not list(reads_of_a_clock(ast.parse(text))), text


def test_no_file_is_longer_than_a_reader_can_hold():
    lengths = {path: len(path.read_text().splitlines()) for path in SOURCES + TESTS}
    assert_none([f"{name_of(path)} has {n} lines" for path, n in lengths.items() if n > MAX_FILE_LINES])


def test_no_folder_holds_more_than_a_reader_can_see():
    flat = ("kernels", "tests/unit/kernels")  # one cache, one coverage
    folders = {path.parent for path in SOURCES + TESTS if name_of(path.parent) not in flat}
    counts = {folder: len(list(folder.glob("*.py"))) for folder in folders}
    assert_none([f"{name_of(folder)} has {n} files" for folder, n in counts.items() if n > MAX_FOLDER_FILES])


def test_no_function_is_longer_than_a_screen():
    assert_none(
        [
            f"{name_of(path)}:{node.lineno} {node.name} has {node.end_lineno - node.lineno + 1} lines"
            for path in SOURCES
            for node, _ in statements(tree_of(path))
            if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno + 1 > MAX_FUNCTION_LINES
        ]
    )


def test_every_module_says_what_it_is_and_who_calls_it():
    assert_none(
        [
            f"{name_of(path)} has no header"
            for path in SOURCES
            if path.name not in ("__init__.py", "agent/base/version.py")
            and len((ast.get_docstring(tree_of(path)) or "").splitlines()) < 2
        ]
    )


def test_a_header_names_only_files_that_exist():
    breaches = []
    for path in SOURCES:
        for named in re.findall(r"(?<![\w./-])([\w/]+\.(?:py|md))\b", ast.get_docstring(tree_of(path)) or ""):
            near = (ROOT, ROOT / "agent", path.parent, path.parent.parent, ROOT / "tests", ROOT / "tools")
            if not any((place / named).exists() for place in near):
                breaches.append(f"{name_of(path)} speaks of {named}")
    assert_none(breaches)


def test_a_document_names_only_files_that_exist():
    """Paths are from the root, and may hold a *; a name alone is that of some file of the repository."""
    known = {path.name for top in (*TOP, "tests") for path in (ROOT / top).rglob("*")}
    known |= {path.name for path in ROOT.iterdir()}
    breaches = []
    for path in DOCUMENTS:
        text = path.read_text()
        for named in re.findall(rf"(?<![\w./<-])((?:{'|'.join(TOP)}|tests|\.ci)/[\w./*-]*)", text):
            if not list(ROOT.glob(named.rstrip("./"))):
                breaches.append(f"{name_of(path)} speaks of {named}")
        for named in re.findall(r"(?<![\w./*{}<>_-])(\w+\.(?:py|md|toml))\b", text):
            if named not in known and named != "messageparams.py":  # a source of the presets' figures, not ours
                breaches.append(f"{name_of(path)} speaks of {named}")
    assert_none(breaches)


def arrows_drawn() -> set[tuple[str, str]]:
    """Return (from, to) of every arrow of ARCHITECTURE.md's drawing."""
    drawing = re.search(r"```mermaid\nflowchart TD\n(.*?)```", (ROOT / "ARCHITECTURE.md").read_text(), re.DOTALL)
    assert drawing is not None, "ARCHITECTURE.md has no drawing"
    arrows = set()
    for line in drawing[1].strip().splitlines():
        above, below = (side.strip().split(" & ") for side in line.split(" --> "))
        arrows |= {(a, b) for a in above for b in below}
    return arrows


def all_below(arrows: set[tuple[str, str]]) -> dict[str, set[str]]:
    """Return what each wing reaches over any number of arrows."""
    reached: dict[str, set[str]] = {}
    for wing in MAY_IMPORT:  # from the bottom: what a wing imports stands before it
        direct = {b for a, b in arrows if a == wing}
        reached[wing] = direct.union(*(reached[b] for b in direct))
    return reached


def test_the_drawing_of_the_house_is_the_table():
    drawn = arrows_drawn()
    table = {(wing, other) for wing, below in MAY_IMPORT.items() for other in below}
    assert {wing for arrow in drawn for wing in arrow} == set(MAY_IMPORT), "wings drawn are not those of the table"
    assert drawn <= table, f"drawn but not in the table: {sorted(drawn - table)}"
    assert all_below(drawn) == all_below(table), "an arrow of the table is not told by the drawing"


def test_kernels_are_made_by_our_decorators_alone():
    breaches = []
    for path in SOURCES:
        if path.parent.name != "kernels" or path.name == "_jit.py":
            continue
        text = path.read_text()
        breaches += [f"{name_of(path)}: {word}" for word in ("numba.njit", "@njit", "parallel=True") if word in text]
        breaches += [f"{name_of(path)}: class {n.name}" for n in tree_of(path).body if isinstance(n, ast.ClassDef)]
    assert_none(breaches)


def test_the_run_command_loads_no_plots_and_no_experiments():
    code = (
        "import sys; from stillwatch.tools.cli import build_parser; build_parser(['run']);"
        "heavy = ('matplotlib', 'sklearn', 'scipy.optimize', 'scipy.stats', 'rich', 'river');"
        "print([module for module in heavy if module in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "[]"


def test_the_package_alone_is_light():
    code = "import sys, stillwatch; print(stillwatch.__version__, {'numba', 'cv2', 'av', 'zmq'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split(None, 1)[1].strip() == "set()"


def test_what_every_command_shares_and_the_question_of_health_load_no_agent():
    code = (
        "import sys, stillwatch.tools.shared, stillwatch.tools.field.health; print({'numba', 'av'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "set()"


def test_tests_do_not_look_inside():
    assert_none(
        [
            f"{name_of(path)}:{found}"
            for path in TESTS
            if not name_of(path).startswith(tuple(LOOKS_INSIDE))
            for found in looks_inside(ast.parse(path.read_text()))
        ]
    )


def test_the_rule_about_looking_inside_sees_every_way_to_do_it():
    for text in (
        "model._items.codes",
        "from stillwatch.restart.resume import _position",
        "monkeypatch.setattr(secrets, '_known', set())",
        "class Agent(app.Agent):\n    def _step(self):\n        super()._step()",
    ):
        assert list(looks_inside(ast.parse(text))), text
    for text in (
        "class Double:\n    def __init__(self):\n        self._n = 0\nmade = Double()\nmade._n",
        "row._replace(x=1)",
        "model.__dict__",
    ):
        assert not list(looks_inside(ast.parse(text))), text


def test_tests_of_units_stand_where_the_units_do():
    """A wing's tests are found by its name. No more is claimed: a file is tested by its own or by its wing's tests."""
    folders = {path.parent.relative_to(ROOT / "tests" / "unit") for path in (ROOT / "tests" / "unit").rglob("*.py")}
    assert_none(
        [
            f"tests/unit/{folder} tests no folder of that name"
            for folder in folders
            if not (ROOT / "agent" / folder).is_dir() and not (ROOT / folder).is_dir()
        ]
    )
