"""Keys on disk: private, complete, never shown, never replaced."""

import argparse
import pathlib
import tomllib

import pytest

from stillwatch.tools import keygen
from stillwatch.transport.live.security import fingerprint
from stillwatch.transport.thin.port import read_link_key


def run(folder: pathlib.Path, name: str = "boat", *more: str) -> int:
    parser = argparse.ArgumentParser()
    keygen.add_arguments(parser)
    return keygen.main(parser.parse_args(["--out", str(folder), "--name", name, *more]))


def test_both_files_are_for_the_owner_alone(tmp_path):
    assert run(tmp_path / "keys") == 0
    assert [(tmp_path / "keys" / f"boat.{end}").stat().st_mode & 0o777 for end in ("key", "pub")] == [0o600, 0o600]


def test_only_the_fingerprint_is_printed(tmp_path, capsys):
    run(tmp_path)
    pair = tomllib.loads((tmp_path / "boat.key").read_text())
    said = "".join(capsys.readouterr())
    assert said == f"boat: fingerprint {fingerprint(pair['public'].encode())}\n"
    assert pair["secret"] not in said
    assert tomllib.loads((tmp_path / "boat.pub").read_text()) == {"boat": pair["public"]}


def test_keys_are_never_replaced(tmp_path, capsys):
    run(tmp_path)
    before = (tmp_path / "boat.key").read_bytes()
    assert run(tmp_path) == 2
    assert (tmp_path / "boat.key").read_bytes() == before
    assert "exists" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["", "a/b", "a b", "..", "x" * 65])
def test_name_that_is_no_file_or_toml_key_is_refused(tmp_path, name):
    assert run(tmp_path, name) == 2
    assert list(tmp_path.iterdir()) == []


def test_link_key_is_private_and_read_back_by_both_ends(tmp_path, capsys):
    assert run(tmp_path, "boat", "--link") == 0
    key = read_link_key(str(tmp_path / "boat.link"))
    assert len(key) == 32
    assert (tmp_path / "boat.link").stat().st_mode & 0o777 == 0o600
    assert "".join(capsys.readouterr()) == f"boat: fingerprint {fingerprint(key)}\n"
    assert run(tmp_path, "boat", "--link") == 2
