"""The way out by MQTT: alerts as JSON, and what Home Assistant needs to find the agents by itself.

Used by tools/station/tell/teller.py. Topics: PREFIX/station is online or (by last will) offline; PREFIX/AGENT/alert is
each message; PREFIX/AGENT/novelty is ON while something goes on.
"""

import json
import threading
from typing import Any

from stillwatch.tools.station.settings import TellSection
from stillwatch.tools.station.tell.ways import NotSent, Outgoing

OFF_AFTER_S = 60  # where ends are not told
QOS = 1


class Mqtt:
    """A connection to a broker that is kept, and made anew by itself.

    A message counts as sent when the broker has acknowledged it (QoS 1).
    """

    def __init__(self, section: TellSection, station: str):
        import paho.mqtt.client as paho

        self._section, self._station = section, station
        self._paho = paho
        self._connected, self._answered = threading.Event(), threading.Event()
        self._fault = ""
        self._announced: set[str] = set()
        self._client = paho.Client(
            paho.CallbackAPIVersion.VERSION2, client_id=f"stillwatch-{station}", clean_session=True
        )
        self._client.max_queued_messages_set(1000)
        self._client.will_set(self._topic("station"), "offline", qos=QOS, retain=True)
        if section.user:
            self._client.username_pw_set(section.user, section.password)
        if section.tls:
            self._client.tls_set(ca_certs=section.ca_file or None)
        self._client.on_connect, self._client.on_disconnect = self._on_connect, self._on_disconnect
        self._client.reconnect_delay_set(1, 60)
        self._is_started = False

    def send(self, message: Outgoing) -> None:
        """Publish it, and the agent's discovery where the broker has not had it since it connected."""
        self._require_connection()
        fields = message.fields
        agent = str(fields.get("agent", self._station))
        if self._section.discovery and fields.get("phase") != "test":
            self._announce(agent)
        self._publish(self._topic(agent, "alert"), message.body)
        if fields.get("phase") in ("new", "update", "end"):
            is_on = "OFF" if fields["phase"] == "end" else "ON"
            self._publish(self._topic(agent, "novelty"), is_on, retain="end" in self._section.phases)

    def close(self) -> None:
        """Say that we go, and go."""
        if self._connected.is_set():
            try:
                self._publish(self._topic("station"), "offline", retain=True)
            except NotSent:
                pass  # the last will says it
        self._client.disconnect()
        self._client.loop_stop()

    def _topic(self, *parts: str) -> str:
        return "/".join([self._section.topic.strip("/"), *parts])

    def _require_connection(self) -> None:
        if not self._is_started:
            self._is_started = True
            port = self._section.port or (8883 if self._section.tls else 1883)
            try:
                self._client.connect_async(self._section.host, port, keepalive=30)
            except ValueError as error:
                self._is_started = False
                raise NotSent(str(error), is_final=True) from None
            self._client.loop_start()
        self._answered.wait(self._section.timeout_s)
        if not self._connected.is_set():
            self._answered.clear()
            raise NotSent(f"no connection to {self._section.host}: {self._fault or 'nobody answers'}")

    def _publish(self, topic: str, text: str, *, retain: bool = False) -> None:
        info = self._client.publish(topic, text, qos=QOS, retain=retain)
        try:
            info.wait_for_publish(self._section.timeout_s)
        except (RuntimeError, ValueError) as error:
            raise NotSent(str(error)) from None
        if not info.is_published():
            raise NotSent("the broker did not acknowledge it")

    def _announce(self, agent: str) -> None:
        if agent in self._announced:
            return
        topic = f"{self._section.discovery.strip('/')}/binary_sensor/stillwatch_{self._station}_{agent}/config"
        self._publish(topic, json.dumps(self._discovery(agent)), retain=True)
        self._announced.add(agent)

    def _discovery(self, agent: str) -> dict[str, Any]:
        off = {} if "end" in self._section.phases else {"off_delay": OFF_AFTER_S}
        return {
            "name": "Something new",
            "unique_id": f"stillwatch_{self._station}_{agent}_novelty",
            "state_topic": self._topic(agent, "novelty"),
            "json_attributes_topic": self._topic(agent, "alert"),
            "availability_topic": self._topic("station"),
            "payload_on": "ON",
            "payload_off": "OFF",
            "icon": "mdi:eye-outline",
            "device": {"identifiers": [f"stillwatch_{agent}"], "name": agent, "manufacturer": "Stillwatch"},
            **off,
        }

    def _on_connect(self, client: Any, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:
        if reason.is_failure:
            self._fault = str(reason)
            self._answered.set()  # nobody need wait: it would not have us
            return
        self._announced.clear()
        client.publish(self._topic("station"), "online", qos=QOS, retain=True)
        self._connected.set()
        self._answered.set()

    def _on_disconnect(self, _client: Any, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:
        if self._connected.is_set():  # else it refused us, and has said why
            self._fault = str(reason)
            self._connected.clear()
            self._answered.clear()
