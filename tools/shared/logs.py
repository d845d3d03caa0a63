"""Log lines as a person, a program or the system's journal wants them; the same line at most once a minute.

Set up by run, record and demo. It must not let a secret out: every handler scrubs.
"""

import json
import logging
import sys

from stillwatch.base import Clock, RealClock, scrub_handlers, shown

FORMS = ("text", "json", "journald")
REPEAT_NS = 60 * 1_000_000_000
_REMEMBERED = 256
_PRIORITIES = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6), (0, 7))  # syslog(3)


class NotOften(logging.Filter):
    """Lets a line through once a minute; the next says how often it came meanwhile."""

    def __init__(self, clock: Clock):
        super().__init__()
        self._clock = clock
        self._seen: dict[tuple[str, str], list[int]] = {}  # line -> [when last let through, how often held back since]

    def filter(self, record: logging.LogRecord) -> bool:
        line, now_ns = (record.name, record.getMessage()), self._clock.monotonic_ns()
        seen = self._seen.get(line)
        if seen is not None and now_ns - seen[0] < REPEAT_NS:
            seen[1] += 1
            return False
        if seen is not None and seen[1]:
            record.msg, record.args = f"{line[1]} ({seen[1]} times more since)", ()
        self._seen.pop(line, None)
        self._seen[line] = [now_ns, 0]
        while len(self._seen) > _REMEMBERED:
            del self._seen[next(iter(self._seen))]
        return True


class JsonLine(logging.Formatter):
    """One JSON object a line: t (UTC seconds), level, name, message, and trace where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "t": round(record.created, 3),
            "level": record.levelname.lower(),
            "name": record.name,
            "message": shown(record.getMessage()),
        }
        if record.exc_info:
            fields["trace"] = shown(self.formatException(record.exc_info))
        return json.dumps(fields)


class JournalLine(logging.Formatter):
    """The journal's own form: each line begins with its priority, as sd-daemon(3) says."""

    def format(self, record: logging.LogRecord) -> str:
        priority = next(number for least, number in _PRIORITIES if record.levelno >= least)
        return "\n".join(f"<{priority}>{line}" for line in super().format(record).splitlines())


def set_up_logging(*, verbose: bool, form: str = "text", clock: Clock | None = None) -> None:
    """Log to stderr, without secrets, in one of FORMS."""
    handler = logging.StreamHandler(sys.stderr)
    formatters = {
        "text": logging.Formatter("%(levelname)s %(name)s: %(message)s"),
        "json": JsonLine(),
        "journald": JournalLine("%(name)s: %(message)s"),
    }
    handler.setFormatter(formatters[form])
    handler.addFilter(NotOften(clock or RealClock()))
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, handlers=[handler])
    scrub_handlers()
