"""How far a frame is from what was seen here, how rare that is, and whether the camera moves.

Owns: the novelty rules (registry.py), what is usual here, the calibration to one frame in N.
In: grey pictures, rows, active models. Out: `CameraRule`, `Score`, `Kind`, `Precedents`.
Imports: base, settings, gate, features, learn, epochs, kernels.
"""

from stillwatch.novelty.blocks import block_sums
from stillwatch.novelty.calibration import RarityCalibration, RunningSpread
from stillwatch.novelty.motion import CameraMotion
from stillwatch.novelty.regions import Region
from stillwatch.novelty.rules import MAX_KINDS, MAX_VISITS, SETTLING_FRAMES
from stillwatch.novelty.score import Novelty, Score
from stillwatch.novelty.strategy import Sizes
from stillwatch.novelty.viewpoint import Viewpoints
from stillwatch.novelty.visits import Kind, Over, Precedents, Sighting, saved_kinds

__all__ = [
    "MAX_KINDS",
    "MAX_VISITS",
    "SETTLING_FRAMES",
    "CameraMotion",
    "Kind",
    "Novelty",
    "Over",
    "Precedents",
    "RarityCalibration",
    "Region",
    "RunningSpread",
    "Score",
    "Sighting",
    "Sizes",
    "Viewpoints",
    "block_sums",
    "saved_kinds",
]
