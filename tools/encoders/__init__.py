"""Encoders fitted on some cameras, for use on others.

Owns: how frames are sampled for a fit.
In: sources. Out: encoder files that travel.
Imports: the agent, transport, tools.shared.
"""

from stillwatch.tools.encoders.fit import fitting_extractor, frames_of, variance_kept

__all__ = ["fitting_extractor", "frames_of", "variance_kept"]
