"""What every test gets: fixed seeds, no secrets, property tests without deadlines.

What transport tests ask for: sockets that cannot leak."""

import gc
import os
import random

import hypothesis
import pytest
import zmq

from stillwatch.base import secrets

# Parsers of commands ask gettext for each of their words, which looks for translations on the disk each time; not in C.
os.environ["LANGUAGE"] = "C"

# No deadline: on a machine with other work a first example that compiles or waits takes as long as it takes.
hypothesis.settings.register_profile("stillwatch", deadline=None)
hypothesis.settings.load_profile("stillwatch")

# Modules and tests stay to the end: to walk over them again and again takes a seventh of collection.
gc.disable()


def pytest_collection_finish():
    """Count all that was collected as staying, and look for garbage among what comes after it."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _seeded():
    """Code under test seeds itself; this is for libraries that use the global generator."""
    random.seed(0)


@pytest.fixture(autouse=True)
def _no_secrets_of_other_tests(monkeypatch):
    """What one test registers as a password must not be scrubbed from the texts of the next."""
    monkeypatch.setattr(secrets, "_known", set())
    monkeypatch.setattr(secrets, "_ordered", ())


@pytest.fixture
def tracked_zmq(monkeypatch):
    """Fail the test that leaves a ZeroMQ context open, and close it, so that no later test waits for it."""
    made: list[zmq.Context] = []

    class Tracked(zmq.Context):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            made.append(self)

    monkeypatch.setattr(zmq, "Context", Tracked)
    yield
    leaked = [context for context in made if not context.closed]
    for context in leaked:
        context.destroy(linger=0)
    assert not leaked, f"{len(leaked)} ZeroMQ contexts were left open"
