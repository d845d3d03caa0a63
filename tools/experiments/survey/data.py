"""Labelled pictures of the survey experiments: Caltech's classes of the thesis, class folders, made dives.

Called by tools/experiments/survey/command.py. What is not drawn here by seed is in the order of names.
"""

import pathlib
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import cv2
import numpy as np

from stillwatch.base import UsageError
from stillwatch.tools.survey import (
    Described,
    Dive,
    describe_dives,
    describe_images,
    dives_of,
    labels_of,
    named_few,
    principal_coordinates,
    segments_of,
    whitened,
    whole_blocks,
)
from stillwatch.worlds import make_world

# Those of the thesis's ten classes that the shared data has; motorbikes are cut to as many as the largest other class.
CALTECH = ("cougar_body", "Leopards", "laptop", "camera", "watch", "elephant", "beaver")
MOTORBIKES = 40
N_GROUPS = 10
DIVES, FRAMES_A_DIVE = 5, 600
FRAMES_TO_FILL = 240 / 4  # the picture's height over what the vehicle moves a frame, pixels
LEAST_GROUND = 0.8


@dataclass(frozen=True)
class Labelled:
    """Described pictures.

    whole : ndarray of shape (n, 20), float64
    segments : ndarray of shape (n_segments, at most 15), float64, whitened
    images : ndarray of shape (n_segments,), int64: the picture of each segment
    labels : ndarray of shape (n,), str;  dives : (n,) int64, the group that a picture belongs to by nature, or None
    notes : of what was left out
    """

    whole: np.ndarray
    segments: np.ndarray
    images: np.ndarray
    labels: np.ndarray
    dives: np.ndarray | None = None
    notes: tuple[str, ...] = ()


def reduced(
    blocks: Callable[[], Iterator[np.ndarray]], segments: np.ndarray, n_segments: np.ndarray, labels, dives=None
) -> Labelled:
    """Return pictures in principal coordinates; segments, (n_segments, width), are whitened."""
    images = np.repeat(np.arange(len(n_segments)), n_segments)
    white = whitened(segments) if len(segments) else np.zeros((0, 1))
    return Labelled(principal_coordinates(blocks), white, images, np.asarray(labels), dives)


def _from_memory(described: Iterable[Described | None], labels: list[str], dives=None) -> Labelled:
    found = [made for made in described if made is not None]
    whole, segments = np.array([made.whole for made in found]), np.concatenate([made.segments for made in found])
    n_segments = np.array([len(made.segments) for made in found])
    blocks = [whole[i : i + 256] for i in range(0, len(whole), 256)]
    return reduced(lambda: iter(blocks), segments, n_segments, labels, dives)


def caltech(data: pathlib.Path, kind: str) -> Labelled:
    """Return the thesis's classes that are there, training and test pictures together; `kind` of segments."""
    names: list[tuple[str, str, str]] = []
    for archive in ("train.zip", "test.zip", "motorbikes.zip"):
        with zipfile.ZipFile(data / "caltech" / archive) as held:
            for name in sorted(held.namelist()):
                folder = pathlib.PurePath(name).parent.name or "Motorbikes"
                if name.endswith(".jpg") and folder in (*CALTECH, "Motorbikes"):
                    names.append((archive, name, folder))
    bikes = [entry for entry in names if entry[2] == "Motorbikes"][:MOTORBIKES]
    names = sorted([entry for entry in names if entry[2] != "Motorbikes"] + bikes, key=lambda entry: entry[2])

    def images() -> Iterator[np.ndarray]:
        for archive, name, _ in names:
            with zipfile.ZipFile(data / "caltech" / archive) as held:
                image = cv2.imdecode(np.frombuffer(held.read(name), np.uint8), cv2.IMREAD_COLOR)
            if image is None:
                raise UsageError(f"{archive}: {name} cannot be read; take the file anew")
            yield image

    return _from_memory(describe_images(images(), kind), [folder for _, _, folder in names])


