"""A certificate of a test's own for this machine's loopback."""

import shutil
import subprocess

import pytest


def make(folder):
    """Return the paths of a certificate that signs itself and of its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed (Debian: apt install openssl)")
    certificate, key = folder / "own.pem", folder / "own.key"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost".split()
    names = "subjectAltName=DNS:localhost,IP:127.0.0.1"
    files = ["-addext", names, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command, *files], check=True, stderr=subprocess.DEVNULL)
    return str(certificate), str(key)
