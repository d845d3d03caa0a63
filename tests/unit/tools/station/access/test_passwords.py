"""Passwords and limits."""

import pytest

from stillwatch.base import UsageError
from stillwatch.tools.station.access import Passwords, RateLimit
from stillwatch.tools.station.access.passwords import checked_name


def test_a_hash_is_argon2id_and_fits_its_password_alone():
    passwords = Passwords()
    stored = passwords.hashed("correct horse battery")
    assert stored.startswith("$argon2id$")
    assert "correct" not in stored
    assert passwords.verify(stored, "correct horse battery")
    assert not passwords.verify(stored, "correct horse batterz")
    assert not passwords.verify(None, "nobody has this password")
    assert not passwords.verify("no hash", "correct horse battery")
    assert not passwords.verify(stored, "x" * 100_000)


@pytest.mark.parametrize("password", ["", "short", "ü" * 600])
def test_too_short_and_too_long_passwords_are_not_taken(password):
    with pytest.raises(UsageError, match="password"):
        Passwords().hashed(password)


@pytest.mark.parametrize("name", ["", "Ann", "../ann", "a b", "<script>", "a" * 33, "-a"])
def test_a_user_name_is_short_and_plain(name):
    with pytest.raises(UsageError, match="user name"):
        checked_name(name)


def test_a_bucket_empties_and_fills_again_by_the_clock():
    at = [0.0]
    limit = RateLimit(per_minute=6, burst=2, monotonic=lambda: at[0])
    assert [limit.wait_s("a") for _ in range(3)] == [0.0, 0.0, 10.0]
    assert limit.wait_s("b") == 0.0
    at[0] = 10.0
    assert [limit.wait_s("a"), limit.wait_s("a")] == [0.0, 10.0]


def test_a_limit_remembers_no_more_keys_than_it_may():
    limit = RateLimit(per_minute=1, burst=1, monotonic=lambda: 0.0)
    for i in range(10_001):
        limit.wait_s(str(i))
    assert limit.wait_s("10000") > 0.0
    assert limit.wait_s("0") == 0.0, "forgotten"
