"""The stream of news that open pages listen to: server-sent events, gathered for a moment, never more than are new.

Called by tools/station/page/app.py. A slow or sleeping reader costs the station a bounded amount: he is told that he
missed something, and fetches what he shows.
"""

import asyncio
import json
from collections.abc import AsyncIterator

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from stillwatch.tools.station.access import Refused, Role

GATHER_S = 0.25  # so long are scores and statuses gathered; alerts and acts go at once
PING_S = 15.0
URGENT = ("alert", "act")
MOST_READERS = 256
MOST_OF_ONE = 24


class Feed:
    """Counts the open streams, and makes each."""

    def __init__(self, services) -> None:
        self._services = services
        self._open: dict[str, int] = {}

    @property
    def readers(self) -> int:
        """How many pages listen."""
        return sum(self._open.values())

    async def answer(self, request: Request) -> Response:
        """Return the stream for one page."""
        visitor = request.state.visitor
        await run_in_threadpool(self._services.gate.require, visitor, Role.SEE)
        who = f"{visitor.name} {visitor.address}"
        if self.readers >= MOST_READERS or self._open.get(who, 0) >= MOST_OF_ONE:
            raise Refused(503, "Too many pages are open.", retry_after_s=30)
        headers = {"x-accel-buffering": "no", "cache-control": "no-store"}
        return StreamingResponse(self._stream(request, who), media_type="text/event-stream", headers=headers)

    async def _stream(self, request: Request, who: str) -> AsyncIterator[str]:
        self._open[who] = self._open.get(who, 0) + 1
        bulletin, gate = self._services.bulletin, self._services.gate
        place = _place_of(request, bulletin.number)
        try:
            yield "retry: 1500\n: welcome\n\n"
            if place > bulletin.number:  # of a station before this one: what that page shows may be old
                place = bulletin.number
                yield "event: missed\ndata: 1\n\n"
            while True:
                if not await bulletin.wait_async(place, PING_S):
                    if not await run_in_threadpool(_is_still_in, gate, request):
                        return
                    yield ": still here\n\n"
                    continue
                if not any(item.kind in URGENT for item in bulletin.since(place)[0]):
                    await asyncio.sleep(GATHER_S)
                news, is_whole = bulletin.since(place)
                place = news[-1].number if news else bulletin.number
                if not is_whole:
                    yield "event: missed\ndata: 1\n\n"
                told = sorted({(item.kind, item.agent) for item in news})
                yield f"id: {place}\nevent: news\ndata: {json.dumps(told)}\n\n"
        finally:
            self._open[who] -= 1
            if not self._open[who]:
                del self._open[who]


def _place_of(request: Request, newest: int) -> int:
    """Return the news that a page knows: of before it was drawn; where it comes again, those it was told last."""
    given = request.headers.get("last-event-id") or request.query_params.get("after", "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 19 else newest


def _is_still_in(gate, request: Request) -> bool:
    """Whether the visitor's session still holds: a stream must not outlive it."""
    visitor = request.state.visitor
    cookie, bearer = (visitor.token, "") if not visitor.by_header else ("", f"Bearer {visitor.token}")
    return gate.visitor(cookie=cookie, authorization=bearer, address=visitor.address).may(Role.SEE)
