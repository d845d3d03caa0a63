"""Dense patch descriptors and one descriptor a frame, reduced by frozen projections.

In: `Frame`. Out: `Features`, in buffers of their own.
Imports: base, settings, kernels.
"""

from stillwatch.features.dense_sift import DenseSift
from stillwatch.features.encoder import Projection, fit_pca, random_projection, save_encoder
from stillwatch.features.extractor import FeatureExtractor, Features
from stillwatch.features.hog import BlockHog

__all__ = [
    "BlockHog",
    "DenseSift",
    "FeatureExtractor",
    "Features",
    "Projection",
    "fit_pca",
    "random_projection",
    "save_encoder",
]
