"""The documentation site: its links lead somewhere, its commands and its Python are ones that there are."""

import ast
import contextlib
import importlib
import io
import pathlib
import re
import shlex

import pytest
from places import ROOT

from stillwatch.tools.cli import COMMANDS, build_parser

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
MADE = {"reference/commands.md", "reference/settings.md", "reference/wire.md", "reference/thin_link.md"}  # by make docs


def blocks(language: str) -> list[tuple[str, str]]:
    """Return (page, text) of every code block of a language."""
    return [
        (str(page.relative_to(DOCS)), text)
        for page in PAGES
        if str(page.relative_to(DOCS)) not in MADE
        for text in re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.S)
    ]


def test_every_page_is_in_the_navigation_and_the_other_way_round():
    listed = set(re.findall(r": ([\w/]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M))
    assert listed == {str(page.relative_to(DOCS)) for page in PAGES} | MADE


def test_links_lead_to_pages_and_headings_that_there_are():
    broken = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#\s]*)(?:#[^)]*)?\)", page.read_text()):
            if not target or "://" in target:
                continue
            place = (page.parent / target).resolve()
            if not place.exists() and str(place.relative_to(DOCS)) not in MADE:
                broken.append(f"{page.name}: {target}")
    assert broken == []


@pytest.mark.parametrize(("page", "text"), blocks("sh"), ids=lambda part: part[:20])
def test_every_command_shown_is_one_that_there_is(page, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for line in text.strip().splitlines():
        words = shlex.split(line.partition(" >")[0])
        words = [word for word in words if not re.fullmatch(r"[A-Z_]+=\S+", word)]
        assert words[0] == "stillwatch", f"{page}: {line}"
        arguments = words[1:]
        if arguments[0] not in {name.partition(" ")[0] for name in COMMANDS}:
            arguments = ["run", *arguments]
        for word in arguments[1:]:  # files that an argument's type wants to be there
            if (
                "://" not in word
                and not word.startswith("-")
                and ("/" in word or word.endswith((".mp4", ".json", ".toml")))
            ):
                pathlib.Path(word).parent.mkdir(parents=True, exist_ok=True)
                pathlib.Path(word).touch()
        with contextlib.redirect_stderr(io.StringIO()) as said:
            try:
                build_parser(arguments).parse_args(arguments)
            except SystemExit:
                pytest.fail(f"{page}: {line}: {said.getvalue()}")


@pytest.mark.parametrize(("page", "text"), blocks("python"), ids=lambda part: part[:20])
def test_python_shown_compiles_and_imports_what_there_is(page, text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            module = importlib.import_module(node.module)
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == [], page


@pytest.mark.parametrize("text", [text for page, text in blocks("python") if page == "library.md"])
def test_examples_of_the_library_run(text):
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(text, "library.md", "exec"), {})
