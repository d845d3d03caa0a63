"""Encoders fitted on some cameras, for use on others.

In: sources. Out: encoder files that travel.
Imports: agent.
"""

from stillwatch.tools.encoders.fit import fitting_extractor, frames_of, variance_kept

__all__ = ["fitting_extractor", "frames_of", "variance_kept"]
