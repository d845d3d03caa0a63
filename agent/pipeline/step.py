"""What one frame led to: what the stages said of it, for those who tell it, record it or count it.

Made by agent/pipeline/pipeline.py, told by agent/pipeline/summaries.py.
"""

from dataclasses import dataclass

from stillwatch.base import Frame
from stillwatch.contents import Contents
from stillwatch.epochs import EpochReport
from stillwatch.events import EventRecord
from stillwatch.gate import Verdict
from stillwatch.novelty import Score
from stillwatch.pipeline.best_view import View


@dataclass(frozen=True, slots=True)
class Step:
    """What one frame led to.

    Attributes
    ----------
    frame : Frame
    verdict : Verdict
    score : Score or None
        None where the gate refused the frame.
    events : list of EventRecord
        What is to be told of events that began, went on or ended.
    views : list of View
        What each of them is shown by.
    activation : EpochReport or None
        The epoch whose models became active before this frame.
    open_event : int
        Id of the event that the frame belongs to, or -1.
    nearest : int
        Id of the exemplar that the frame is nearest to, looked up where there are events; else -1.
    contents : Contents or None
        What is in view; None where that was not looked at.
    """

    frame: Frame
    verdict: Verdict
    score: Score | None
    events: list[EventRecord]
    views: list[View]
    activation: EpochReport | None
    open_event: int = -1
    nearest: int = -1
    contents: Contents | None = None
