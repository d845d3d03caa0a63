"""How each learner is shown in reports and comparisons: a table by the names that messages carry.

Used by tools/report: data.py, model.py, events.py, compare.py. A learner that has no row here is shown all the same,
under the name that its messages give it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from stillwatch.transport.wire import PATCH_MODEL, SCENE_MODEL, TOPIC_MODEL


@dataclass(frozen=True, slots=True)
class ModelView:
    """How a mixture is shown. `noun` is of one component; `shows_energy`: a comparison tells the free energy."""

    title: str
    noun: str
    shows_energy: bool = False


@dataclass(frozen=True, slots=True)
class GalleryView:
    """How exemplars of one role are shown. `missing` is said where none came; empty: then there is no such section.

    `unit` is what an exemplar's share is a share of.
    """

    title: str
    note: str
    missing: str = ""
    unit: str = "samples"
    is_normal: bool = False  # shows what is usual: exemplars of events are shown apart
    nothing_usual: str = ""


TOPIC_PREFIX = "topic_"  # of the roles of what shows a topic
PICTURED = SCENE_MODEL  # the mixture whose components have pictures: exemplars of these roles
EXAMPLE_ROLES = {"most_typical": "Typical", "least_typical": "Least typical", "newest": "Newest"}
MODELS = {
    PATCH_MODEL: ModelView("Patches: what small parts of the view look like", "patch", shows_energy=True),
    SCENE_MODEL: ModelView("Scenes: what the whole view looks like", "scene"),
    TOPIC_MODEL: ModelView("Topics: what is in view", "topic"),
}
GALLERIES = {
    "frame": GalleryView(
        "What is normal here",
        "Frames that the agent chose to stand for what it sees when nothing happens.",
        "No exemplar was received: none had been chosen yet, or the link was too thin.",
        unit="frames",
        is_normal=True,
        nothing_usual="Every frame that was chosen so far is of an event.",
    )
}


def model_view(name: str) -> ModelView:
    """Return how a mixture is shown; one that nobody described by its name alone."""
    words = name.replace("_", " ")
    return MODELS.get(name) or ModelView(words.capitalize(), words)


def gallery_view(role: str) -> GalleryView:
    """Return how exemplars of a role are shown; those that nobody described by the role alone."""
    words = role.replace("_", " ")
    return GALLERIES.get(role) or GalleryView(words.capitalize(), f"Exemplars that the agent chose as {words}.")


def in_order(names: Iterable[str], table: Mapping[str, object]) -> list[str]:
    """Return names in the order of a table, those that it does not know after them by the alphabet."""
    found = set(names)
    return [name for name in table if name in found] + sorted(found - set(table))
