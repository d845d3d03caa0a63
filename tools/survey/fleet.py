"""Runs of several agents as one survey, from what they sent of what they learnt: clumps and models, no video.

Called by tools/survey/command.py. A run's frames are its newest scene clumps; where it sent none, its newest scene
model's components stand for them. It must not mix spaces: runs of
different encoders meet in the directions that these share, or are refused.
"""

import pathlib
from dataclasses import dataclass, field

import cv2
import numpy as np

from stillwatch.base import UsageError
from stillwatch.learn import GroupedMixture
from stillwatch.tools.survey.analysis import Found
from stillwatch.tools.survey.encoders import LEAST_DIRECTIONS, MOST_LOST, Frames, Shared, known_encoders
from stillwatch.tools.survey.machines import Machines
from stillwatch.transport.disk import RUN_LOGS, log_files, open_run
from stillwatch.transport.wire import SCENE_MODEL, clump_arrays
from stillwatch.transport.wire import messages as m

# Clumps are drawn as at most this many frames. A fifth of it lost no more (DECISIONS.md); rare clusters want more.
DRAWN = 100_000


@dataclass
class Sent:
    """What one run sent of its frames.

    Attributes
    ----------
    counts : (n,) float64;  means : (n, d) float64
    spreads : (m, d (d + 1) / 2) or (m, d), float64: of the first m
    exemplars : dict of int to Exemplar, by id
    components : dict of int to ndarray of shape (d,): the model's means by id
    """

    name: str
    encoder: str = ""
    counts: np.ndarray = field(default_factory=lambda: np.zeros(0))
    means: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    spreads: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    is_clumps: bool = False
    exemplars: dict[int, m.Exemplar] = field(default_factory=dict)
    components: dict[int, np.ndarray] = field(default_factory=dict)


def is_run(folder: str) -> bool:
    """Return whether a folder is a run's, a ground station's, or a recording."""
    path = pathlib.Path(folder)
    return path.is_dir() and any(log_files(path, name) for name in RUN_LOGS)


def read_run(folder: str) -> Sent:
    """Return what a run sent; UsageError where it sent neither scene clumps nor a scene model."""
    sent = Sent(pathlib.Path(folder).name or pathlib.Path(folder).resolve().name)
    model: m.Model | None = None
    clumps: m.Clumps | None = None
    for _, message in open_run(folder).messages({"clumps", "model", "exemplar", "status"}):
        match message:
            case m.Status():
                sent.encoder = message.encoder_hash or sent.encoder
            case m.Exemplar():
                for gone in [] if message.removed is None else message.removed.tolist():
                    sent.exemplars.pop(gone, None)
                if message.thumbnail:
                    sent.exemplars[message.id] = message
            case m.Model() if message.which == SCENE_MODEL:
                model = message
            case m.Clumps() if message.which == SCENE_MODEL:
                clumps = message
    if model is not None:
        means = np.asarray(model.means, np.float64)
        sent.components = dict(zip(model.ids.tolist(), means, strict=True))
        spreads = model.covariances if model.covariances is not None else model.variances
        sent.counts, sent.means = np.asarray(model.counts, np.float64), means
        sent.spreads = np.maximum(np.asarray(spreads, np.float64), _least(spreads, means.shape[1]))
    if clumps is not None:
        sent.is_clumps = True
        held = clump_arrays(clumps)
        sent.counts, sent.means = held["count"], held["mean"]
        sent.spreads = held["variance" if "variance" in held else "covariance"]
    kept = sent.counts > 0.0
    if not kept.any():
        raise UsageError(
            f"{folder}: it holds neither scene clumps nor a scene model: nothing was learnt, or sent; leave it out"
        )
    sent.spreads = sent.spreads[kept[: len(sent.spreads)]]
    sent.counts, sent.means = sent.counts[kept], sent.means[kept]
    return sent


