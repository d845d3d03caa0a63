"""Dense patch descriptors and one descriptor a frame, reduced by frozen projections.

Owns: SIFT and HOG plans, encoders and their files, masks, the rows that are scored and learnt; pictures made smaller.
In: `Frame`, `CameraRule`. Out: `Features` and the `Rows` made of them, in buffers of their own.
Imports: base, settings, kernels.
"""

from stillwatch.features.dense_sift import DenseSift
from stillwatch.features.encoder import (
    Encoder,
    Projection,
    encoder_from_state,
    fit_pca,
    load_encoder,
    random_projection,
    save_encoder,
)
from stillwatch.features.extractor import FeatureExtractor, Features, GateAxes
from stillwatch.features.hog import BlockHog
from stillwatch.features.rows import CONTEXT_DIMS, WORD_REACH, Lighting, RowMaker, Rows
from stillwatch.features.scspm import SparseCodePyramid, patch_descriptor
from stillwatch.features.shrinking import shrunk

__all__ = [
    "BlockHog",
    "CONTEXT_DIMS",
    "DenseSift",
    "Encoder",
    "FeatureExtractor",
    "Features",
    "GateAxes",
    "Lighting",
    "Projection",
    "RowMaker",
    "Rows",
    "SparseCodePyramid",
    "WORD_REACH",
    "encoder_from_state",
    "fit_pca",
    "load_encoder",
    "patch_descriptor",
    "random_projection",
    "save_encoder",
    "shrunk",
]
