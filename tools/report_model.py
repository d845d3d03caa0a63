"""The learned mixtures of a report: each component's share over time, and the free energy.

Called by tools/report_page.py. It must keep a component's colour the same wherever it appears.
"""

from stillwatch.tools import report_charts as c
from stillwatch.tools.report_data import ReportData

LEARNER_NAMES = {"patches": "Patches: what small parts of the view look like",
                 "scenes": "Scenes: what the whole view looks like"}  # fmt: skip


def components_section(data: ReportData, label: c.Label) -> str:
    if not data.models:
        return "<h2>What was learnt</h2><div class='empty'>No model was received: no epoch had ended.</div>"
    out = "<h2>What was learnt</h2><p class='note'>The share of each mixture component over time. A colour is one "
    out += "component, from its birth to its end.</p>"
    for which in ("patches", "scenes"):
        if which in data.models:
            out += _mixture(data, which, label)
    return out


def _mixture(data: ReportData, which: str, label: c.Label) -> str:
    points = data.models[which].all()
    model = data.last_model[which]
    total = float(model.counts.sum()) or 1.0
    rows = ""
    for identity, count in zip(model.ids.tolist()[:12], model.counts.tolist()[:12], strict=True):
        picture = _component_label(data, identity) if which == "scenes" else ""
        swatch = f"<i class='swatch' style='background:{c.component_colour(identity)}'></i>"
        share = f"<td class='n'>{count / total:.1%}</td><td class='n'>{c.number(count)}</td>"
        rows += f"<tr><td>{swatch}{identity}</td>{share}{picture}</tr>"
    facts = [f"{model.n_components} components", f"{model.clumps} clumps", f"{model.model_epoch} epochs"]
    if model.free_energy is not None:
        facts.append(f"free energy {model.free_energy:.2f} nats a sample")
    energy = [(x, e) for x, _, _, _, e, _, _ in points if e is not None]
    curve = c.line_chart(energy, span_ns=data.span_ns, label=label, show=lambda v: f"{v:.1f}", floor=None)
    stacked = c.stacked_chart([p[:3] for p in points], span_ns=data.span_ns, label=label)
    head = "<tr><th>Component</th><th class='n'>Share</th><th class='n'>Samples</th></tr>"
    inner = f"<h3>Free energy, nats a sample</h3>{curve}" if len(energy) > 1 else ""
    return (f"<h3>{LEARNER_NAMES[which]}</h3><p class='note'>{c.esc(', '.join(facts))}</p>{stacked}"
            "<details><summary>Largest components and free energy</summary><div class='two'><div class='scroll'>"
            f"<table>{head}{rows}</table></div><div>{inner}</div></div></details>")  # fmt: skip


def _component_label(data: ReportData, identity: int) -> str:
    labels = {item.label for item in data.exemplars.values() if item.component == identity and item.label}
    return f"<td>{c.esc(', '.join(sorted(labels)))}</td>"
