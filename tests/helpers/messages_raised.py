"""Every message that the program raises for a person, collected from its text; {} where it holds a value."""

import ast
import dataclasses
import pathlib
from collections import defaultdict
from collections.abc import Iterator

from places import ROOT

FOR_PEOPLE = {
    "AgentError", "ConfigError", "FolderInUse", "LinkError", "LogError", "MissingSourceError", "Problem", "Refused",
    "SecurityError", "SourceError", "StoreError", "TransportError", "UsageError", "VersionError",
}  # fmt: skip
# Not here: SnapshotError, DecodeError, EncodeError. They are of saved states and messages, not of what a person typed,
# and are told inside a message of the table above ("… does not fit this config (…): start with --fresh").


@dataclasses.dataclass(frozen=True)
class Raised:
    """One message: where it is raised, by which error, its text; {} stands for a value."""

    where: str
    error: str
    text: str


def all_raised() -> Iterator[Raised]:
    """Yield every message that is raised, returned or noted as a problem with the words in agent, tools, transport."""
    for top in ("agent", "tools", "transport"):
        for path in sorted((ROOT / top).rglob("*.py")):
            tree = ast.parse(path.read_text())
            constants = _assigned(tree)
            for function in ast.walk(tree):
                if isinstance(function, ast.FunctionDef):
                    yield from _of_function(function, {**constants, **_assigned(function)}, path.relative_to(ROOT))


def _of_function(function: ast.FunctionDef, values: dict, path: pathlib.Path) -> Iterator[Raised]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in FOR_PEOPLE and node.args:
            name = node.func.id
            # A status comes before a page's words; a file, a key and a value before a problem's.
            texts = node.args[1:] if name == "Refused" else node.args
            yield Raised(f"{path}:{node.lineno}", name, " ".join(text_of(each, values) for each in texts))


def _assigned(scope: ast.AST) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = defaultdict(list)
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found[target.id].append(node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            found[node.target.id].append(node.value)
    return found


def text_of(node: ast.expr, values: dict[str, list[ast.expr]], depth: int = 0) -> str:
    """Return the words of an expression; where a name was given words, those, else {}."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else "{}"
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part, values, depth) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return text_of(node.value, values, depth)
    if isinstance(node, ast.BinOp):
        return text_of(node.left, values, depth) + text_of(node.right, values, depth)
    if isinstance(node, ast.IfExp):
        return text_of(node.body, values, depth) + text_of(node.orelse, values, depth)
    if isinstance(node, ast.List):
        return " ".join(text_of(item, values, depth) for item in node.elts)
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "absent":
        return "{}: no such file or folder; did you mean {}?"
    if isinstance(node, ast.Name) and depth < 2 and node.id in values:
        said = "".join(text_of(value, values, depth + 1) for value in values[node.id])
        return said if any(map(str.isalpha, said)) else "{}"
    return "{}"
