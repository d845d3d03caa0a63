"""Where the page may be served: loopback as it is, any other address only with users and with TLS in front of it.

Called before the station listens. It must not listen itself.
"""

import ipaddress
import pathlib
import ssl
from dataclasses import dataclass

from stillwatch.base import ConfigError


@dataclass(frozen=True, slots=True)
class Listening:
    """Where and how the page is served; the `[page]` section of the station's settings."""

    host: str = "127.0.0.1"
    port: int = 8470
    tls_certificate: str = ""
    tls_key: str = ""
    behind_proxy: bool = False
    plain_http: bool = False


def is_loopback(host: str) -> bool:
    """Whether a host's name or address is this machine's own loopback."""
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def check_listening(listening: Listening, *, n_users: int) -> None:
    """Raise ConfigError with every reason why the page must not be served so."""
    problems = []
    where = f"page at {listening.host}:{listening.port}"
    if bool(listening.tls_certificate) != bool(listening.tls_key):
        problems.append(f"{where}: tls_certificate and tls_key go together")
    elif listening.tls_certificate:
        problems += _tls_problems(listening)
    is_reached_from_outside = not is_loopback(listening.host) or listening.behind_proxy
    if is_reached_from_outside and not n_users:
        problems.append(
            f"{where}: others can reach it and there is no user; add one first: "
            "stillwatch station user add NAME --role administer"
        )
    is_plain = not (listening.tls_certificate or listening.behind_proxy or listening.plain_http)
    if is_reached_from_outside and is_plain:
        problems.append(
            f"{where}: passwords would cross the network in clear; set tls_certificate and tls_key, or behind_proxy = "
            "true where a proxy adds TLS, or plain_http = true on a network that you trust"
        )
    if problems:
        raise ConfigError(problems)


def _tls_problems(listening: Listening) -> list[str]:
    for name, path in (("tls_certificate", listening.tls_certificate), ("tls_key", listening.tls_key)):
        try:
            pathlib.Path(path).read_bytes()
        except OSError as error:
            return [f"page: {name} = {path}: cannot be read: {error.strerror}"]
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(listening.tls_certificate, listening.tls_key)
    except (ssl.SSLError, OSError) as error:
        return [f"page: {listening.tls_certificate} and {listening.tls_key} are no certificate and its key: {error}"]
    return []
