"""A broker and a mail server that others wrote take what the station sends, with TLS and logins."""

import email
import email.policy
import json
import pathlib
import signal
import subprocess
import sys

import certificates
import mail_process
import mosquitto_server
import pytest
from hearing import until
from mosquitto_server import PASSWORD, USER, Mosquitto, listening
from thin_processes import free_ports

from stillwatch.tools.station.settings import TellSection
from stillwatch.tools.station.tell import NotSent, Outgoing, make_way

BODY = {"id": "cam1-5-new", "agent": "cam1", "phase": "new", "kind": "novel", "rarity": 500.0, "alert": 5}
MESSAGE = Outgoing("cam1-5-new", json.dumps(BODY), b"\xff\xd8 a picture")
SENDER = """
import sys, time
from stillwatch.tools.station.settings import TellSection
from stillwatch.tools.station.tell import Outgoing, make_way
section = TellSection(kind="mqtt", host="127.0.0.1", port=int(sys.argv[1]), user="station", password="s3cret")
make_way(section, "harbour").send(Outgoing("u", sys.argv[2]))
print("sent", flush=True)
time.sleep(60)
"""


@pytest.fixture
def broker(tmp_path):
    if mosquitto_server.find() is None:
        pytest.skip(mosquitto_server.MISSING)
    made = Mosquitto(tmp_path, free_ports(1)[0])
    made.start()
    yield made
    made.stop()


def section(broker, **more):
    return TellSection(kind="mqtt", host="127.0.0.1", port=broker.port, user=USER, password=PASSWORD, **more)


def sent(way, message=MESSAGE):
    try:
        way.send(message)
    finally:
        way.close()


def test_mosquitto_keeps_where_home_assistant_looks_and_passes_alerts_on(broker):
    with listening(broker.port) as heard:
        sent(make_way(section(broker, phases=("new", "end")), "harbour"))
        until(lambda: ("stillwatch/station", "offline", False) in heard)
    with listening(broker.port) as later:  # Home Assistant, started after it
        until(lambda: len(later) == 3)
    config = "homeassistant/binary_sensor/stillwatch_harbour_cam1/config"
    kept = {topic: text for topic, text, is_retained in later if is_retained}
    told = json.loads(kept[config])
    assert kept == {config: kept[config], told["availability_topic"]: "offline", told["state_topic"]: "ON"}
    assert ("stillwatch/cam1/alert", MESSAGE.body, False) in heard


def test_mosquitto_tells_the_last_will_of_a_station_that_was_killed(broker):
    with listening(broker.port) as heard:
        command = [sys.executable, "-c", SENDER, str(broker.port), MESSAGE.body]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as station:
            assert station.stdout.readline() == "sent\n"
            station.send_signal(signal.SIGKILL)
        until(lambda: ("stillwatch/station", "offline", False) in heard)


def test_mosquitto_that_was_away_is_told_again(broker):
    way = make_way(section(broker, timeout_s=2.0), "harbour")
    way.send(MESSAGE)
    broker.stop()
    until(lambda: not is_sent(way))
    broker.start()
    with listening(broker.port, "stillwatch/cam1/alert") as heard:
        until(lambda: is_sent(way))
        until(lambda: heard)
    way.close()


def test_mosquitto_refuses_a_wrong_password_and_that_is_said(broker):
    wrong = TellSection(kind="mqtt", host="127.0.0.1", port=broker.port, user=USER, password="no", timeout_s=30.0)
    with pytest.raises(NotSent, match="(?i)not authori"):
        sent(make_way(wrong, "harbour"))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # paho drops the socket unclosed
def test_mosquitto_is_spoken_to_by_tls_with_its_certificate_checked(tmp_path):
    if mosquitto_server.find() is None:
        pytest.skip(mosquitto_server.MISSING)
    own = certificates.make(tmp_path)
    broker = Mosquitto(tmp_path, free_ports(1)[0], tls=own)
    broker.start()
    try:
        way = make_way(section(broker, tls=True, ca_file=own[0]), "harbour")
        until(lambda: is_sent(way))
        way.close()
        with pytest.raises(NotSent):  # by the system's authorities nobody knows it
            sent(make_way(section(broker, tls=True, timeout_s=2.0), "harbour"))
    finally:
        broker.stop()


def is_sent(way):
    try:
        way.send(MESSAGE)
    except NotSent:
        return False
    return True


@pytest.fixture(params=["smtps", "starttls"])
def mail(request, tmp_path):
    """(port, certificate, folder of mails) of a mail server."""
    pytest.importorskip("aiosmtpd")
    own, folder = certificates.make(tmp_path), tmp_path / "mails"
    folder.mkdir()
    command = [sys.executable, mail_process.__file__, str(folder), request.param, *own]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        yield request.param, int(server.stdout.readline()), own[0], folder
        server.kill()


def mail_section(port, ca_file, monkeypatch, how, **more):
    """Settings for the server; 465 is what makes it SMTPS, so the port is brought there."""
    options = {
        "user": "station",
        "password": "s3cret",
        "sender": "a@station.test",
        "to": ["b@test"],
        "tls": True,
    } | more
    if how == "smtps":
        monkeypatch.setattr("stillwatch.tools.station.tell.ways.SMTPS_PORT", port)
    return TellSection(kind="email", host="localhost", port=port, ca_file=ca_file, **options)


def test_a_mail_server_with_tls_takes_the_mail_after_the_login(mail, monkeypatch):
    how, port, ca_file, folder = mail
    sent(make_way(mail_section(port, ca_file, monkeypatch, how), "harbour"))
    (file,) = pathlib.Path(folder).iterdir()
    found = email.message_from_bytes(file.read_bytes(), policy=email.policy.default)
    assert (found["From"], found["To"], found["Message-ID"]) == (
        "a@station.test",
        "b@test",
        "<cam1-5-new@station.test>",
    )
    assert found["Subject"].startswith("cam1: something new")
    assert [part.get_content() for part in found.iter_attachments()] == [MESSAGE.picture]


def test_a_mail_server_of_an_unknown_certificate_gets_nothing(mail, monkeypatch):
    how, port, _, folder = mail
    with pytest.raises(NotSent, match="(?i)certificate") as told:
        sent(make_way(mail_section(port, "", monkeypatch, how), "harbour"))
    assert not told.value.is_final
    assert not list(pathlib.Path(folder).iterdir())


def test_a_wrong_password_for_mail_is_said_and_tried_again(mail, monkeypatch):
    how, port, ca_file, _ = mail
    with pytest.raises(NotSent, match="535") as told:
        sent(make_way(mail_section(port, ca_file, monkeypatch, how, password="no"), "harbour"))
    assert not told.value.is_final