def scenes(folder: str, kind: str, show: Callable[[str], None] = lambda text: None) -> Labelled:
    """Return the pictures of a folder of class folders; those that cannot be read or lie in none are left out, noted.

    show : told a line of progress
    """
    (held,) = dives_of([folder], labels_by_folder=True)
    root = pathlib.Path(folder)
    dive = Dive(held.name, [picture for picture in held.pictures if picture.path.parent != root])
    labels = np.array(labels_of([dive], "DIR-NAMES")[0])
    if len(set(labels)) < 2:
        raise UsageError(f"{folder}: its pictures lie in {len(set(labels))} class folder(s), 2 are needed")
    with tempfile.TemporaryDirectory() as place:
        parts, readable = describe_dives([dive], pathlib.Path(place), show, kind)
        if not readable.any():
            raise UsageError(f"{folder}: none of its {len(labels)} pictures can be read")
        found = reduced(lambda: whole_blocks(parts), *segments_of(parts), labels[readable])
    left_out = {
        "cannot be read": [dive.pictures[i].name for i in np.flatnonzero(~readable)],
        "lie in no class folder": [picture.name for picture in held.pictures if picture.path.parent == root],
    }
    notes = [f"{folder}: left out, as they {why}: {len(of)} ({named_few(of)})" for why, of in left_out.items() if of]
    return replace(found, notes=tuple(notes))


def transects(every: int, seed: int, kind: str) -> Labelled:
    """Return frames of five made dives, each its own group, labelled by their ground.

    New ground enters at the top and moves down: a frame that no ground fills to four fifths is of none, and left out.
    """
    labels: list[str] = []
    dives: list[int] = []

    def images() -> Iterator[np.ndarray]:
        for dive in range(DIVES):
            world = make_world("transect", seed=seed + dive, n_frames=FRAMES_A_DIVE, width=320, height=240)
            starts = [(p["start"], p["scene"]) for p in world.truth()["segments"] if p["kind"] == "substrate"]
            for frame in range(0, FRAMES_A_DIVE, every):
                ground, share = ground_of(starts, frame)
                if share >= LEAST_GROUND:
                    labels.append(ground)
                    dives.append(dive)
                    yield world.render(frame)

    described = list(describe_images(images(), kind))
    return _from_memory(described, labels, np.array(dives))


def ground_of(starts: list[tuple[int, str]], frame: int) -> tuple[str, float]:
    """Return (the ground that fills most of a frame, how much of it), from when each ground entered, ascending."""
    entered = [1.0 if start == 0 else min(max((frame - start) / FRAMES_TO_FILL, 0.0), 1.0) for start, _ in starts]
    shares: dict[str, float] = {}
    for (_, name), reach, next_reach in zip(starts, entered, [*entered[1:], 0.0], strict=True):
        shares[name] = shares.get(name, 0.0) + reach - next_reach
    ground = max(shares, key=lambda name: shares[name])
    return ground, shares[ground]


def artificial_groups(labels: np.ndarray, grouping: str, rng: np.random.Generator) -> np.ndarray:
    """Return the group of each picture by its label (thesis 4.5.1), (n,) int64.

    proportional : every group has the classes' global proportions; random : a mix of its own; subset : a mix of its
    own of some of the classes. Each class is dealt over the groups by its weights in them.
    """
    classes, index = np.unique(labels, return_inverse=True)
    weights = np.ones((N_GROUPS, len(classes)))
    if grouping != "proportional":
        weights = rng.dirichlet(np.ones(len(classes)), N_GROUPS)
    if grouping == "subset":
        weights[rng.random(weights.shape) < 0.5] = 0.0
        lost = ~weights.any(axis=0)  # a class that no group has goes to one by lot
        weights[rng.integers(N_GROUPS, size=int(lost.sum())), np.flatnonzero(lost)] = 1.0
    groups = np.empty(len(labels), np.int64)
    for place in range(len(classes)):
        own = rng.permutation(np.flatnonzero(index == place))
        shares = weights[:, place] / weights[:, place].sum()
        bounds = np.round(np.cumsum(shares) * len(own)).astype(int)
        groups[own] = np.searchsorted(bounds, np.arange(len(own)), side="right").clip(0, N_GROUPS - 1)
    return groups
