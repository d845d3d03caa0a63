"""Whether a frame may teach the model: damaged, dark, frozen, obstructed, suddenly changed ones may not.

Owns: the reasons for which a frame is refused, lasting faults, changes of the whole picture.
In: `Frame`, `CameraRule`. Out: `Verdict`.
Imports: base, settings.
"""

from stillwatch.gate.gate import Gate, Verdict

__all__ = ["Gate", "Verdict"]
