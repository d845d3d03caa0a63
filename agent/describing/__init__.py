"""A frame judged and described, before anything of it is scored: the half of the work that looks at no model.

Owns: the order of gate, features, camera and rows; small JPEGs; a process of its own that does this half on another
core, and teaches learners there between two frames.
In: `Frame`. Out: `Described`.
Imports: base, settings, gate, features, epochs, novelty.
"""

from stillwatch.describing.apart import SLOTS_MORE, STATE_EVERY, Apart, Lost, slot_bytes, state_bytes, states_at_once
from stillwatch.describing.describer import Described, Describer
from stillwatch.describing.thumbnail import crop_around, encode_within, jpeg_thumbnail, scaled

__all__ = [
    "SLOTS_MORE",
    "STATE_EVERY",
    "Apart",
    "Described",
    "Describer",
    "Lost",
    "crop_around",
    "encode_within",
    "jpeg_thumbnail",
    "scaled",
    "slot_bytes",
    "state_bytes",
    "states_at_once",
]
