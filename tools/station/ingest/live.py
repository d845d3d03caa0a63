"""The ear of the live plane: any number of agents in one thread, each reconnecting for ever.

Made by tools/station/ingest/ingest.py. One agent that floods loses its own messages: each has a queue of its own and
its turn is short.
"""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from stillwatch.base import Clock
from stillwatch.tools.station.ingest.desk import Desk
from stillwatch.tools.station.ingest.scribe import Scribe
from stillwatch.tools.station.store import CLAIM_NS, LIVE, Claims
from stillwatch.transport.live import AnyOf, ClientKeys, Gap, Received, SharedContext, Subscriber, why_unreachable
from stillwatch.transport.wire import TransportError

_log = logging.getLogger("stillwatch.station")
A_TURN = 32  # messages of one agent before the others have theirs
WAIT_MS = 100
LOOK_NS = 1_000_000_000
PACE_NS = 10_000_000
GATHER_NS = 20_000_000  # alerts of so long go into one transaction
SILENT_S = 10.0
LATEST_S = 600.0  # after a stall of ours what waits is taken, late: thrown away, it would be lost
ASK_WHY_NS = 60_000_000_000


@dataclass(frozen=True, slots=True)
class Told:
    """An agent that the station was told of. `agent` is empty until the first message says it; `server` is the path of
    its public key, where the page was told one."""

    endpoint: str
    agent: str = ""
    control: str = ""
    keys: ClientKeys | None = None
    server: str = ""


@dataclass(slots=True)
class _Heard:
    """One agent's subscriber and what is known of the link."""

    told: Told
    subscriber: Subscriber
    desk: Desk | None = None
    link: str = ""
    detail: str = ""
    has_heard: bool = False
    why: "Future[str] | None" = None
    asked_ns: int = 0
    why_text: str = ""
    refused: dict[str, int] = field(default_factory=dict)


