"""A fixed camera's novelty: what is unlike everything seen at its place, stays, and comes where little ever does.

Owns: what each place has shown, in what light, what stood out a frame ago, what the whole picture looks like, how often
something is at a place, what level a frame usually has.
In: rows, stream time. Out: `Unlikeness`, a strategy of agent/novelty/registry.py.
Imports: base, epochs, features, kernels, settings, novelty.
"""

from stillwatch.novelty.places.unlikeness import Unlikeness

__all__ = ["Unlikeness"]
