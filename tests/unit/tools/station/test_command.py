"""`stillwatch station` as a process: serves, keeps its store to itself, ends when asked to."""

import io
import json
import signal
import socket
import ssl
import subprocess
import sys
import urllib.request

import certificates
import pytest
from receivers import Web

from stillwatch.tools.cli import main

CLI = [sys.executable, "-m", "stillwatch.tools.cli", "station"]


@pytest.mark.slow
def test_a_station_serves_its_page_alone_on_its_store_and_ends_when_asked(tmp_path):
    command = [*CLI, "--port", "0", "--store", str(tmp_path / "s.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as station:
        try:
            url = station.stdout.readline().split()[-1]
            with urllib.request.urlopen(f"{url}healthz", timeout=20) as answer:
                assert json.load(answer) == {"status": "ok"}
            second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            assert "another station uses it" in second.stderr
            station.send_signal(signal.SIGTERM)
            assert station.wait(30) == 0
        finally:
            station.kill()


def test_a_page_that_others_can_reach_needs_a_user(tmp_path, capsys):
    config = tmp_path / "station.toml"
    config.write_text(f'[station]\nstore = "{tmp_path}/s.db"\n[page]\nhost = "0.0.0.0"\nport = 0\n')
    assert main(["station", str(config)]) == 78
    assert "stillwatch station user add" in capsys.readouterr().err


def test_a_missing_package_is_one_line(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["station", "--port", "0"]) == 2
    assert capsys.readouterr().err == "stillwatch: the station needs uvicorn: pip install 'stillwatch[station]'\n"


def test_a_test_message_goes_out_by_each_way_and_failures_are_told(tmp_path, capsys):
    config = tmp_path / "station.toml"
    with Web() as web:
        config.write_text(
            f'[tell.a]\nurl = "{web.url}"\n[tell.b]\nkind = "command"\ncommand = ["sh", "-c", "exit 3"]\n'
        )
        assert main(["station", "test-notify", str(config)]) == 1
        assert main(["station", "test-notify", str(config), "a"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("a: sent, id test-")
    assert lines[1] == "b: not sent: exit code 3"
    assert json.loads(web.requests[0][1])["phase"] == "test"


def test_a_way_that_is_not_in_the_settings_is_said(tmp_path, capsys):
    config = tmp_path / "station.toml"
    config.write_text("")
    assert main(["station", "test-notify", str(config)]) == 2
    assert "sections are none" in capsys.readouterr().err


def test_the_first_user_is_made_on_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("correct horse battery\n"))
    store = ["--store", str(tmp_path / "s.db")]
    assert main(["station", "user", "add", "ann", "--role", "act", *store]) == 0
    assert main(["station", "user", "list", *store]) == 0
    assert json.loads(capsys.readouterr().out)["users"] == [{"name": "ann", "role": "act"}]


def test_a_port_that_is_taken_is_one_line_that_says_what_to_do(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["station", "--port", str(port), "--store", str(tmp_path / "s.db")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"stillwatch: page: cannot listen at 127.0.0.1:{port}: Address already in use. ")
    assert "--port N" in line


@pytest.mark.slow
def test_a_station_with_a_certificate_is_reached_by_tls_and_asks_who_comes(tmp_path, monkeypatch):
    certificate, key = certificates.make(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO("correct horse battery\n"))
    store, config = str(tmp_path / "s.db"), tmp_path / "station.toml"
    assert main(["station", "user", "add", "ann", "--role", "act", "--store", store]) == 0
    files = f'tls_certificate = "{certificate}"\ntls_key = "{key}"\n'
    config.write_text(f'[station]\nstore = "{store}"\n[page]\nhost = "0.0.0.0"\nport = 0\n{files}')
    with subprocess.Popen([*CLI, str(config)], stdout=subprocess.PIPE, text=True) as station:
        try:
            port = station.stdout.readline().strip().rstrip("/").rpartition(":")[2]
            context = ssl.create_default_context(cafile=certificate)
            with urllib.request.urlopen(f"https://localhost:{port}/", timeout=20, context=context) as answer:
                assert answer.url.endswith("/login")
        finally:
            station.kill()