class LiveEar:
    """Hears agents on the live plane.

    Parameters
    ----------
    told : callable
        Returns the agents to be heard now, by endpoint; asked once a second.
    named : callable
        Called with (endpoint, agent) when an agent that had no name said it; False: the name is another's.
    """

    def __init__(
        self,
        scribe: Scribe,
        claims: Claims,
        clock: Clock,
        *,
        told: Callable[[], dict[str, Told]],
        named: Callable[[str, str], bool],
        alerts_a_minute: float,
    ):
        self._scribe, self._claims, self._clock = scribe, claims, clock
        self._told, self._named, self._alerts_a_minute = told, named, alerts_a_minute
        self._heard: dict[str, _Heard] = {}
        self._any_of = AnyOf(clock)
        self._context: SharedContext | None = None
        self._helpers = ThreadPoolExecutor(2, thread_name_prefix="why")
        self._faults: dict[str, str] = {}
        self._looked_ns = self._claimed_ns = self._wrote_ns = 0
        self._begun = scribe.begun
        self.messages = 0

    def run(self, stop: threading.Event) -> None:
        """Hear until told to stop; then write what is left."""
        self._context = SharedContext()
        try:
            while not stop.is_set():
                began_ns = self._clock.monotonic_ns()
                if not self._step():  # 200 agents say something each few milliseconds: each look at them all costs
                    stop.wait(max(PACE_NS - (self._clock.monotonic_ns() - began_ns), 0) / 1e9)
        finally:
            for heard in self._heard.values():
                heard.subscriber.close()
            self._any_of.close()
            self._scribe.commit([heard.desk for heard in self._heard.values() if heard.desk], all_scores=True)
            self._context.close()
            self._helpers.shutdown(wait=False, cancel_futures=True)

    def hears(self, endpoint: str) -> bool:
        """Whether somebody is heard there; any thread may ask."""
        return endpoint in self._heard

    def troubles(self) -> list[str]:
        """Return what is wrong with agents that are not known by name yet."""
        return [f"{endpoint}: {text}" for endpoint, text in sorted(self._faults.items())]

    def _step(self) -> bool:
        """Take what has come and write what is due; return whether more lies there already."""
        now_ns = self._clock.monotonic_ns()
        if now_ns - self._looked_ns >= LOOK_NS:
            self._looked_ns = now_ns
            self._follow(now_ns)
            self._look()
        subscribers = {id(heard.subscriber): heard for heard in self._heard.values()}
        if not subscribers:
            threading.Event().wait(WAIT_MS / 1000)
            return False
        ready = self._any_of.wait([heard.subscriber for heard in subscribers.values()], self._patience_ms())
        has_more = False
        for subscriber in ready:
            heard = subscribers[id(subscriber)]
            for _ in range(A_TURN):
                got = subscriber.recv(0)
                if got is None:
                    break
                self._take(heard, got)
            else:
                has_more = True
        self._write()
        return has_more

    def _patience_ms(self) -> int:
        return GATHER_NS // 1_000_000 if any(h.desk and h.desk.has_alerts for h in self._heard.values()) else WAIT_MS

    def _take(self, heard: _Heard, got: Received | Gap) -> None:
        received_ns = self._clock.wall_ns()
        if isinstance(got, Gap):
            if heard.desk is not None:
                lost = sum(heard.subscriber.gaps.values())
                heard.desk.take_gap(got.kind, got.first, got.last, received_ns, lost)
            return
        self.messages += 1
        agent = got.message.agent
        if heard.desk is None:
            if not self._named(heard.told.endpoint, agent):
                self._faults[heard.told.endpoint] = f"calls itself {agent}, which another agent is called already"
                return
            self._faults.pop(heard.told.endpoint, None)
            heard.desk = Desk(agent, LIVE, self._alerts_a_minute)
        if agent != heard.desk.agent:
            heard.desk.trouble("name", f"somebody there calls itself {agent} as well; that is not heard", received_ns)
            return
        heard.has_heard = True
        for message in got.says:
            heard.desk.take(message, received_ns, is_fresh=got.age_s is not None)

    def _write(self) -> None:
        now_ns, wall_ns = self._clock.monotonic_ns(), self._clock.wall_ns()
        desks = [heard.desk for heard in self._heard.values() if heard.desk is not None]
        is_urgent = any(desk.has_alerts for desk in desks)
        if self._scribe.is_waiting or now_ns - self._wrote_ns < (GATHER_NS if is_urgent else 10 * GATHER_NS):
            return
        self._wrote_ns = now_ns
        self._scribe.commit([desk for desk in desks if desk.is_due(wall_ns)])

    def _follow(self, now_ns: int) -> None:
        """Open and close subscribers as told, and as far as the agents are ours to hear."""
        told = self._told()
        if not self._claims.check():
            told = {}
        self._join_again()
        for endpoint in [endpoint for endpoint, heard in self._heard.items() if told.get(endpoint) != heard.told]:
            named = told.get(endpoint)
            if named is not None and (named.endpoint, named.keys) == (endpoint, self._heard[endpoint].told.keys):
                self._heard[endpoint].told = named  # it said its name
                continue
            heard = self._heard.pop(endpoint)
            heard.subscriber.close()
            if heard.desk is not None:
                self._scribe.commit([heard.desk], all_scores=True)
            self._claims.release(endpoint)
        if not told or (now_ns - self._claimed_ns < CLAIM_NS and len(self._heard) == len(told)):
            return
        self._claimed_ns = now_ns
        for endpoint, agent in told.items():
            if endpoint not in self._heard and self._claims.hold(endpoint):
                self._open(endpoint, agent)

    def _join_again(self) -> None:
        """Let agents tell everything once more, as to one who joins, where the store was begun anew."""
        if self._begun == self._scribe.begun:
            return
        self._begun = self._scribe.begun
        for endpoint, heard in list(self._heard.items()):
            heard.subscriber.close()
            del self._heard[endpoint]
            self._open(endpoint, heard.told)
            if heard.desk is not None and endpoint in self._heard:
                self._heard[endpoint].desk = heard.desk  # with what lies there yet

    def _open(self, endpoint: str, told: Told) -> None:
        subscriber = Subscriber(
            endpoint, clock=self._clock, keys=told.keys, agent=told.agent or None, max_age_s=LATEST_S
        )
        try:
            subscriber.open(self._context)
        except TransportError as error:
            self._faults[endpoint] = str(error)
            return
        desk = Desk(told.agent, LIVE, self._alerts_a_minute) if told.agent else None
        self._heard[endpoint] = _Heard(told, subscriber, desk)

    def _look(self) -> None:
        """Say how each link is, where that changed."""
        now_ns, received_ns = self._clock.monotonic_ns(), self._clock.wall_ns()
        for endpoint, heard in self._heard.items():
            silent_s = heard.subscriber.silent_s
            link = "live" if heard.has_heard and silent_s < SILENT_S else "silent" if heard.has_heard else "connecting"
            detail = "" if link == "live" else self._why(heard, now_ns)
            if heard.desk is None:
                if silent_s > SILENT_S:
                    self._faults[endpoint] = f"not heard for {silent_s:.0f} s: {detail or 'nothing is sent'}"
                continue
            if (link, detail) != (heard.link, heard.detail):
                heard.link, heard.detail = link, detail
                control = heard.told.control
                heard.desk.note_link(link, detail, received_ns, endpoint=endpoint, control=control)
            refused = {cause: n for cause, n in heard.subscriber.refused.items() if cause != "page"}
            if refused != heard.refused:
                heard.refused = refused
                told = ", ".join(f"{count} {cause}" for cause, count in sorted(refused.items()))
                heard.desk.trouble("refused", f"sends messages that cannot be read ({told})", received_ns)

    def _why(self, heard: _Heard, now_ns: int) -> str:
        """Return why an agent is not heard, found out beside: connecting to a dead host takes its time."""
        if heard.why is not None and heard.why.done():
            text = heard.why.result() or "somebody answers there, but sends nothing"
            heard.why, heard.why_text = None, text
            return text
        if heard.why is None and now_ns - heard.asked_ns >= ASK_WHY_NS:
            heard.asked_ns = now_ns
            heard.why = self._helpers.submit(why_unreachable, heard.told.endpoint)
        return heard.why_text
