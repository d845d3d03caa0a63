"""A mail server with TLS and a login in a process of its own, which is aiosmtpd.

`mail_process.py FOLDER smtps|starttls CERTIFICATE KEY`: prints its port; each mail becomes a file of FOLDER. The user
is "station", the password "s3cret".
"""

import asyncio
import pathlib
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult


class Keeper:
    """Writes what comes into the folder."""

    def __init__(self, folder):
        self._folder = pathlib.Path(folder)

    async def handle_DATA(self, server, session, envelope):
        name = f"{len(list(self._folder.iterdir()))}.eml"
        (self._folder / name).write_bytes(envelope.original_content)
        return "250 taken"


def is_known(_server, _session, _envelope, _mechanism, data):
    is_right = (data.login, data.password) == (b"station", b"s3cret")
    return AuthResult(success=is_right, handled=False)  # the server answers


async def main(folder, how, certificate, key):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    options = {"auth_required": True, "authenticator": is_known, "hostname": "localhost"}
    if how == "starttls":
        options |= {"tls_context": context, "require_starttls": True}
    else:
        options |= {"auth_require_tls": False}  # all of it is inside of TLS already
    server = await asyncio.get_running_loop().create_server(
        lambda: SMTP(Keeper(folder), **options), "127.0.0.1", 0, ssl=context if how == "smtps" else None
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
