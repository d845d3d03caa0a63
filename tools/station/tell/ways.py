"""The ways out: how one message is handed to a webhook, an MQTT broker, a mail server, a command.

Used by tools/station/tell/teller.py, each by one thread. A way that could not hand it over raises `NotSent`; whether
it is tried again is not its business.
"""

import email.message
import email.utils
import hashlib
import hmac
import http.client
import json
import smtplib
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any, Protocol

from stillwatch.base import __version__, scrub
from stillwatch.runs import how_rare
from stillwatch.tools.shared import words
from stillwatch.tools.station.settings import TellSection

_LATER = (408, 425, 429)  # of HTTP's refusals those that say: come again
SMTPS_PORT = 465  # there TLS is spoken from the first byte on
_READ_BYTES = 4096


class NotSent(Exception):
    """A message was not handed over. `is_final`: trying again would be refused again."""

    def __init__(self, text: str, *, is_final: bool = False):
        super().__init__(scrub(text)[:300])
        self.is_final = is_final


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message: its id, its JSON, and the alert's picture (JPEG) where there is one."""

    uid: str
    body: str
    picture: bytes = b""

    @property
    def fields(self) -> dict[str, Any]:
        """What the JSON says."""
        return json.loads(self.body)


class Way(Protocol):
    """How messages go out."""

    def send(self, message: Outgoing) -> None:
        """Hand a message over, or raise NotSent."""
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_args: Any, **_named: Any) -> None:
        return None  # a signed message goes where it was addressed to, or nowhere


class Webhook:
    """POSTs the JSON, signed: X-Stillwatch-Signature is sha256=HMAC-SHA-256(secret, timestamp + "." + body) in hex."""

    def __init__(self, section: TellSection):
        self._section = section
        context = ssl.create_default_context(cafile=section.ca_file or None)
        self._opener = urllib.request.build_opener(_NoRedirect, urllib.request.HTTPSHandler(context=context))

    def send(self, message: Outgoing) -> None:
        """POST it; 2xx is success, 4xx but 408, 425 and 429 is final."""
        body, stamp = message.body.encode(), str(int(time.time()))
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"stillwatch/{__version__}",
            "X-Stillwatch-Id": message.uid,
            "X-Stillwatch-Timestamp": stamp,
        }
        if self._section.secret:
            headers["X-Stillwatch-Signature"] = signature(self._section.secret, stamp, body)
        request = urllib.request.Request(self._section.url, data=body, headers=headers, method="POST")
        try:
            with self._opener.open(request, timeout=self._section.timeout_s) as answer:
                answer.read(_READ_BYTES)
        except urllib.error.HTTPError as error:
            with error:
                final = 400 <= error.code < 500 and error.code not in _LATER
                raise NotSent(f"answered {error.code} {error.reason}", is_final=final) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise NotSent(str(getattr(error, "reason", "") or error) or type(error).__name__) from None

    def close(self) -> None:
        """Every message has a connection of its own."""


def signature(secret: str, stamp: str, body: bytes) -> str:
    """Return what X-Stillwatch-Signature holds."""
    return "sha256=" + hmac.new(secret.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()


class Email:
    """Sends one mail a message; its Message-ID is made of the message's id."""

    def __init__(self, section: TellSection, station: str):
        self._section, self._station = section, station

    def send(self, message: Outgoing) -> None:
        """Hand it to the mail server; 5xx answers are final."""
        section = self._section
        mail = self._mail(message)
        context = ssl.create_default_context(cafile=section.ca_file or None)
        port = section.port or (587 if section.tls else 25)
        try:
            if port == SMTPS_PORT:
                server: smtplib.SMTP = smtplib.SMTP_SSL(section.host, port, timeout=section.timeout_s, context=context)
            else:
                server = smtplib.SMTP(section.host, port, timeout=section.timeout_s)
            with server:
                if section.tls and port != SMTPS_PORT:
                    server.starttls(context=context)
                if section.user:
                    server.login(section.user, section.password)
                server.send_message(mail)
        except smtplib.SMTPRecipientsRefused as error:
            final = all(code >= 500 for code, _ in error.recipients.values())
            raise NotSent(f"recipients refused: {error.recipients}", is_final=final) from None
        except smtplib.SMTPResponseException as error:
            text = (
                error.smtp_error.decode("utf-8", "replace") if isinstance(error.smtp_error, bytes) else error.smtp_error
            )
            is_login = isinstance(error, smtplib.SMTPAuthenticationError)
            raise NotSent(f"{error.smtp_code} {text}", is_final=error.smtp_code >= 500 and not is_login) from None
        except (OSError, smtplib.SMTPException) as error:
            raise NotSent(str(error) or type(error).__name__) from None

    def close(self) -> None:
        """Every message has a connection of its own."""

    def _mail(self, message: Outgoing) -> email.message.EmailMessage:
        fields = message.fields
        mail = email.message.EmailMessage()
        mail["From"], mail["To"] = self._section.sender, ", ".join(self._section.to)
        mail["Subject"] = f"{fields.get('agent', self._station)}: {headline(fields)}"
        mail["Date"] = email.utils.formatdate(usegmt=True)
        domain = self._section.sender.rpartition("@")[2].strip("<> ") or "stillwatch"
        mail["Message-ID"] = f"<{message.uid}@{domain}>"
        mail["X-Stillwatch-Id"] = message.uid
        lines = [f"{name.replace('_', ' ')}: {value}" for name, value in fields.items()]
        mail.set_content("\n".join([headline(fields), "", *lines, ""]))
        if message.picture:
            mail.add_attachment(message.picture, maintype="image", subtype="jpeg", filename=f"{message.uid}.jpg")
        return mail


class Command:
    """Runs a program with the JSON on its standard input; anything but exit code 0 is a failure."""

    def __init__(self, section: TellSection):
        self._section = section

    def send(self, message: Outgoing) -> None:
        """Run it to its end, no longer than timeout_s."""
        try:
            done = subprocess.run(
                self._section.command,
                input=message.body.encode(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                timeout=self._section.timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise NotSent(f"did not end within {self._section.timeout_s:g} s") from None
        except OSError as error:
            raise NotSent(f"{self._section.command[0]}: {error.strerror}") from None
        if done.returncode:
            last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or [""]
            raise NotSent(f"exit code {done.returncode} {last[0]}".strip())

    def close(self) -> None:
        """Nothing is kept open."""


def headline(fields: dict[str, Any]) -> str:
    """Return an alert in a few words."""
    if fields.get("phase") == "test":
        return "a test of the station's notifications"
    title = words.title_of(str(fields.get("kind", ""))).lower()
    rare = how_rare(fields)
    before = {"update": "still: ", "end": "over: "}.get(str(fields.get("phase")), "")
    return " ".join(f"{before}{title}{', ' * bool(rare)}{rare}".replace("\u202f", " ").split())
