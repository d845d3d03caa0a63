"""Mosquitto as a process of a test's own: a broker that others wrote."""

import contextlib
import shutil
import socket
import subprocess
import time

import paho.mqtt.client as paho

MISSING = "mosquitto is not installed (Debian: apt install mosquitto)"
USER, PASSWORD = "station", "s3cret"


def find(name="mosquitto"):
    """Return the path of one of its programs, or None."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")


class Mosquitto:
    """The broker on one port of loopback, with a user; `certificate` and key: with TLS."""

    def __init__(self, folder, port, tls=()):
        self.port = port
        passwords, self._settings = folder / "passwords", folder / "mosquitto.conf"
        passwords.touch(mode=0o600)
        subprocess.run([find("mosquitto_passwd"), "-b", passwords, USER, PASSWORD], check=True)
        lines = ["user root", f"listener {port} 127.0.0.1", "allow_anonymous false", f"password_file {passwords}"]
        lines += [f"certfile {tls[0]}", f"keyfile {tls[1]}"] if tls else []
        self._settings.write_text("\n".join(lines) + "\n")
        self._process = None

    def start(self):
        """Begin to listen; return when it does."""
        self._process = subprocess.Popen(
            [find(), "-c", self._settings], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        end = time.monotonic() + 30
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1.0):
                return
            time.sleep(0.02)
        raise AssertionError("mosquitto does not listen")

    def stop(self):
        """End at once, as in a power cut."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@contextlib.contextmanager
def listening(port, topic="#"):
    """Yield a list of (topic, text, retained) of what a subscriber gets."""
    heard, is_in = [], []
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, client_id="listener")
    client.username_pw_set(USER, PASSWORD)
    client.on_message = lambda _c, _d, message: heard.append((message.topic, message.payload.decode(), message.retain))
    client.on_connect = lambda client, *_: client.subscribe(topic, qos=1)
    client.on_subscribe = lambda *_: is_in.append(True)
    client.reconnect_delay_set(1, 1)
    client.connect_async("127.0.0.1", port)
    client.loop_start()
    end = time.monotonic() + 30
    while not is_in and time.monotonic() < end:
        time.sleep(0.02)
    try:
        yield heard
    finally:
        client.disconnect()
        client.loop_stop()
