"""The learners, usable without a camera: the memory-bounded mixture, exemplars, active sets, mixtures of groups.

They keep scikit-learn's conventions (settings, `fit`, `partial_fit`, `clone`, pickles, pipelines) and do not need it.
Owns: what is learnt, in fixed memory, and its saved form; mixture/ makes the clumps; groups/ learns from many dives
at once, ashore, with all rows in memory.
In: rows. Out: models, exemplars, states.
Imports: base, kernels.
"""

from stillwatch.learn.base import Learner
from stillwatch.learn.exemplars.components import EXAMPLE_KINDS, ComponentExemplar, ComponentExemplars
from stillwatch.learn.exemplars.gaussian_process import GaussianProcessActiveSet
from stillwatch.learn.exemplars.stream_greedy import StreamGreedy
from stillwatch.learn.groups.grouped import GroupedMixture
from stillwatch.learn.groups.simultaneous import SimultaneousMixture
from stillwatch.learn.mixture.mixture import MemoryBoundedMixture
from stillwatch.learn.mixture.predictive import COVARIANCES, StudentMixture
from stillwatch.learn.mixture.priors import Normaliser, prior_parameters

__all__ = [
    "ComponentExemplar",
    "ComponentExemplars",
    "GaussianProcessActiveSet",
    "COVARIANCES",
    "EXAMPLE_KINDS",
    "GroupedMixture",
    "Learner",
    "MemoryBoundedMixture",
    "Normaliser",
    "SimultaneousMixture",
    "StreamGreedy",
    "StudentMixture",
    "prior_parameters",
]
