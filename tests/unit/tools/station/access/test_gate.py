"""Who is let in: users and roles, sessions, programs' tokens, forms of other sites, hosts, limits."""

import pytest

from stillwatch.tools.station.access import Gate, Passwords, Refused, Role, Visitor
from stillwatch.tools.station.access.gate import IDLE_S, LONGEST_S, digest_of, new_api_token

PASSWORD = "correct horse battery"


def light():
    """Hashing that costs a test nothing."""
    return Passwords(memory_kib=64, passes=1)


class Keeper:
    """Users and sessions in memory, as the gate asks for them."""

    def __init__(self):
        self.users, self.sessions, self.audit, self.begun = {}, {}, [], 0

    def add(self, name, role):
        self.users[name] = {"name": name, "role": role, "password": light().hashed(PASSWORD)}

    def user_count(self):
        return len(self.users)

    def user(self, name):
        return self.users.get(name)

    def set_password(self, name, hashed):
        self.users[name]["password"] = hashed
        return True

    def add_session(self, digest, user, kind, created_s, expires_s):
        self.sessions[digest] = {"user": user, "kind": kind, "used_s": created_s, "expires_s": expires_s}

    def session(self, digest):
        found = self.sessions.get(digest)
        return found and {**found, "role": self.users[found["user"]]["role"]}

    def touch_session(self, digest, used_s):
        self.sessions[digest]["used_s"] = used_s

    def end_session(self, digest):
        self.sessions.pop(digest, None)

    def add_audit(self, wall_s, user, address, act, subject, detail):
        self.audit.append((user, address, act, subject, detail))


class Now:
    def __init__(self):
        self.s = 1_000_000.0

    def __call__(self):
        return self.s


@pytest.fixture
def keeper():
    return Keeper()


@pytest.fixture
def now():
    return Now()


@pytest.fixture
def gate(keeper, now):
    return Gate(keeper, wall=now, monotonic=now, passwords=light)


def stranger(gate, address="10.0.0.9"):
    return gate.visitor(cookie="", authorization="", address=address)


def returning(gate, token):
    return gate.visitor(cookie=token, authorization="", address="10.0.0.9")


def status_of(call, *args, **kwargs):
    with pytest.raises(Refused) as caught:
        call(*args, **kwargs)
    return caught.value.status


def test_a_station_without_users_lets_the_local_person_do_everything(gate):
    assert stranger(gate).may(Role.ADMINISTER)


def test_a_station_that_others_can_reach_is_never_open(keeper, now):
    gate = Gate(keeper, wall=now, monotonic=now, passwords=light, allows_open=False)
    assert stranger(gate).role is None


def test_once_there_is_a_user_everybody_logs_in(gate, keeper, now):
    assert gate.is_open
    keeper.add("ann", "see")
    now.s += 10.0
    assert stranger(gate).role is None
    assert status_of(gate.require, stranger(gate), Role.SEE) == 401


def test_a_login_gives_a_new_token_and_the_users_role(gate, keeper):
    keeper.add("ann", "act")
    before = stranger(gate)
    token = gate.log_in(before, "ann", PASSWORD)
    after = returning(gate, token)
    assert (after.name, after.role) == ("ann", Role.ACT)
    assert token != before.token
    assert token not in keeper.sessions, "tokens are stored as digests only"
    assert digest_of(token) in keeper.sessions


@pytest.mark.parametrize(("name", "password"), [("ann", "wrong password"), ("bob", PASSWORD), ("a' or 1=1", PASSWORD)])
def test_wrong_names_and_passwords_are_refused_alike_and_written_down(gate, keeper, name, password):
    keeper.add("ann", "act")
    with pytest.raises(Refused) as caught:
        gate.log_in(stranger(gate), name, password)
    assert (caught.value.status, str(caught.value)) == (403, "Name or password is wrong.")
    assert keeper.audit[-1][1:4] == ("10.0.0.9", "login refused", name)


def test_guessing_is_slowed_down_by_address_and_by_name(gate, keeper):
    keeper.add("ann", "act")
    for _ in range(10):
        wait = gate.visitor(cookie="", authorization="", address="10.0.0.1")
        status = status_of(gate.log_in, wait, "no name!", PASSWORD)
    assert status in (403, 429)
    assert status_of(gate.log_in, wait, "ann", PASSWORD) == 429
    assert gate.log_in(stranger(gate, "10.0.0.2"), "ann", PASSWORD), "others are not kept out"


