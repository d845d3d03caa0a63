"""Last values: which are kept, in what order, in pages of what size."""

from stillwatch.transport.live.snapshot import PAGE_BYTES, SnapshotCache
from stillwatch.transport.wire.topics import TOPICS


def all_pages(cache, stamp=0):
    pages = []
    while True:
        items, stamp, done = cache.page(stamp)
        pages.append(items)
        if done:
            return pages, stamp


def test_only_the_newest_of_a_key_is_kept():
    cache = SnapshotCache()
    cache.put("status", "", b"old")
    cache.put("status", "", b"new")
    assert all_pages(cache)[0] == [[("status", b"new")]]


def test_keys_beyond_the_topics_number_go_longest_unchanged_first():
    cache = SnapshotCache()
    keep = TOPICS["alert"].keep
    for number in range(keep):
        cache.put("alert", str(number), b"%d" % number)
    cache.put("alert", "0", b"changed")
    cache.put("alert", "more", b"more")
    kept = [payload for _, payload in all_pages(cache)[0][0]]
    assert b"1" not in kept
    assert kept[-2:] == [b"changed", b"more"]
    assert len(kept) == keep


def test_pages_are_bounded_and_together_complete():
    cache = SnapshotCache()
    for number in range(60):
        cache.put("exemplar", str(number), bytes([number]) * 15_000)
    pages, _ = all_pages(cache)
    assert [payload[0] for page in pages for _, payload in page] == list(range(60))
    assert all(sum(len(payload) for _, payload in page) <= PAGE_BYTES for page in pages)


def test_payload_longer_than_a_page_goes_alone():
    cache = SnapshotCache()
    cache.put("status", "", b"s")
    cache.put("model", "patches", bytes(PAGE_BYTES + 1))
    cache.put("model", "scenes", b"m")
    assert [len(page) for page in all_pages(cache)[0]] == [1, 1, 1]


def test_later_pages_hold_what_changed_since():
    cache = SnapshotCache()
    cache.put("status", "", b"a")
    cache.put("gate", "", b"b")
    _, stamp = all_pages(cache)
    assert cache.page(stamp) == ([], stamp, True)
    cache.put("status", "", b"c")
    assert cache.page(stamp)[0] == [("status", b"c")]


def test_forgotten_keys_are_gone():
    cache = SnapshotCache()
    cache.put("exemplar", "4", b"x")
    cache.discard("exemplar", "4")
    cache.discard("exemplar", "5")
    assert cache.page(0)[0] == []
    assert cache.memory_bytes() == 0
