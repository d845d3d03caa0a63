"""What the rules of the house read of a file's syntax: imports, clocks, looks at what is another's own."""

import ast
import re
from collections.abc import Iterator

CLOCKS = set(
    "time monotonic monotonic_ns time_ns perf_counter perf_counter_ns process_time process_time_ns thread_time "
    "thread_time_ns sleep now utcnow today".split()
)


def statements(node: ast.AST, is_inside: bool = False) -> Iterator[tuple[ast.stmt, bool]]:
    """Yield (statement, is inside a function) of all below a node; expressions hold none."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child, is_inside
        if not isinstance(child, ast.expr):
            yield from statements(child, is_inside or isinstance(child, ast.FunctionDef))


def reads_of_a_clock(tree: ast.AST) -> Iterator[str]:
    """Yield what a file reads of the machine's clocks: time.x, `from time import x`, datetime.now and its kin."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "time":
            yield f"{node.lineno} from time import {', '.join(alias.name for alias in node.names)}"
        elif isinstance(node, ast.Attribute) and node.attr in CLOCKS:
            root = ast.unparse(node.value)
            if root in ("time", "datetime", "date", "datetime.datetime", "datetime.date"):
                yield f"{node.lineno} {root}.{node.attr}"


def asks_by_name(called: ast.expr) -> bool:
    """Return whether a function reads or writes attributes by name: getattr, setattr or monkeypatch.setattr."""
    if isinstance(called, ast.Attribute):
        return called.attr == "setattr" and ast.unparse(called.value) == "monkeypatch"
    return isinstance(called, ast.Name) and called.id in ("getattr", "setattr")


def looks_inside(tree: ast.AST) -> Iterator[str]:
    """Yield reads of names with one leading underscore that the file does not define itself, as its doubles do."""
    nodes = list(ast.walk(tree))
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    written = [node for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)]
    own |= {node.attr for node in written if isinstance(node.value, ast.Name) and node.value.id == "self"}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("stillwatch"):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.Attribute):
            is_above = isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "super"
            named = [node.attr] if is_above or node.attr not in own else []
        elif isinstance(node, ast.Call) and asks_by_name(node.func):
            named = [arg.value for arg in node.args[1:2] if isinstance(arg, ast.Constant)]
        else:
            continue
        for name in named:
            if re.match(r"_[a-z]", str(name)) and name not in ("_replace", "_asdict", "_fields"):  # a named tuple's own
                yield f"{node.lineno} {name}"
