"""Passwords: argon2id hashes, one rule for what a password is, and the same work for users that do not exist.

Used by access/gate.py at logins and by access/users.py. A password is never kept, logged or shown.
"""

import re
import threading

from stillwatch.base import UsageError

SHORTEST, LONGEST_BYTES = 10, 1024
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,31}")
HASHES_AT_ONCE = 2  # 64 MiB and a core each: a flood of logins must not take the station's memory


def checked_name(name: str) -> str:
    """Return a user's name, or raise UsageError: 1 to 32 of a-z, 0-9, dot, dash, underscore."""
    if not NAME.fullmatch(name):
        raise UsageError(f"user name {name[:40]!r}: 1 to 32 of a-z 0-9 . _ - beginning with a letter or digit")
    return name


def checked_password(password: str) -> str:
    """Return a password that may be set, or raise UsageError."""
    if len(password) < SHORTEST:
        raise UsageError(f"the password has {len(password)} characters, at least {SHORTEST} are needed")
    n_bytes = len(password.encode("utf-8", "surrogatepass"))
    if n_bytes > LONGEST_BYTES:
        raise UsageError(f"the password has {n_bytes} bytes, at most {LONGEST_BYTES} are taken")
    return password


class Passwords:
    """Hashes and verifies with argon2id; as given, RFC 9106's second recommended option: 64 MiB, 3 passes, 4 lanes."""

    def __init__(self, memory_kib: int = 65_536, passes: int = 3) -> None:
        from argon2 import PasswordHasher

        self._hasher = PasswordHasher(time_cost=passes, memory_cost=memory_kib)
        self._turn = threading.Semaphore(HASHES_AT_ONCE)
        self._of_nobody = self._hasher.hash("nobody has this password")

    def hashed(self, password: str) -> str:
        """Return the hash to be stored."""
        with self._turn:
            return self._hasher.hash(checked_password(password))

    def verify(self, stored: str | None, password: str) -> bool:
        """Whether the password fits. None, for a user who does not exist, costs as much time and is False."""
        from argon2.exceptions import Argon2Error, InvalidHashError

        if len(password.encode("utf-8", "surrogatepass")) > LONGEST_BYTES:
            return False
        with self._turn:
            try:
                fits = self._hasher.verify(stored or self._of_nobody, password)
            except (Argon2Error, InvalidHashError, UnicodeEncodeError):
                return False
        return bool(fits) and stored is not None

    def is_outdated(self, stored: str) -> bool:
        """Whether a hash was made with weaker parameters than today's."""
        return self._hasher.check_needs_rehash(stored)
