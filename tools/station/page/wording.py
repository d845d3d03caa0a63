"""How the pages word what a message holds: the filters and tests of the templates, and sentences about an alert.

Used by the page's views and templates. Events are spoken of in the words that every command uses.
"""

import datetime
import re
import time
from typing import Any

from stillwatch.tools.shared import words
from stillwatch.tools.station.store import MOST_WAITING

GOOD = ("live", "ok", "good", "heard")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
CALM = ("ended", "connecting", "learning", "")


def cleaned(text: str, longest: int, *, strip: bool = True) -> str:
    """Return text without control characters, marks that turn writing around, and lone surrogates; cut to length."""
    kept = _CONTROL.sub("", text)
    return (kept.strip() if strip else kept)[:longest]


def moment_of(ns: int) -> datetime.datetime | None:
    """Return a wall clock in nanoseconds as UTC, or None where no calendar has it."""
    try:
        return datetime.datetime.fromtimestamp(ns / 1e9, tz=datetime.UTC)
    except (OverflowError, ValueError, OSError):
        return None


def utc(ns: int) -> str:
    """Return date and time of day in UTC."""
    moment = moment_of(ns)
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC") if moment else "no such time"


def iso(ns: int) -> str:
    """Return the machine's form of a time, to the millisecond."""
    moment = moment_of(ns)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{ns // 10**6 % 1000:03d}Z" if moment else ""


def ago(ns: int) -> str:
    """Return how long ago a time is."""
    seconds = max(time.time() - ns / 1e9, 0.0)
    for limit, size, unit in ((60, 1, "s"), (3600, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return "just now" if seconds < 2 else f"{int(seconds // size)} {unit} ago"
    return f"{int(seconds // 86_400)} d ago"


def state_class(state: str) -> str:
    """Return the look of a state."""
    return "good" if state in GOOD else "" if state in CALM else "bad"


def unbroken(text: str) -> str:
    """Return text whose long numbers no line breaks between their thousands."""
    return re.sub(r"(?<=\d) (?=\d{3}\b)", "\u202f", text)


def waiting(count: int) -> str:
    """Return how many alerts wait: "1 000+" where nobody counted further."""
    return words.number(count) + ("+" if count >= MOST_WAITING else "")


def plural(count: int, one: str, many: str = "") -> str:
    """Return a count and its noun."""
    return f"{words.number(count)} {one if count == 1 else many or one + 's'}"


FILTERS: dict[str, Any] = {
    "utc": utc,
    "iso": iso,
    "ago": ago,
    "state_class": state_class,
    "title_of": words.title_of,
    "number": words.number,
    "waiting": waiting,
}
