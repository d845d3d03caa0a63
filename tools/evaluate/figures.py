"""One clip's figures: what was found, what was false, how well frames rank; the same for novelty and for the suite.

Called by tools/evaluate/command.py and tools/evaluate/suite/runner.py. It must not run anything.
"""

from collections.abc import Iterable

import numpy as np

from stillwatch.tools.evaluate.metrics import event_auc, match, median_delay_s, roc_auc
from stillwatch.tools.evaluate.run import Run
from stillwatch.tools.evaluate.truth import Truth


def figures(run: Run, truth: Truth) -> dict:
    """Return auc, events_total, events_found, false_alerts, median_delay_s, hours and the numbers of false alerts.

    Frames before `scored_from`, that the gate refused or that are not judged have no AUC label. hours: of stream, from
    where the truth asks for something.
    """
    found = match(run.alerts, truth)
    asked = run.t_ns[run.number >= truth.asked_from]
    hours = float(asked[-1] - asked[0]) / 3.6e12 if len(asked) > 1 else 0.0
    return {
        "auc": areas(run, truth, run.score)["auc"],
        "events_total": len(truth.spans),
        "events_found": found.n_found,
        "false_alerts": len(found.false_alerts),
        "median_delay_s": rounded(median_delay_s(found, truth, run.number, run.t_ns)),
        "hours": round(hours, 6),
        "false_alert_frames": list(found.false_alerts),
    }


def areas(run: Run, truth: Truth, score: np.ndarray) -> dict[str, float | None]:
    """Return the ROC areas, by frame and by event, of one score of the run's frames, (n,) float64."""
    after = np.zeros(len(run.number), bool) if run.scored_from is None else run.number >= run.scored_from
    after &= truth.judged(run.number)
    counted = after & np.isfinite(run.score)
    filled = np.where(counted, score, -np.inf)
    return {
        "auc": rounded(roc_auc(score[counted], truth.labels(run.number[counted]))),
        "auc_event": rounded(event_auc(filled[after], truth, run.number[after])),
    }


def mean_of(values: Iterable[float | None]) -> float | None:
    """Return the mean of the figures that there are; None where there is none."""
    known = [value for value in values if value is not None]
    return rounded(float(np.mean(known))) if known else None


def rounded(value: float | None) -> float | None:
    """Return a figure with as many digits as it deserves."""
    return None if value is None or not np.isfinite(value) else round(float(value), 4)
