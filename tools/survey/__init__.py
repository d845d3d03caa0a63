"""Ashore: many dives, one map. Pictures or runs of several agents clustered together, and a page about them.

Owns: what a dive is, how pictures are described, reduced and clustered, the page and the files beside it.
In: folders of pictures, videos, recordings, run folders. Out: survey.json, tables, survey.geojson, survey.html.
Imports: the agent, transport, tools.shared, tools.tables.
"""

from stillwatch.tools.survey.agreement import Agreement, agreement
from stillwatch.tools.survey.describe import Described, describe_dives, describe_images
from stillwatch.tools.survey.dives import n_searches, segments_of, whole_blocks
from stillwatch.tools.survey.pictures import Dive, Picture, dives_of, labels_of, named_few
from stillwatch.tools.survey.reduce import principal_coordinates, whitened
from stillwatch.tools.survey.segments import NONE, PATCHES, SUPERPIXELS, best_segments

__all__ = [
    "NONE",
    "PATCHES",
    "SUPERPIXELS",
    "Agreement",
    "Described",
    "Dive",
    "Picture",
    "agreement",
    "best_segments",
    "describe_dives",
    "describe_images",
    "dives_of",
    "labels_of",
    "n_searches",
    "named_few",
    "principal_coordinates",
    "segments_of",
    "whitened",
    "whole_blocks",
]
