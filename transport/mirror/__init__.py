"""A model sent over a thin link as changes: the vehicle's coder and the ground's mirror.

Owns: the model packet, of which versions 1 and 2 are read and 2 is written.
In: models. Out: packets, and models again.
Imports: transport.wire.
"""

from stillwatch.transport.mirror import bits, values, vehicle
from stillwatch.transport.mirror.ground import ModelMirror
from stillwatch.transport.mirror.model import MixtureSummary, posterior_gaussians, summary_of
from stillwatch.transport.mirror.values import covariance_of, divergences
from stillwatch.transport.mirror.vehicle import INCARNATIONS, ModelEncoder

__all__ = [
    "INCARNATIONS",
    "MixtureSummary",
    "ModelEncoder",
    "ModelMirror",
    "bits",
    "covariance_of",
    "divergences",
    "posterior_gaussians",
    "summary_of",
    "values",
    "vehicle",
]
