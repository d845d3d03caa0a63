"""News reach every reader that waits, in a thread or a loop; who falls behind is told so."""

import asyncio
import threading

from stillwatch.tools.station.bulletin import Bulletin


def test_readers_get_what_came_after_what_they_saw():
    bulletin = Bulletin()
    bulletin.post("alert", "cam1", 5)
    bulletin.post("scores", "cam2")
    news, is_all = bulletin.since(1)
    assert [(item.kind, item.agent) for item in news] == [("scores", "cam2")]
    assert is_all
    assert bulletin.since(2) == ([], True)


def test_a_reader_that_fell_behind_is_told():
    bulletin = Bulletin(kept=4)
    for number in range(10):
        bulletin.post("alert", "cam1", number)
    news, is_all = bulletin.since(2)
    assert [item.id for item in news] == [6, 7, 8, 9]
    assert not is_all


def test_a_post_wakes_who_waits_in_a_thread_and_in_a_loop():
    bulletin = Bulletin()

    async def both():
        thread = threading.Timer(0.05, bulletin.post, ("alert",))
        thread.start()
        woken = await bulletin.wait_async(0, 10.0)
        return woken, await asyncio.to_thread(bulletin.wait, 0, 10.0)

    assert asyncio.run(both()) == (True, True)
    assert asyncio.run(bulletin.wait_async(1, 0.01)) is False