def _least(spreads: np.ndarray | None, n_dims: int) -> np.ndarray:
    """Return the least value of each column of spreads: variances are not negative, covariances may be."""
    n = n_dims if spreads is None else spreads.shape[1]
    if n == n_dims:
        return np.zeros(n)
    low = np.tril_indices(n_dims)
    return np.where(low[0] == low[1], 0.0, -np.inf)


@dataclass
class Fleet:
    """Runs merged: the survey of their clumps, with their exemplars as its pictures.

    Attributes
    ----------
    found : Found
        Its items are exemplars, its counts are frames.
    captions, pictures : of each exemplar: run/frame number, JPEG bytes
    of_dive : ndarray of shape (n_exemplars,), int64
    clump_rows : dict of str to list
        Columns of clumps.csv.
    notes : list of str
    """

    found: Found
    captions: list[str]
    pictures: list[bytes]
    of_dive: np.ndarray
    clump_rows: dict[str, list]
    notes: list[str]

    def picture(self, item: int) -> np.ndarray | None:
        """Return an exemplar's thumbnail as BGR; None where it cannot be read."""
        return cv2.imdecode(np.frombuffer(self.pictures[item], np.uint8), cv2.IMREAD_COLOR)


def merge(folders: list[str], c_width: float, n_jobs: int, machines: Machines, encoder_files: list[str]) -> Fleet:
    """Return the survey of several runs: S-GMC over their clumps, a group each.

    encoder_files : encoders that runs' checkpoints do not hold

    Raises UsageError where a run sent nothing, or their encoders differ and share too little or are not known.
    """
    read = dict(machines.run(read_run, folders))
    runs = [read[place] for place in range(len(folders))]
    _number_names(runs)
    moved = into_one_space(runs, folders, encoder_files)
    n_dims = runs[0].means.shape[1]
    groups = np.repeat(np.arange(len(runs)), [len(run.counts) for run in runs])
    counts, means = np.concatenate([run.counts for run in runs]), np.concatenate([run.means for run in runs])
    spreads = np.zeros((len(means), n_dims * (n_dims + 1) // 2))
    start = 0
    for run in runs:
        spreads[start : start + len(run.spreads)] = _triangles(run.spreads, n_dims)
        start += len(run.counts)
    model = GroupedMixture(c_width=c_width, n_drawn=DRAWN, n_jobs=n_jobs)
    model.fit(means, groups=groups, counts=counts, covariances=spreads)
    names = [run.name for run in runs]
    rows = {"dive": [names[j] for j in groups], "cluster": model.labels_.tolist(), "count": counts.tolist()}
    notes = moved + [
        f"{run.name}: no clumps were sent, its model's {len(run.counts)} components stand for its frames"
        for run in runs
        if not run.is_clumps
    ]
    shown = [
        (j, run.name, exemplar, run.components[exemplar.component])
        for j, run in enumerate(runs)
        for exemplar in one_a_component(run)
    ]
    of_dive = np.array([j for j, *_ in shown], np.int64)
    places = np.array([place for *_, place in shown]).reshape(len(shown), n_dims)
    proba = model.predict_proba(places, of_dive)
    found = Found(
        names,
        model.counts_,
        model.free_energy_,
        proba.argmax(axis=1),
        proba.max(axis=1, initial=0.0),
        -model.score_samples(places),
    )
    captions = [f"{name}/frame {exemplar.exemplar_frame}" for _, name, exemplar, _ in shown]
    return Fleet(found, captions, [exemplar.thumbnail for _, _, exemplar, _ in shown], of_dive, rows, notes)


def one_a_component(run: Sent) -> list[m.Exemplar]:
    """Return one exemplar of each component of the model, its most typical one where it was sent, by component."""
    best: dict[int, m.Exemplar] = {}
    for exemplar in run.exemplars.values():
        if exemplar.component in run.components:
            is_better = exemplar.role == "most_typical" or exemplar.component not in best
            best[exemplar.component] = exemplar if is_better else best[exemplar.component]
    return [best[component] for component in sorted(best)]


def _number_names(runs: list[Sent]) -> None:
    """Give runs of one name numbers."""
    seen: dict[str, int] = {}
    for run in runs:
        seen[run.name] = seen.get(run.name, 0) + 1
        if seen[run.name] > 1:
            run.name = f"{run.name}-{seen[run.name]}"


def into_one_space(runs: list[Sent], folders: list[str], encoder_files: list[str]) -> list[str]:
    """Make all runs describe frames alike, in place: where encoders differ, by the directions that they share.

    Returns notes of what was lost. Raises UsageError where an encoder is not known, or a run would lose too much.
    """
    spaces: dict[tuple[str, int], list[str]] = {}
    for run in runs:
        spaces.setdefault((run.encoder, run.means.shape[1]), []).append(run.name)
    if len(spaces) == 1:
        return []
    told = "; ".join(
        f"{encoder[:12] or 'unknown'}, {width} values: {', '.join(names)}" for (encoder, width), names in spaces.items()
    )
    refused = f"the runs' encoders differ ({told}) and their clumps cannot be merged"
    instead = "Fit one with `stillwatch fit-encoder` and give it to all agents"
    known = known_encoders(folders, encoder_files)
    bare = [run.name for run in runs if run.encoder not in known]
    if bare:
        raise UsageError(
            f"{refused}: the encoders of {', '.join(bare)} are not known, neither by a checkpoint in the run's folder "
            f"nor by --encoders. {instead}"
        )
    if len({known[run.encoder].basis.shape[0] for run in runs}) > 1:
        raise UsageError(f"{refused}: they are of other features. {instead}")
    shared = Shared([known[name] for name in dict.fromkeys(run.encoder for run in runs)])
    n_shared = shared.directions.shape[1]
    if n_shared < LEAST_DIRECTIONS:
        raise UsageError(f"{refused}: they share {n_shared} directions, {LEAST_DIRECTIONS} are needed. {instead}")
    losses = [_move(run, shared, known[run.encoder]) for run in runs]
    if max(losses) > MOST_LOST:
        worst = runs[int(np.argmax(losses))].name
        raise UsageError(
            f"{refused}: in the {n_shared} directions that they share {worst} would lose {max(losses):.0%} of its "
            f"variance. {instead}"
        )
    lost = ", ".join(f"{run.name} {loss:.0%}" for run, loss in zip(runs, losses, strict=True))
    return [
        f"the runs' encoders differ ({told}): frames are compared in the {n_shared} directions that they share, "
        f"without this part of each run's variance: {lost}"
    ]


def _move(run: Sent, shared: Shared, encoder: Frames) -> float:
    """Project a run's clumps and components in place; return the part of its variance that is lost."""
    spreads = np.zeros((len(run.counts), run.means.shape[1] * (run.means.shape[1] + 1) // 2))
    spreads[: len(run.spreads)] = _triangles(run.spreads, run.means.shape[1])
    if run.components:
        places = np.stack(list(run.components.values()))
        moved, _, _ = shared.project(encoder, np.ones(len(places)), places, np.zeros((len(places), spreads.shape[1])))
        run.components = dict(zip(run.components, moved, strict=True))
    run.means, run.spreads, lost = shared.project(encoder, run.counts, run.means, spreads)
    return lost


def _triangles(spreads: np.ndarray, n_dims: int) -> np.ndarray:
    """Return variances or lower triangles as lower triangles."""
    n_packed = n_dims * (n_dims + 1) // 2
    if not len(spreads) or spreads.shape[1] == n_packed:
        return spreads.reshape(len(spreads), -1)[:, :n_packed] if len(spreads) else np.zeros((0, n_packed))
    low = np.tril_indices(n_dims)
    triangles = np.zeros((len(spreads), n_packed))
    triangles[:, np.flatnonzero(low[0] == low[1])] = spreads
    return triangles