def test_a_session_ends_after_a_week_unused_and_after_a_month_in_any_case(gate, keeper, now):
    keeper.add("ann", "see")
    token = gate.log_in(stranger(gate), "ann", PASSWORD)
    now.s += IDLE_S - 1.0
    assert returning(gate, token).role is Role.SEE
    now.s += IDLE_S - 1.0
    assert returning(gate, token).role is Role.SEE, "it was used meanwhile"
    now.s += IDLE_S + 1.0
    assert returning(gate, token).role is None
    token = gate.log_in(stranger(gate), "ann", PASSWORD)
    for _ in range(int(LONGEST_S / IDLE_S) + 2):
        now.s += IDLE_S - 1.0
        last = returning(gate, token).role
    assert last is None


def test_logging_out_ends_the_session(gate, keeper):
    keeper.add("ann", "see")
    token = gate.log_in(stranger(gate), "ann", PASSWORD)
    gate.log_out(returning(gate, token))
    assert returning(gate, token).role is None


def test_roles_hold_what_the_lesser_ones_allow(gate):
    for role, allowed in (("see", 1), ("act", 2), ("administer", 3)):
        visitor = Visitor("ann", Role(role), "x" * 40)
        assert [visitor.may(needed) for needed in Role] == [True] * allowed + [False] * (3 - allowed)
        for needed in list(Role)[allowed:]:
            assert status_of(gate.require, visitor, needed) == 403


def test_a_program_comes_in_with_its_token_and_not_with_a_cookie(gate, keeper, now):
    keeper.add("ann", "see")
    token = new_api_token(keeper, "ann", now())
    by_header = gate.visitor(cookie="", authorization=f"Bearer {token}", address="")
    assert by_header.role is Role.SEE
    assert returning(gate, token).role is None, "a token for programs is no cookie"
    session = gate.log_in(stranger(gate), "ann", PASSWORD)
    assert gate.visitor(cookie="", authorization=f"Bearer {session}", address="").role is None


@pytest.mark.parametrize(
    "token", ["", "short", "x" * 500, "\x00" * 30, "ü" * 30, "\ud800" * 30, "'; drop table users;--"]
)
def test_a_token_that_nobody_gave_out_is_nobodys(gate, keeper, token):
    keeper.add("ann", "see")
    assert returning(gate, token).role is None
    assert gate.visitor(cookie="", authorization=f"Bearer {token}", address="").role is None


def test_a_form_needs_the_mark_of_the_visitors_own_session(gate):
    visitor = returning(gate, "x" * 40)
    gate.require_own_form(visitor, visitor.csrf, {"host": "localhost"})
    other = returning(gate, "y" * 40)
    for given in ("", "0" * 40, other.csrf, visitor.token):
        assert status_of(gate.require_own_form, visitor, given, {"host": "localhost"}) == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "localhost:8470", "origin": "http://evil.example"},
        {"host": "localhost:8470", "origin": "null"},
        {"host": "localhost:8470", "sec-fetch-site": "cross-site"},
        {"host": "localhost:8470", "sec-fetch-site": "same-site"},
    ],
)
def test_a_form_of_another_site_is_refused_even_with_the_mark(gate, headers):
    visitor = returning(gate, "x" * 40)
    assert status_of(gate.require_own_form, visitor, visitor.csrf, headers) == 403


def test_acts_are_limited_a_visitor(gate):
    visitor = returning(gate, "x" * 40)
    for _ in range(60):
        gate.require(visitor, Role.ACT)
    with pytest.raises(Refused) as caught:
        gate.require(visitor, Role.ACT)
    assert (caught.value.status, caught.value.retry_after_s) == (429, 0.5), "120 a minute"


@pytest.mark.parametrize(
    ("host", "is_known"),
    [
        ("localhost", True),
        ("localhost:8470", True),
        ("127.0.0.1:8470", True),
        ("[::1]:8470", True),
        ("station.localhost:80", True),
        ("evil.example:8470", False),
        ("127.0.0.1.evil.example", False),
        ("10.0.0.1:8470", False),
        ("", False),
        ("[::1", False),
    ],
)
def test_an_open_station_answers_on_loopback_names_only(gate, host, is_known):
    """A page elsewhere whose name is made to point at 127.0.0.1 would else read and command everything."""
    assert gate.is_host_known(host) is is_known


def test_a_station_whose_users_went_with_a_damaged_file_does_not_stand_open(gate, keeper, now):
    keeper.add("ann", "see")
    assert not gate.is_open
    keeper.users.clear()
    keeper.begun += 1
    now.s += 10.0
    assert stranger(gate).role is None
    keeper.add("ann", "see")
    now.s += 10.0
    assert not gate.is_open
    keeper.users.clear()  # an administrator who removes the last one opens it
    now.s += 10.0
    assert gate.is_open
