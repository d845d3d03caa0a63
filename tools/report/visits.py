"""The kinds of visits of a report: a picture each, how many came, how often and when.

Called by tools/report/page.py. Kinds without a picture are no rows: agents do not tell them.
"""

import datetime

from stillwatch.runs import span
from stillwatch.tools.report import charts as c
from stillwatch.tools.report.data import KindSeen, ReportData
from stillwatch.tools.report.timeline import labeller
from stillwatch.tools.shared import words

MAX_ROWS = 48
STRIP_PX = (240, 22)  # width, height of the strip
BY_HOUR_NS = 36 * 3600 * 10**9  # of longer live runs the strip is of the hours of the day


def visits_section(data: ReportData, label: c.Label) -> str:
    """Show the kinds, the most frequent first; nothing where no kind was told."""
    kinds = sorted(data.kinds.values(), key=lambda kind: (-kind.last.count, kind.last.id))
    if not kinds:
        return ""
    by_hour = data.is_live and data.span_ns > BY_HOUR_NS
    over = "the hours of the day, UTC" if by_hour else "the time that was watched"
    note = (
        "Who came and went while the camera stood still, and was seen whole, told apart by shape and look: a kind. The "
        f"strip shows when each came, over {over}. Kinds that come often are counted and raise no alert. Name one by "
        "<code>stillwatch control ENDPOINT label_component which=visits component=NUMBER label=NAME</code>."
    )
    watched_s = max(kind.last.watched_s or 0.0 for kind in kinds)  # as told last, by whichever
    rows = [_row(data, kind, watched_s, by_hour) for kind in kinds[:MAX_ROWS]]
    often = sum(kind.last.count > 1 for kind in kinds[:MAX_ROWS])
    shown, once = "".join(rows[:often]), "".join(rows[often:])
    if once:
        is_open = " open" if not often else ""
        head = f"<summary>{words.count(len(rows) - often, 'kind')} of one visit</summary>"
        once = f"<details{is_open}>{head}<div class='visits'>{once}</div></details>"
    return f"<h2>Kinds of visits</h2><p class='note'>{note}</p><div class='visits'>{shown}</div>{once}"


def kind_name(data: ReportData, number: int) -> str:
    """Return what a kind is called, escaped: the name that a person gave it, else its number."""
    seen = data.kinds.get(number)
    return c.esc((seen.last.label if seen is not None else "") or f"kind {number}")


def _row(data: ReportData, kind: KindSeen, watched_s: float, by_hour: bool) -> str:
    told, label = kind.last, labeller(data)
    shown = c.picture(
        told.thumbnail, alt=f"A visit of kind {told.id}, cut out of frame {told.picture_frame}", opens=True
    )
    often = f"once in {span(watched_s / told.count)}" if watched_s and told.count > 1 else "once so far"
    first, last = (label(x) for x in (kind.first_x, kind.last_x))
    when = f"at {first}" if told.count == 1 else f"first {first}, last {last}"
    name = kind_name(data, told.id)
    return (
        f"<article class='visit' id='kind-{told.id}'><div class='picture'>{shown}</div><div class='text'>"
        f"<h4>{name[0].upper()}{name[1:]}: {c.esc(words.count(told.count, 'visit'))}</h4>"
        f"<p>{c.esc(often)}; {c.esc(when)}</p>{_strip(data, kind, by_hour)}</div></article>"
    )


def _strip(data: ReportData, kind: KindSeen, by_hour: bool) -> str:
    """Draw when visits ended, as marks over the run or as a bar an hour of the day."""
    width, height = STRIP_PX
    if by_hour:
        hours = [0] * 24
        for x in kind.xs:
            at = datetime.datetime.fromtimestamp((data.first_wall_ns + x) / 1e9, datetime.UTC)
            hours[at.hour] += 1
        top = max(hours) or 1
        marks = "".join(
            f"<rect x='{10 * hour}' y='{height - height * n / top:.1f}' width='9' height='{height * n / top:.1f}'/>"
            for hour, n in enumerate(hours)
            if n
        )
        text = ", ".join(f"{hour} h: {n}" for hour, n in enumerate(hours) if n)
    else:
        ends = max(data.span_ns, 1)
        places = sorted({round((width - 2) * x / ends) for x in kind.xs})
        marks = "".join(f"<rect x='{place}' y='3' width='2' height='{height - 6}'/>" for place in places)
        text = f"{len(kind.xs)} visits"
    return (
        f"<svg class='strip' viewBox='0 0 {width} {height}' preserveAspectRatio='none' role='img' "
        f"aria-label='{c.esc(text)}'>{marks}</svg>"
    )
