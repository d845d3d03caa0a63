"""What an agent has learnt: how often each scene is in view, what kinds of visits there are, people's names for them.

Used by the page's views. A model of a kind that nobody described is shown all the same, under its own name.
"""

import functools
from typing import Any

import numpy as np

from stillwatch.tools.report import PICTURED, TOPIC_PREFIX, model_view
from stillwatch.tools.shared import words
from stillwatch.tools.station.store import MOST_EXEMPLARS
from stillwatch.transport.wire import PATCH_MODEL, TOPIC_MODEL, Model, TransportError, decode

MOST_ROWS = 12
# Exemplars' roles, in the page's order.
_TYPICAL = {TOPIC_MODEL: TOPIC_PREFIX + "most_typical", PICTURED: "most_typical"}


@functools.lru_cache(maxsize=512)
def _decoded(payload: bytes) -> Model | None:
    try:
        message = decode(payload)
    except TransportError:
        return None
    return message if isinstance(message, Model) else None


def _models(store: Any, agent: str) -> list[Model]:
    rows = (row for row in store.models(agent) if row["kind"] == "model")
    return [model for row in rows if (model := _decoded(bytes(row["payload"]))) is not None]


def component_name(store: Any, agent: str, component: int) -> str:
    """Return what people called a component of the patch mixture, or nothing."""
    if component < 0:
        return ""
    models = {model.which: model for model in _models(store, agent)}
    return models[PATCH_MODEL].labels.get(str(component), "") if PATCH_MODEL in models else ""


def in_view(store: Any, agent: str) -> list[dict[str, Any]]:
    """Return for each model its title, a note, and rows of (name, share of the largest, share in words, picture).

    Pictures are the addresses of the most typical frames, for the models whose components have them.
    """
    found = []
    typical = {
        (row["role"], row["component"]): f"/agents/{agent}/exemplars/{row['exemplar']}.jpg"
        for row in store.exemplars(agent, limit=MOST_EXEMPLARS)
        if row["has_picture"]
    }
    places = {which: place for place, which in enumerate(_TYPICAL)}
    for model in sorted(_models(store, agent), key=lambda model: places.get(model.which, len(places))):
        role = _TYPICAL.get(model.which, "")
        view = model_view(model.which)
        shares = np.nan_to_num(model.weights.astype(np.float64))
        shares /= max(float(shares.sum()), 1e-12)
        order = np.argsort(-shares, kind="stable")[:MOST_ROWS]
        largest = max(float(shares.max(initial=0.0)), 1e-12)
        rows = [
            (
                model.labels.get(str(int(model.ids[i])), f"{view.noun} {int(model.ids[i])}"),
                float(shares[i]) / largest,
                f"{shares[i]:.0%}" if shares[i] >= 0.01 else "under 1%",
                typical.get((role, int(model.ids[i])), ""),
            )
            for i in order
        ]
        if rows:
            more = model.n_components - len(rows)
            note = f"After {model.model_epoch} learning epochs, largest first" + (
                f"; {more} more." if more > 0 else "."
            )
            has_pictures = any(row[3] for row in rows)
            found.append({"title": view.title, "note": note, "rows": rows, "has_pictures": has_pictures})
    return found


def visits(store: Any, agent: str) -> list[dict[str, Any]]:
    """Return the kinds of visits under a fixed camera, the most frequent first; none where none was told."""
    found = []
    for row in store.kinds(agent):
        name = row["label"] or f"kind {row['kind']}"
        is_rated = row["watched_s"] > 0 and row["count"] > 1
        found.append(
            {
                "name": name[:1].upper() + name[1:],
                "count": words.count(row["count"], "visit"),
                "is_one": row["count"] <= 1,
                "often": f"once in {words.duration(row['watched_s'] / row['count'])}" if is_rated else "",
                "first_ns": row["first_ns"],
                "last_ns": row["last_ns"],
                "picture": f"/agents/{agent}/kinds/{row['kind']}.jpg?n={row['count']}" if row["has_picture"] else "",
                "alt": f"A visit of {name}" + (f", cut out of frame {row['frame']}" if row["frame"] >= 0 else ""),
            }
        )
    return found
