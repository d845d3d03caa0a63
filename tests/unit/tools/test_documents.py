"""The documents and the command line agree: what a page tells people to type is there."""

import re

import pytest
from places import ROOT

from stillwatch.tools.cli import COMMANDS, GROUPS

PAGES = ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md")


def typed(page: str) -> list[str]:
    """Return what a page shows as typed: its code blocks, line by line, and what stands in backticks."""
    text = (ROOT / page).read_text()
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    outside = re.sub(r"^```\w*\n.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    quoted = [" ".join(words.split()) for words in re.findall(r"`([^`]+)`", outside)]
    return [*(line for block in blocks for line in block.splitlines()), *quoted]


def commands_of(page: str) -> list[str]:
    """Return the commands of ours that a page shows: one word, or a group and its member where one is named."""
    found = []
    for line in typed(page):
        for first, second in re.findall(r"(?:^|/|&& )stillwatch ([a-z][a-z-]*)(?![\w.])(?: ([a-z][a-z-]*))?", line):
            found.append(f"{first} {second}".strip() if first in GROUPS else first)
    return found


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_exists(page):
    assert [command for command in commands_of(page) if command not in COMMANDS and command not in GROUPS] == []


def test_the_readme_shows_commands():
    assert {"run", "report", "ground", "evaluate novelty"} <= set(commands_of("README.md"))


@pytest.mark.parametrize("page", PAGES)
def test_every_make_target_of_a_page_exists(page):
    targets = set(re.findall(r"^([a-z][a-z0-9-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    shown = [word for line in typed(page) for word in re.findall(r"(?:^|&& )make ([a-z][a-z0-9-]*)", line)]
    assert [word for word in shown if word not in targets] == []
