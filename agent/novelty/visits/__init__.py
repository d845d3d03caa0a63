"""Who comes into view, what kind of visit that is, and how often its kind comes.

Owns: the visits under way, the kinds of visits with their counts.
In: how unlike each place's patches are, rows. Out: `Sighting`s, `Kind`s.
Imports: base, features, settings, novelty.
"""

from stillwatch.novelty.visits.habituation import Habituation
from stillwatch.novelty.visits.kinds import Kind, Kinds, saved_kinds
from stillwatch.novelty.visits.precedents import Precedents
from stillwatch.novelty.visits.sightings import Sighting
from stillwatch.novelty.visits.visits import Over, Visits, news_of

__all__ = ["Habituation", "Kind", "Kinds", "Over", "Precedents", "Sighting", "Visits", "news_of", "saved_kinds"]
