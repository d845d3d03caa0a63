"""Hears: the live plane of any number of agents, thin links, run folders and recordings; writes what it heard.

Owns: who is heard, clocks that are not believed, limits, pictures made safe, who ingests what of a shared store.
In: messages, frames of modems, folders. Out: rows of the store, news on the bulletin after they are kept.
Imports: the agent, transport.
"""

from stillwatch.tools.station.ingest.ingest import Ingest
from stillwatch.tools.station.ingest.live import LiveEar, Told

__all__ = ["Ingest", "LiveEar", "Told"]
