"""What is in view: the shares of topics in a frame, which patch is of which, and how rare such shares are here.

Owns: when a frame is looked at, the calibration of its shares.
In: rows, active models. Out: `Contents`.
Imports: base, settings, features, learn, epochs, novelty.
"""

from stillwatch.contents.contents import Contents, ViewContents
from stillwatch.contents.topic_map import NO_TOPIC, TopicMap

__all__ = ["NO_TOPIC", "Contents", "TopicMap", "ViewContents"]
