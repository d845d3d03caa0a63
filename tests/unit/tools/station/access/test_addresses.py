"""Where a page may be served: loopback as it is, elsewhere with users and TLS."""

import pytest

from stillwatch.base import ConfigError
from stillwatch.tools.station.access import Listening, check_listening, is_loopback


def reasons(listening, n_users):
    with pytest.raises(ConfigError) as caught:
        check_listening(listening, n_users=n_users)
    return str(caught.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "LOCALHOST.", "::1", "[::1]", "a.localhost"])
def test_loopback_needs_nothing(host):
    assert is_loopback(host)
    check_listening(Listening(host), n_users=0)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "station.example", "", "127.0.0.1.evil.example"])
def test_any_other_address_needs_users_and_tls(host):
    assert not is_loopback(host)
    text = reasons(Listening(host), 0)
    assert "stillwatch station user add NAME --role administer" in text
    assert "tls_certificate" in text
    assert "user add" not in reasons(Listening(host), 1)


@pytest.mark.parametrize("extra", [{"behind_proxy": True}, {"plain_http": True}])
def test_a_proxy_or_a_trusted_network_stands_for_tls(extra):
    check_listening(Listening("0.0.0.0", **extra), n_users=1)
    assert "user add" in reasons(Listening("0.0.0.0", **extra), 0)


def test_loopback_behind_a_proxy_is_reached_by_others():
    assert "user add" in reasons(Listening(behind_proxy=True), 0)


def test_certificate_and_key_go_together_and_must_be_what_they_say(tmp_path):
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("no certificate")
    assert "go together" in reasons(Listening(tls_certificate=str(wrong)), 1)
    assert "cannot be read" in reasons(Listening(tls_certificate=str(tmp_path / "none"), tls_key=str(wrong)), 1)
    assert "no certificate and its key" in reasons(Listening(tls_certificate=str(wrong), tls_key=str(wrong)), 1)
