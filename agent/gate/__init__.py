"""Whether a frame may teach the model: damaged, dark, frozen, obstructed, suddenly changed ones may not.

In: `Frame`. Out: `Verdict`.
Imports: base, settings.
"""

from stillwatch.gate.gate import Gate, Verdict

__all__ = ["Gate", "Verdict"]
