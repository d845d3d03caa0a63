"""Secrets: no spelling of a registered password survives scrubbing."""

import logging
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stillwatch.base import secrets
from stillwatch.base.errors import ConfigError


@pytest.mark.parametrize("uri", [
    "rtsp://admin:hunter2zz@cam/stream", "rtsp://admin:p%40ss%2Fword@cam:554/a", "rtsp://u:a@b/c@cam/a",
    "http://cam/mjpeg?user=x&password=hunter3zz&n=1", "http://cam/x?access_token=abcdef",
])  # fmt: skip
def test_redaction_removes_credentials_and_keeps_the_rest(uri):
    shown = secrets.redact_uri(uri)
    assert "cam" in shown
    for part in ("hunter", "p%40ss", "a@b", "abcdef", "admin"):
        assert part not in shown


@pytest.mark.parametrize(
    ("uri", "shown", "sent"),
    [
        ("rtsp://user:p@ss:w/rd@host/stream", "rtsp://***@host/stream", "rtsp://user:p%40ss:w%2Frd@host/stream"),
        ("rtsp://u:a@b/c@cam/a", "rtsp://***@cam/a", "rtsp://u:a@b/c@cam/a"),  # b may be the host: only hidden
        ("rtsp://u:p?w@cam:5/x", "rtsp://***@cam:5/x", "rtsp://u:p%3Fw@cam:5/x"),
        ("rtsp://u:p#w@[::1]:5/x", "rtsp://***@[::1]:5/x", "rtsp://u:p%23w@[::1]:5/x"),
        ("rtsp://u:p@cam/x?mail=a@b", "rtsp://***@cam/x?mail=a@b", "rtsp://u:p@cam/x?mail=a@b"),
        ("rtsp://cam/x@y", "rtsp://cam/x@y", "rtsp://cam/x@y"),
    ],
)
def test_a_password_is_hidden_up_to_the_last_at_before_the_host(uri, shown, sent):
    assert secrets.redact_uri(uri) == shown
    assert secrets.encode_userinfo(uri) == sent


@settings(deadline=None)
@given(st.text("ab@:/#?%", min_size=1, max_size=12))
def test_no_part_of_a_password_is_shown_whatever_it_is_made_of(middle):
    assert "Q" not in secrets.redact_uri(f"rtsp://user:Q{middle}Q@host/stream")


def test_redaction_leaves_a_uri_without_credentials_alone():
    assert secrets.redact_uri("rtsp://cam:554/path?channel=1") == "rtsp://cam:554/path?channel=1"


def test_scrubbing_finds_encoded_and_decoded_spellings():
    secrets.register_uri("rtsp://u:s3cr%2Ft%21x@cam/a")
    for spelling in ("s3cr%2Ft%21x", "s3cr/t!x", "s3cr%2ft%21x"):
        assert spelling not in secrets.scrub(f"opening rtsp://u:{spelling}@cam/a")


def test_log_lines_are_scrubbed_after_formatting_with_their_exceptions(capsys):
    secrets.register("correcthorse")
    handler = logging.StreamHandler(sys.stderr)
    logger = logging.getLogger("test_secrets")
    logger.addHandler(handler)
    logger.propagate = False
    secrets.scrub_handlers(logger)
    try:
        raise ValueError("correcthorse is wrong")
    except ValueError:
        logger.exception("cannot use %s", "correcthorse")
    logger.removeHandler(handler)
    written = capsys.readouterr().err
    assert "cannot use ***" in written
    assert "correcthorse" not in written


def test_references_are_read_from_environment_and_files(monkeypatch, tmp_path):
    monkeypatch.setenv("CAM_PASSWORD", "batterystaple")
    (tmp_path / "user").write_text("admin1\n")
    expanded = secrets.expand(f"rtsp://${{file:{tmp_path}/user}}:${{env:CAM_PASSWORD}}@cam/")
    assert expanded == "rtsp://admin1:batterystaple@cam/"
    assert secrets.scrub(expanded) == "rtsp://***:***@cam/"


@pytest.mark.parametrize("reference", ["${env:NO_SUCH_VARIABLE_1}", "${file:/nonexistent/secret}"])
def test_a_reference_to_nothing_is_a_config_error(reference):
    with pytest.raises(ConfigError, match="NO_SUCH|cannot be read"):
        secrets.expand(reference)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_password_on_the_command_line_vanishes_from_ps():
    code = (
        "import sys\n"
        "from stillwatch.base import secrets\n"
        "secrets.register_uri(sys.argv[1])\n"
        "assert secrets.hide_command_line()\n"
        "print(open('/proc/self/cmdline').read().replace(chr(0), ' '))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "rtsp://u:verysecret9@cam/x", "--other"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert "verysecret9" not in done.stdout
    assert "rtsp://u:***********@cam/x --other" in done.stdout
