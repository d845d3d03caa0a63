"""Ashore: many dives, one map. Pictures or runs of several agents clustered together, and a page about them.

Owns: what a dive is, how pictures are described, reduced and clustered, the page and the files beside it.
In: folders of pictures, run folders. Out: survey.json, assignments.csv, survey.geojson, survey.html.
Imports: the agent, transport, tools.shared, tools.tables.
"""

from stillwatch.tools.survey.agreement import Agreement, agreement
from stillwatch.tools.survey.describe import Described, describe_dives, describe_images
from stillwatch.tools.survey.pictures import Dive, Picture, dives_of, labels_of
from stillwatch.tools.survey.reduce import principal_coordinates, whitened

__all__ = [
    "Agreement",
    "Described",
    "Dive",
    "Picture",
    "agreement",
    "describe_dives",
    "describe_images",
    "dives_of",
    "labels_of",
    "principal_coordinates",
    "whitened",
]
