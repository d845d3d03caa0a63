"""Names that agent, thin link and ground share: the kinds of events and the models, each said once.

Read by the wire's messages, the codecs of the thin link and of the model mirror, the agent's events and the report.
Positions are numbers on the wire: names are only added at the end, and none is removed or used for something else.
"""

import enum

AGENT_PATTERN = "^[a-z0-9][a-z0-9_-]{0,31}$"  # of an agent's id: a part of topics and of folders' names
PATCH_MODEL, SCENE_MODEL, TOPIC_MODEL = "patches", "scenes", "topics"  # the two mixtures, and what is in view
MODELS = (PATCH_MODEL, SCENE_MODEL, TOPIC_MODEL)
MODEL_NUMBERS = {name: number for number, name in enumerate(MODELS)}  # thin links have room for 8, the mirror for 16
MODEL_PATTERN = f"^({'|'.join(MODELS)})$"  # of the fields that name a model
SHARES_STAND_NS = 10_000_000_000  # shares of topics that were told stand for what is in view so long, or until the next
VISITS = "visits"  # beside the models: whose kinds people may name
NAMED_PATTERN = f"^({'|'.join((*MODELS, VISITS))})$"

_OLD_NAMES = {"novelty": "novel"}  # what `alert_kind` says in schema 1 where a sender left it out


class EventKind(enum.StrEnum):
    """What an event is: the `alert_kind` of an Alert, and the kind of a thin link's alert by its place here.

    A text is read as its kind, one of a later version as OTHER: `EventKind("stampede")` raises nothing.
    """

    OTHER = "other"
    NOVEL = "novel"
    NEW_CATEGORY = "new_category"
    RETURNED = "returned"
    VANISHED = "vanished"
    SCENE_CHANGE = "scene_change"
    UNUSUAL_VIEW = "unusual_view"
    VIEW_CHANGED = "view_changed"

    @classmethod
    def _missing_(cls, value: object) -> "EventKind":
        return cls(_OLD_NAMES[value]) if isinstance(value, str) and value in _OLD_NAMES else cls.OTHER
