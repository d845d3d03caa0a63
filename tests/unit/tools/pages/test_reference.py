"""Pages made of the code's own tables: every command, argument and setting is in them."""

import shutil
import subprocess

import msgspec
import pytest

from stillwatch.settings import Config
from stillwatch.tools.cli import COMMANDS
from stillwatch.tools.pages.reference import (
    arguments_of,
    bash_completion,
    commands_page,
    man_page,
    settings_page,
    zsh_completion,
)


def test_every_command_is_on_its_page_with_its_arguments():
    page = commands_page()
    for command in COMMANDS:
        assert f"\n## {command}\n" in page
        for written, _ in arguments_of(command):
            assert written.replace("|", "\\|") in page


def test_every_setting_is_on_its_page_with_its_default_and_range():
    page = settings_page()
    for section in msgspec.structs.fields(Config):
        assert f"\n## {section.name}\n" in page
        assert all(f"| `{field.name}` |" in page for field in msgspec.structs.fields(section.type))
    assert "| `burst` | `30` | a whole number in" in page


def test_the_man_page_has_every_command_and_no_line_that_roff_takes_for_its_own():
    page = man_page()
    assert all(f".SS {command}".replace("-", "\\-") in page for command in COMMANDS)
    known = {".TH", ".SH", ".SS", ".TP", ".B", ".I", ".br"}
    assert {line.split()[0] for line in page.splitlines() if line.startswith(".")} <= known


@pytest.fixture(scope="module")
def completion():
    return bash_completion()


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["ev"], {"evaluate", "events"}),
        (["bench", "de"], {"detectors"}),
        (["events", "--c"], {"--csv"}),
        (["bench", "detectors", "--j"], {"--json"}),
        (["run", "--fr"], {"--fresh"}),
    ],
)
def test_bash_completes_commands_members_and_options(completion, typed, offered, tmp_path):
    words = " ".join(f"'{word}'" for word in ["stillwatch", *typed])
    call = f"COMP_WORDS=({words}); COMP_CWORD={len(typed)}; _stillwatch"
    script = f"{completion}\n{call}; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert offered <= set(done.stdout.split())
    assert all(word.startswith(typed[-1]) for word in done.stdout.split())


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh here")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["ev"], {"events:print", "evaluate:score"}),
        (["bench", "de"], {"detectors:DVR-Scan,"}),
        (["events", "--c"], {"--csv"}),
        (["bench", "detectors", "--j"], {"--json"}),
        (["station", "--"], {"--demo", "user:add,"}),
    ],
)
def test_zsh_is_offered_commands_members_and_options(typed, offered, tmp_path):
    """zsh's own functions are replaced by ones that print what they were offered."""
    words = " ".join(f"'{word}'" for word in ["stillwatch", *typed])
    said = "_describe() { print -l -- ${(P)4}; }; compadd() { shift; print -l -- $@; }; _files() { :; }"
    script = f"{said}\nwords=({words}); CURRENT={len(typed) + 1}\n{zsh_completion()}"
    done = subprocess.run(["zsh", "-f", "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stderr == ""
    assert offered <= set(done.stdout.split())
