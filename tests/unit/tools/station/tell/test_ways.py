"""Each way hands a message over as its receivers expect it, and says why where it could not."""

import email
import hashlib
import hmac
import json
import socket

import pytest
from hearing import until
from receivers import Broker, Mail, Web

from stillwatch.tools.station.settings import TellSection
from stillwatch.tools.station.tell import NotSent, Outgoing, make_way

BODY = {"id": "cam1-5-new", "agent": "cam1", "phase": "new", "kind": "novelty", "rarity": 500.0, "alert": 5}
MESSAGE = Outgoing("cam1-5-new", json.dumps(BODY), b"\xff\xd8 a picture")


def sent(section, message=MESSAGE):
    way = make_way(section, "harbour")
    try:
        way.send(message)
    finally:
        way.close()


def test_a_webhook_gets_signed_json_with_its_id():
    with Web() as web:
        sent(TellSection(kind="webhook", url=web.url, secret="s3cret"))
    ((headers, body),) = web.requests
    assert json.loads(body) == BODY
    assert headers["x-stillwatch-id"] == "cam1-5-new"
    signed = hmac.new(b"s3cret", headers["x-stillwatch-timestamp"].encode() + b"." + body, hashlib.sha256).hexdigest()
    assert headers["x-stillwatch-signature"] == f"sha256={signed}"


@pytest.mark.parametrize(
    ("code", "final"), [(500, False), (503, False), (429, False), (302, False), (400, True), (401, True)]
)
def test_what_a_webhook_refuses_for_good_is_not_tried_again(code, final):
    with Web([code]) as web, pytest.raises(NotSent, match=str(code)) as told:
        sent(TellSection(kind="webhook", url=web.url))
    assert told.value.is_final is final
    assert len(web.requests) == 1


def test_a_webhook_that_is_not_there_is_tried_again():
    with pytest.raises(NotSent, match="refused") as told:
        sent(TellSection(kind="webhook", url="http://127.0.0.1:9/"))
    assert not told.value.is_final


def test_a_mail_says_it_in_words_with_the_picture_and_one_id():
    with Mail() as mail:
        sent(
            TellSection(
                kind="email", host="127.0.0.1", port=mail.port, sender="a@station.test", to=["b@test", "c@test"]
            )
        )
    found = email.message_from_bytes(mail.mails[0])
    assert found["Message-ID"] == "<cam1-5-new@station.test>"
    assert found["Subject"].startswith("cam1: ")
    assert "one frame in 500" in found["Subject"]
    parts = {part.get_content_type(): part.get_payload(decode=True) for part in found.walk()}
    assert parts["image/jpeg"] == MESSAGE.picture
    assert b"agent: cam1" in parts["text/plain"]


def test_a_mail_whose_recipients_are_refused_is_given_up():
    with Mail() as mail, pytest.raises(NotSent, match="no such user") as told:
        sent(TellSection(kind="email", host="127.0.0.1", port=mail.port, sender="a@test", to=["nobody@test"]))
    assert told.value.is_final


def test_texts_of_an_agent_make_no_mail_headers():
    message = Outgoing("u", json.dumps({**BODY, "kind": "x\r\nBcc: evil@test"}))
    with Mail() as mail:
        sent(TellSection(kind="email", host="127.0.0.1", port=mail.port, sender="a@test", to=["b@test"]), message)
    assert email.message_from_bytes(mail.mails[0])["Bcc"] is None


def test_mqtt_tells_home_assistant_where_to_look_and_what_is_new():
    with Broker() as broker:
        sent(TellSection(kind="mqtt", host="127.0.0.1", port=broker.port, phases=("new", "end")))
        (discovery,) = broker.on("homeassistant/binary_sensor/stillwatch_harbour_cam1/config")
        told = json.loads(discovery)
        assert json.loads(broker.on(told["json_attributes_topic"])[0]) == BODY
        assert broker.on(told["state_topic"]) == ["ON"]
        assert broker.on(told["availability_topic"])[0] == "online"
        assert broker.on(told["availability_topic"])[-1] == "offline"


def test_mqtt_leaves_a_will_and_comes_back():
    with Broker() as broker:
        way = make_way(TellSection(kind="mqtt", host="127.0.0.1", port=broker.port), "harbour")
        way.send(MESSAGE)
        broker.cut()
        until(lambda: "offline" in broker.on("stillwatch/station"))
        until(lambda: broker.on("stillwatch/station").count("online") == 2)
        way.send(MESSAGE)
        assert len(broker.on("stillwatch/cam1/alert")) == 2
        way.close()


def test_mqtt_without_a_broker_is_tried_again():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(NotSent, match="no connection") as told:
            sent(TellSection(kind="mqtt", host="127.0.0.1", port=taken.getsockname()[1], timeout_s=0.3))
    assert not told.value.is_final


def test_a_command_gets_the_message_on_its_standard_input(tmp_path):
    sent(TellSection(kind="command", command=["sh", "-c", f"cat > {tmp_path}/told"]))
    assert json.loads((tmp_path / "told").read_text()) == BODY


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["sh", "-c", "echo no >&2; exit 3"], "exit code 3 no"),
        (["/no/such"], "No such file"),
        (["sleep", "9"], "within"),
    ],
)
def test_a_command_that_fails_says_how(command, words):
    with pytest.raises(NotSent, match=words):
        sent(TellSection(kind="command", command=command, timeout_s=0.3))
