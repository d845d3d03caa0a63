"""The learners, usable without a camera: memory-bounded mixture and topics, exemplars, active sets, grouped mixtures.

They keep scikit-learn's conventions (settings, `fit`, `partial_fit`, `clone`, pickles, pipelines) and do not need it.
Owns: what is learnt, in fixed memory, and its saved form; mixture/ makes the clumps, topics/ adds documents; groups/
learns from many dives at once, ashore, with all rows in memory.
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
from stillwatch.learn.topics.shares import TopicPredictive
from stillwatch.learn.topics.topics import MemoryBoundedTopics

__all__ = [
    "ComponentExemplar",
    "ComponentExemplars",
    "GaussianProcessActiveSet",
    "COVARIANCES",
    "EXAMPLE_KINDS",
    "GroupedMixture",
    "Learner",
    "MemoryBoundedMixture",
    "MemoryBoundedTopics",
    "Normaliser",
    "SimultaneousMixture",
    "StreamGreedy",
    "StudentMixture",
    "TopicPredictive",
    "prior_parameters",
]
