"""Many subscribers served by one thread: one context, one wait for whoever has something.

Used by a station that hears a fleet. It must not read from any socket: each subscriber does that itself.
"""

import selectors
from collections.abc import Iterable, Sequence

import zmq

from stillwatch.transport.base import Clock
from stillwatch.transport.live.subscriber import Subscriber

LOOK_NS = 1_000_000_000


class AnyOf:
    """Waits for whichever of many subscribers has something to do. Used by the one thread that reads them.

    ZeroMQ's own poll asks each socket at every call: for 200 agents that takes longer than to read what came. Here
    the kernel tells whose signal is set. A signal is taken away by whatever touches its socket, so those that were
    read since the last wait are asked themselves, and everybody once a second.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._selector = selectors.DefaultSelector()
        self._subscribers: list[Subscriber] = []
        self._sockets: dict[Subscriber, tuple[zmq.Socket, ...]] = {}
        self._signals: dict[Subscriber, list[int]] = {}
        self._timers: dict[Subscriber, int] = {}
        self._touched: list[Subscriber] = []
        self._looked_ns = 0

    def wait(self, subscribers: Sequence[Subscriber], timeout_ms: int) -> list[Subscriber]:
        """Return those whose `recv(0)` has something to do, after at most `timeout_ms`; empty if none has."""
        now_ns = self._clock.monotonic_ns()
        is_changed = self._subscribers != subscribers
        if is_changed:
            self._subscribers = list(subscribers)
            self._forget(set(self._sockets).difference(subscribers))
        if is_changed or now_ns - self._looked_ns >= LOOK_NS:
            self._looked_ns, self._touched = now_ns, self._subscribers
        self._follow(self._touched)
        found = dict.fromkeys(filter(self._has_something, self._touched))
        due_ms = (min(self._timers.values(), default=now_ns + 10**9) - now_ns) // 1_000_000
        patience_ms = 0 if found else max(0, min(timeout_ms, due_ms + 1))
        for key, _ in self._selector.select(patience_ms / 1000):
            subscriber, socket = key.data
            if subscriber not in found and _has_work(socket, subscriber.wanted):
                found[subscriber] = None
        now_ns = self._clock.monotonic_ns()
        found |= dict.fromkeys(subscriber for subscriber, timer_ns in self._timers.items() if timer_ns <= now_ns)
        self._touched = list(found)
        return self._touched

    def close(self) -> None:
        """Stop waiting; the subscribers stay open."""
        self._selector.close()

    def _has_something(self, subscriber: Subscriber) -> bool:
        if subscriber.is_waiting:
            return True
        return any([_has_work(socket, subscriber.wanted) for socket in self._sockets[subscriber]])

    def _follow(self, subscribers: Iterable[Subscriber]) -> None:
        """Take note of timers, and of sockets that were made anew."""
        changed = []
        for subscriber in subscribers:
            self._timers[subscriber] = subscriber.timer_ns
            if self._sockets.get(subscriber) != subscriber.sockets:
                changed.append(subscriber)
        self._forget(changed)  # before any is entered: a number of a closed one may be another's by now
        for subscriber in changed:
            self._timers[subscriber] = subscriber.timer_ns
            self._sockets[subscriber], self._signals[subscriber] = subscriber.sockets, []
            for socket in subscriber.sockets:
                signal = _number_of(socket, zmq.FD)
                self._selector.register(signal, selectors.EVENT_READ, (subscriber, socket))
                self._signals[subscriber].append(signal)

    def _forget(self, subscribers: Iterable[Subscriber]) -> None:
        for subscriber in subscribers:
            for signal in self._signals.pop(subscriber, ()):
                self._selector.unregister(signal)
            self._sockets.pop(subscriber, None)
            self._timers.pop(subscriber, None)


def _has_work(socket: zmq.Socket, wanted: int) -> bool:
    """Whether one of the wanted events is there; to ask takes the signal away."""
    return bool(_number_of(socket, zmq.EVENTS) & wanted)


def _number_of(socket: zmq.Socket, option: int) -> int:
    value = socket.getsockopt(option)
    assert isinstance(value, int), "an option that is a number"
    return value
