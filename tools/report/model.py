"""The learned mixtures of a report: each component's share over time, and the free energy.

Called by tools/report/page.py. It must keep a component's colour the same wherever it appears.
"""

from stillwatch.tools.report import charts as c
from stillwatch.tools.report.data import ReportData
from stillwatch.tools.report.learners import EXAMPLE_ROLES, MODELS, PICTURED, in_order, model_view
from stillwatch.tools.shared import words

MAX_SCENES = 12


def components_section(data: ReportData, label: c.Label) -> str:
    if not data.models:
        return "<h2>What was learnt</h2><div class='empty'>No model was received: no epoch had ended.</div>"
    note = (
        "How the agent divides what it has seen into kinds, over time: a colour is one kind, as high as its share; "
        "grey is all the rarer kinds together. Many colours mean that there is much to tell apart here."
    )
    out = f"{_scenes(data)}<h2>What was learnt</h2><p class='note'>{note}</p>"
    return out + "".join(_mixture(data, which, label) for which in in_order(data.models, MODELS))


def _scenes(data: ReportData) -> str:
    """Show each kind of scene, where no topics were told: versions before 0.2 had scenes alone."""
    if data.shares.mean():
        return ""
    model = data.last_model.get(PICTURED)
    known = {component for component, _ in data.scene_pictures}
    if model is None or not known:
        return ""
    total = float(model.counts.sum()) or 1.0
    rows = ""
    for identity, count in zip(model.ids.tolist(), model.counts.tolist(), strict=True):
        if identity not in known or rows.count("<tr>") >= MAX_SCENES:
            continue
        pictures = "".join(f"<td>{_scene_picture(data, identity, role)}</td>" for role in EXAMPLE_ROLES)
        share = count / total
        swatch = f"<i class='swatch' style='background:{c.component_colour(identity)}'></i>"
        label = _component_label(data, PICTURED, identity) or f"kind {identity}"
        bar = f"<div class='share'><i style='width:{100 * share:.0f}%'></i></div>"
        rows += f"<tr><td class='kind'><b>{swatch}{label}</b>{bar}{share:.1%} of frames</td>{pictures}</tr>"
    heads = "".join(f"<th>{name}</th>" for name in EXAMPLE_ROLES.values())
    note = "What the whole view looked like, and how much of the time."
    table = f"<table class='scenes'><tr><th></th>{heads}</tr>{rows}</table>"
    return f"<h2>Kinds of scene</h2><p class='note'>{note}</p><div class='scroll tall'>{table}</div>"


def _scene_picture(data: ReportData, identity: int, role: str) -> str:
    found = data.scene_pictures.get((identity, role))
    return (
        f"<div class='picture'>{c.picture(found.thumbnail, alt=f'Scene {identity}: {role}', opens=True)}</div>"
        if found is not None
        else ""
    )


def _mixture(data: ReportData, which: str, label: c.Label) -> str:
    points = data.models[which].all()
    model = data.last_model[which]
    total = float(model.counts.sum()) or 1.0
    rows = ""
    for identity, count in zip(model.ids.tolist()[:12], model.counts.tolist()[:12], strict=True):
        name = _component_label(data, which, identity)
        swatch = f"<i class='swatch' style='background:{c.component_colour(identity)}'></i>"
        share = f"<td class='n'>{count / total:.1%}</td><td class='n'>{words.number(count)}</td>"
        rows += f"<tr><td>{swatch}{identity}</td>{share}<td>{name}</td></tr>"
    facts = [f"{model.n_components} components", f"{model.clumps} clumps", f"{model.model_epoch} epochs"]
    clumps = data.last_clumps.get(which)
    held = f" Of epoch {clumps.model_epoch}: {words.held(clumps)}." if clumps is not None else ""
    if model.free_energy is not None:
        facts.append(f"free energy {model.free_energy:.2f} nats a sample")
    energy = [(x, e) for x, _, _, _, e, _, _ in points if e is not None]
    curve = c.line_chart(energy, span_ns=data.span_ns, label=label, show=lambda v: f"{v:.1f}", floor=None)
    stacked = c.stacked_chart(
        [p[:3] for p in points],
        span_ns=data.span_ns,
        label=label,
        name=lambda identity: _component_label(data, which, identity) or f"kind {identity}",
    )
    head = "<tr><th>Component</th><th class='n'>Share</th><th class='n'>Samples</th></tr>"
    inner = f"<h3>Free energy, nats a sample</h3>{curve}" if len(energy) > 1 else ""
    return (
        f"<h3>{c.esc(model_view(which).title)}</h3>{stacked}<details><summary>For makers of models</summary>"
        f"<p class='note'>{c.esc(', '.join(facts))}.{c.esc(held)}</p><div class='two'><div class='scroll'>"
        f"<table>{head}{rows}</table></div><div>{inner}</div></div></details>"
    )


def _component_label(data: ReportData, which: str, identity: int) -> str:
    """Return the name that a person gave this component of a mixture, escaped; empty where there is none."""
    model = data.last_model.get(which)
    if model is not None and str(identity) in model.labels:
        return c.esc(model.labels[str(identity)])
    if which != PICTURED:
        return ""
    return c.esc(next((item.label for item in data.scene_pictures.values() if item.component == identity), ""))
