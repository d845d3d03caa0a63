"""Where things are and how much ground they cover: metres of track, area seen, and the map of a survey's page.

Owns: a survey's geometry, the map and the Leaflet library that draws it, as published (static/, BSD 2-clause).
In: positions, altitudes and clusters of pictures. Out: ground by dive and cluster with its doubt, HTML.
Imports: base.
"""

from stillwatch.tools.survey.ground.map import map_html
from stillwatch.tools.survey.ground.tracks import SQUARE_METRES, Ground, View, flat_metres, ground_of, picture_ground

__all__ = ["SQUARE_METRES", "Ground", "View", "flat_metres", "ground_of", "map_html", "picture_ground"]
