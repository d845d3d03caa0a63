"""Whether a frame may teach the model: damaged, dark, frozen, obstructed, suddenly changed ones may not.

Owns: the reasons for which a frame is refused, lasting faults, changes of the whole picture; where its blocks went.
In: `Frame`, `CameraRule`. Out: `Verdict`.
Imports: base, settings, kernels.
"""

from stillwatch.gate.blocks import compare_blocks
from stillwatch.gate.gate import Gate, Verdict

__all__ = ["Gate", "Verdict", "compare_blocks"]
