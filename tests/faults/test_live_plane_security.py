"""Strangers get nothing: wrong key, no key, a NULL client; and the agent that would let them in does not start."""

import subprocess
import sys

import pytest
import zmq
from live_agent import Agent

from stillwatch.base.clock import RealClock
from stillwatch.transport.live.control import ControlServer
from stillwatch.transport.live.publisher import Publisher
from stillwatch.transport.live.security import generate_keys, load_client_keys, load_server_keys
from stillwatch.transport.wire.errors import SecurityError

pytestmark = [pytest.mark.usefixtures("tracked_zmq"), pytest.mark.slow]

# A stranger in a process of its own: asks all three sockets, prints how many messages came back.
STRANGER = """
import sys, time, zmq
data, snapshot, control, mode, server, public, secret = sys.argv[1:]
context = zmq.Context()
def socket(kind, endpoint):
    s = context.socket(kind)
    s.setsockopt(zmq.LINGER, 0)
    if mode == "curve":
        s.curve_serverkey, s.curve_publickey, s.curve_secretkey = server.encode(), public.encode(), secret.encode()
    elif mode == "plain":
        s.plain_username, s.plain_password = b"admin", b"admin"
    if kind == zmq.SUB:
        s.setsockopt(zmq.SUBSCRIBE, b"")
    s.connect(endpoint)
    return s
sub, page, ctl = socket(zmq.SUB, data), socket(zmq.DEALER, snapshot), socket(zmq.DEALER, control)
import msgpack
def say(s, words):  # who is turned away before that has nobody to say it to, and would wait for ever
    s.setsockopt(zmq.SNDTIMEO, 500)
    try:
        s.send(msgpack.packb(words))
    except zmq.Again:
        pass
say(page, {"id": "stranger", "epoch": 0, "stamp": 0})
say(ctl, {"id": "stranger", "command": "status"})
poller = zmq.Poller()
for s in (sub, page, ctl):
    poller.register(s, zmq.POLLIN)
names, seen, end = {sub: "data", page: "snapshot", ctl: "control"}, set(), time.time() + 1.5
while time.time() < end:
    for s, _ in poller.poll(100):
        s.recv_multipart()
        seen.add(names[s])
print(" ".join(sorted(seen)))
"""


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """A folder with keys of the agent, a reader, a commander and a stranger; the allow-list names two of them."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("agent", "reader", "commander", "stranger", "other"):
        generate_keys(folder, name)
    reader, commander = ((folder / f"{name}.pub").read_text() for name in ("reader", "commander"))
    (folder / "allow.toml").write_text(f"[data]\n{reader}{commander}\n[control]\n{commander}")
    return folder


@pytest.fixture(scope="module")
def agent(keys):
    with Agent(key_file=str(keys / "agent.key"), allow_file=str(keys / "allow.toml")) as running:
        running.ask(do="send", kind="status")
        yield running


def visit(agent, mode, keys=None, name="", server="agent"):
    """Run a stranger; return the names of the sockets that answered it, while the agent publishes."""
    triple = ["", "", ""]
    if mode == "curve":
        pair = load_client_keys(str(keys / f"{name}.key"), str(keys / f"{server}.pub"))
        triple = [pair.server.decode(), pair.public.decode(), pair.secret.decode()]
    endpoints = [agent.endpoints[role] for role in ("data", "snapshot", "control")]
    process = subprocess.Popen(
        [sys.executable, "-c", STRANGER, *endpoints, mode, *triple], stdout=subprocess.PIPE, text=True
    )
    while process.poll() is None:
        agent.ask(do="send", kind="score", count=3, pause_s=0.02)
    out, _ = process.communicate(timeout=10)
    assert process.returncode == 0
    return out.split()


def test_key_under_both_headings_may_read_and_command(agent, keys):
    assert visit(agent, "curve", keys, "commander") == ["control", "data", "snapshot"]


def test_key_under_data_may_read_and_not_command(agent, keys):
    assert visit(agent, "curve", keys, "reader") == ["data", "snapshot"]


def test_key_that_is_on_no_list_gets_nothing(agent, keys):
    assert visit(agent, "curve", keys, "stranger") == []


def test_client_that_takes_another_for_the_agent_gets_nothing(agent, keys):
    assert visit(agent, "curve", keys, "reader", server="other") == []


@pytest.mark.parametrize("mode", ["null", "plain"])
def test_client_without_a_key_gets_nothing(agent, mode):
    assert visit(agent, mode) == []


@pytest.mark.parametrize(
    "endpoint", ["tcp://*:5570", "tcp://0.0.0.0:5570", "tcp://192.168.1.4:5570", "tcp://[::]:5570", "tcp://boat:5570"]
)
def test_open_endpoint_without_keys_is_refused_before_anything_is_bound(endpoint):
    with pytest.raises(SecurityError, match="can be reached from other machines"):
        Publisher(endpoint, "cam1")
    with pytest.raises(SecurityError, match="can be reached from other machines"):
        Publisher("tcp://127.0.0.1:0", "cam1", control=endpoint, clock=RealClock())
    with pytest.raises(SecurityError, match="can be reached from other machines"):
        ControlServer(endpoint, clock=RealClock())


@pytest.mark.parametrize("endpoint", ["tcp://127.0.0.1:1", "tcp://127.9.9.9:1", "tcp://[::1]:1", "ipc:///tmp/x"])
def test_endpoint_of_this_machine_needs_no_keys(endpoint):
    Publisher(endpoint, "cam1")


def test_secret_key_that_others_can_read_is_refused(keys, tmp_path):
    copy = tmp_path / "agent.key"
    copy.write_bytes((keys / "agent.key").read_bytes())
    copy.chmod(0o640)
    with pytest.raises(SecurityError, match="mode 0640"):
        load_server_keys(str(copy), str(keys / "allow.toml"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "lists no key"),
        ("[admin]\nx = 'y'", r"heading \[admin\]"),
        ("x = 'short'", "x is not a key"),
        ("x = 1", "x is not a key"),
        ("= =", "not a key file"),
    ],
)
def test_bad_allow_list_is_refused_with_its_cause(keys, tmp_path, text, words):
    (tmp_path / "allow.toml").write_text(text)
    with pytest.raises(SecurityError, match=words):
        load_server_keys(str(keys / "agent.key"), str(tmp_path / "allow.toml"))


def test_pair_that_does_not_belong_together_is_refused_without_showing_it(tmp_path):
    public, _ = zmq.curve_keypair()
    _, secret = zmq.curve_keypair()
    file = tmp_path / "bad.key"
    file.write_text(f'public = "{public.decode()}"\nsecret = "{secret.decode()}"\n')
    file.chmod(0o600)
    with pytest.raises(SecurityError, match="do not belong together") as caught:
        load_server_keys(str(file), str(file))
    assert secret.decode() not in str(caught.value)
    assert secret.decode() not in repr(caught.value)
