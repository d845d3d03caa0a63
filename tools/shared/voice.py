"""What a person at the terminal sees of a run: one line an alert, notices, progress, how it ended and what to do next.

Made by run and record; its methods run on the pipeline thread. Alerts go to stdout, all else to stderr, so that a pipe
holds alerts alone.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING, Any, TextIO, cast

from stillwatch.base import ExitCode, scrub, shown
from stillwatch.runs import alert_row
from stillwatch.tools.shared import words
from stillwatch.tools.shared.json_output import json_text
from stillwatch.tools.shared.progress import ProgressLine
from stillwatch.tools.shared.stream_time import StreamTime
from stillwatch.transport.wire import Alert, LogNotice, Message

if TYPE_CHECKING:  # as in progress.py
    from stillwatch.pipeline import RunCounts
    from stillwatch.process import RunOptions, RunResult

_NEW, _OVER, _PLAIN = "\x1b[1;33m", "\x1b[2m", "\x1b[0m"


class _AboveProgress:
    """Where log lines go while a progress line stands: they would be glued to it."""

    def __init__(self, line: ProgressLine):
        self._line = line

    def write(self, text: str) -> None:
        self._line.say(text.removesuffix("\n"), to=sys.stderr)

    def flush(self) -> None:
        """Nothing is held back."""


class RunVoice:
    """Says what happens in a run.

    Parameters
    ----------
    quiet : bool
        Alerts and errors only.
    as_json : bool
        One JSON object a line on stdout for alerts, notices and the end; no words, no progress.
    """

    def __init__(self, *, quiet: bool = False, as_json: bool = False):
        self._quiet, self._as_json = quiet, as_json
        self._line = ProgressLine(enabled=sys.stderr.isatty() and not quiet and not as_json)
        self._in_colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        self._time = StreamTime()

    def listen(self, options: RunOptions) -> None:
        """Take the callbacks of a run."""
        options.on_progress, options.on_note, options.on_message = self._line.update, self.note, self.message
        for handler in logging.getLogger().handlers:
            if isinstance(handler, logging.StreamHandler) and handler.stream is sys.stderr:
                handler.setStream(cast(TextIO, _AboveProgress(self._line)))

    def message(self, message: Message) -> None:
        """Say what a person should know of a message."""
        self._time.hear(message)
        if isinstance(message, Alert):
            self._alert(message)
        elif isinstance(message, LogNotice) and self._as_json:  # a person reads it in the log, on the same terminal
            self._object("notice", {"level": message.level, "code": message.code, "text": message.text})
        elif isinstance(message, LogNotice) and message.code in ("unsure", "sure"):
            self.note(message.text)

    def note(self, text: str) -> None:
        """Say one line at the start or the end."""
        if self._as_json:
            self._object("note", {"text": shown(scrub(text))})
        elif not self._quiet:
            self._line.say(shown(text), to=sys.stderr)

    def clear(self) -> None:
        """Take the progress away."""
        self._line.clear()

    def result(self, result: RunResult) -> None:
        """Say how the run ended, where its folder is and what can be done with it."""
        counts = result.counts
        if self._as_json:
            end = {"reason": result.reason, "exit_code": int(result.exit_code), **counts.as_dict()}
            self._object("end", {**end, "hash": result.hash, "folder": result.folder})
        for text in _troubles(result):
            print(shown(text), file=sys.stderr, flush=True)
        if self._as_json or self._quiet:
            return
        refused = ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in sorted(counts.refused.items()))
        parts = [words.count(counts.frames, "frame"), f"{counts.accepted} accepted"]
        parts += [f"refused: {refused}"] * bool(refused) + [f"{counts.dropped} dropped"] * bool(counts.dropped)
        parts.append(f"{words.count(counts.events, 'event')}, {words.count(counts.alerts, 'alert')}")
        if result.exit_code == ExitCode.SOURCE:  # a sentence of its own, with a remedy: nothing is hung behind it
            self.note(result.reason)
            if counts.frames:
                self.note("; ".join(parts))
        else:
            self.note(f"{result.reason}: {'; '.join(parts)}")
        if result.learning < 1.0 and counts.frames:
            self.note(_nothing_judged(counts))
        elif result.unsure and counts.frames:
            self.note(f"not sure to the end: {result.unsure}")
        if counts.frames and "summary.json" not in result.not_kept:
            self.note(f"run folder {result.folder}; see it with: stillwatch report {result.folder}")
            if counts.alerts:
                self.note(f"its events as a table: stillwatch events {result.folder} --csv")

    def _alert(self, alert: Alert) -> None:
        stream_s = self._time.of(alert)
        if self._as_json:
            self._object("alert", alert_row(alert, stream_s))
            return
        if words.is_over_at_once(alert):
            return
        text = words.alert_line(alert, stream_s)
        if self._in_colour and alert.phase != "update":
            text = f"{_NEW if alert.phase == 'new' else _OVER}{text}{_PLAIN}"
        self._line.say(text)

    def _object(self, what: str, fields: dict[str, Any]) -> None:
        self._line.say(json_text({"what": what, **fields}))


def _nothing_judged(counts: RunCounts) -> str:
    """Say that no event does not mean that nothing happened: no frame was judged; and what to do about it."""
    if not counts.accepted:
        return "NOTHING WAS JUDGED: no frame could be used; the report says why, by frame"
    if counts.refused.get("global_change", 0) > counts.accepted:
        return (
            "NOTHING WAS JUDGED: nearly every picture shows another view than the one before it; single "
            "pictures of many places are for: stillwatch survey FOLDER"
        )
    if counts.frames == 1:
        return (
            "NOTHING WAS JUDGED: one picture does not show what is usual; give a video, a folder of pictures of one "
            "place or a camera; single pictures of many places are for: stillwatch survey FOLDER"
        )
    usable = words.count(counts.accepted, "usable frame")
    return (
        f"NOTHING WAS JUDGED: it was still learning what is usual here, after {usable}; give it a longer source (some "
        "seconds of the usual), or play this one several times, as in 'clip.mp4?loop=3'"
    )


def _troubles(result: RunResult) -> list[str]:
    """Return what went wrong beside the watching: said however quiet the run is."""
    troubles = []
    if result.waiting_alerts:
        waiting = words.count(result.waiting_alerts, "message")  # an alert's beginning is one, its end another
        troubles.append(f"{waiting} about alerts not acknowledged over the link; the next run of this agent sends them")
    if result.not_kept:
        troubles.append(f"NOT kept in {result.folder}: {', '.join(result.not_kept)}")
    return troubles
