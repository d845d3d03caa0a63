"""Many subscribers served by one thread: one context, one wait for whoever has something.

Used by a station that hears a fleet. It must not read from any socket: each subscriber does that itself.
"""

from collections.abc import Sequence

import zmq

from stillwatch.transport.base import Clock
from stillwatch.transport.live.subscriber import Subscriber


def wait_any(subscribers: Sequence[Subscriber], clock: Clock, timeout_ms: int) -> list[Subscriber]:
    """Return the subscribers whose `recv(0)` has something to do, after at most `timeout_ms`; empty if none has."""
    waiting = [subscriber for subscriber in subscribers if subscriber.is_waiting]
    now_ns = clock.monotonic_ns()
    due_ms = min((subscriber.timer_ns - now_ns for subscriber in subscribers), default=10**9) // 1_000_000
    poller = zmq.Poller()
    owners: dict[zmq.Socket, Subscriber] = {}
    for subscriber in subscribers:
        for socket in subscriber.sockets:
            owners[socket] = subscriber
            poller.register(socket, zmq.POLLIN)
    ready = poller.poll(0 if waiting else max(0, min(timeout_ms, due_ms + 1)))
    now_ns = clock.monotonic_ns()
    found = {id(owners[socket]): owners[socket] for socket, _ in ready}
    found |= {id(subscriber): subscriber for subscriber in waiting}
    found |= {id(subscriber): subscriber for subscriber in subscribers if subscriber.timer_ns <= now_ns}
    return list(found.values())
