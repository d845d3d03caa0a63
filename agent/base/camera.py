"""The two kinds of camera, as values: what a frame's rows carry, how novelty is judged, what the gate may expect.

Made known by agent/novelty/motion.py, handed along by agent/pipeline/pipeline.py. Stages read a rule's fields; none
asks which kind of camera it has. A third kind is a third value.
"""

import enum
from dataclasses import dataclass, replace


class Context(enum.StrEnum):
    """The last two values of a row: the patch's place (x, y), or the colour there (log blue/green, log red/green)."""

    PLACE = "place"
    CHROMA = "chroma"


@dataclass(frozen=True, slots=True)
class CameraRule:
    """What follows from the kind of camera.

    Attributes
    ----------
    context : Context
        What rows carry beside the patch.
    takes_out_brightness : bool
        A patch's own brightness is taken out of its row: exposure, clouds and shadows change it at every place of a
        fixed view and say nothing new.
    novelty : str
        The strategy that scores rows, a row of agent/novelty/registry.py.
    judges_blur : bool
        The usual sharpness of the view is known, so that its loss is a fault.
    view_stays : bool
        A sudden change of the whole picture is a fault whatever it shows; where the view moves on, only one of the
        same structure is: a switched light, not a new view.
    decided : bool
        Whether the kind is known: rows mean nothing before.
    """

    context: Context
    takes_out_brightness: bool
    novelty: str
    judges_blur: bool
    view_stays: bool
    decided: bool = True


FIXED = CameraRule(Context.PLACE, True, "places", judges_blur=True, view_stays=True)
MOVING = CameraRule(Context.CHROMA, False, "patches", judges_blur=False, view_stays=False)
# Most cameras stand still. One that moves may show another picture at any time: refused as a fault, it is never known.
UNDECIDED = replace(FIXED, view_stays=False, decided=False)
