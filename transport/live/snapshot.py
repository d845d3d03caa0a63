"""Last values for late joiners: the publisher's cache, and the pages in which it is asked for.

Used by publisher (cache) and subscriber (page structs). It must stay bounded in entries and never send more
than a page at once: a client that asks and does not read costs one page.
"""

from collections import OrderedDict
from typing import Annotated

import msgspec
from msgspec import Meta

from stillwatch.transport.wire import TOPICS, Count, Index, Name

PAGE_BYTES = 256 * 1024
MAX_REQUEST_BYTES = 256
MAX_PAGE_HEAD_BYTES = 4096


class PageRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Asks for the last values that changed after `stamp` (0: all) of publisher epoch `epoch`."""

    id: Name
    epoch: Count = 0
    stamp: Count = 0
    schema: Annotated[int, Meta(ge=1, le=65_535, description="the newest that the asker reads")] = 1


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """First frame of the answer; topic and payload frames follow, two a message, oldest first.

    `stamp` is what to ask after next; `done` says that nothing newer was there; `sequences` holds the last sequence
    sent of every kind, so that a joiner knows what it missed from now on.
    """

    id: Name
    epoch: Count
    stamp: Count
    done: bool
    sequences: Annotated[dict[Name, Index], Meta(max_length=64)]


class SnapshotCache:
    """The last payload of each topic and key, in order of change; `Topic.keep` bounds the keys of a topic."""

    def __init__(self) -> None:
        self._stamp = 0
        self._entries: OrderedDict[tuple[str, str], tuple[int, bytes]] = OrderedDict()

    def put(self, kind: str, key: str, payload: bytes) -> None:
        """Keep a payload as the newest of its kind and key; the longest unchanged key of a full kind goes."""
        self._stamp += 1
        self._entries.pop((kind, key), None)
        self._entries[kind, key] = (self._stamp, payload)
        same = [entry for entry in self._entries if entry[0] == kind]
        if len(same) > TOPICS[kind].keep:
            del self._entries[same[0]]

    def discard(self, kind: str, key: str) -> None:
        """Forget one key, if it is there."""
        self._entries.pop((kind, key), None)

    def of_kind(self, kind: str) -> list[bytes]:
        """Return the payloads kept of one kind, oldest change first."""
        return [payload for (entry_kind, _), (_, payload) in self._entries.items() if entry_kind == kind]

    def page(self, after: int) -> tuple[list[tuple[str, bytes]], int, bool]:
        """Return (kind, payload) pairs changed after a stamp, the stamp to go on from, and whether that was all."""
        items: list[tuple[str, bytes]] = []
        size, stamp = 0, after
        for (kind, _), (changed, payload) in self._entries.items():
            if changed <= after:
                continue
            if items and size + len(payload) > PAGE_BYTES:
                return items, stamp, False
            items.append((kind, payload))
            size += len(payload)
            stamp = changed
        return items, self._stamp, True

    def memory_bytes(self) -> int:
        """Return the bytes of all payloads kept."""
        return sum(len(payload) for _, payload in self._entries.values())
