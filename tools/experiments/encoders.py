"""Compare encoders across scenes: fitted on the scene's own first frames, on other scenes, or random.

The command `experiment encoders`; its table is what the defaults of the encoder section rest on. It must not
tune anything: every encoder sees the same descriptors and the same simple score.
"""

import json
import pathlib
from dataclasses import dataclass

import numpy as np

from stillwatch.features import FeatureExtractor, Projection, fit_pca, random_projection
from stillwatch.settings import Config, FeaturesConfig, SourceConfig
from stillwatch.tools.encoders import fitting_extractor, frames_of, variance_kept
from stillwatch.tools.shared import add_data_argument, find_data, print_json

# clip, whether the camera stands still, and the frames taken: every n-th
CLIPS = {
    "car_overhead": ("surveillance/car_overhead.mp4", True, 2),
    "bottle_table": ("surveillance/bottle_table.mp4", True, 8),
    "vtest": ("surveillance/vtest_384x288.mp4", True, 4),
    "habcam": ("underwater/habcam_transect.mp4", False, 2),
}
ENCODERS = ("own_warmup", "own_warmup_whitened", "others", "others_whitened", "random")
STEP_PX = 16
WARMUP_FRAMES = 12
RESERVOIR, SHARE, TOP = 1000, 0.25, 0.1  # rows kept, share of patches offered, share of a frame's patches averaged
NEIGHBOURS = 5
SEED = 0


@dataclass(frozen=True, slots=True)
class Scene:
    """Raw descriptors of one clip: patches (frames, n, raw), frames (frames, raw), centres (n, 2), is_event."""

    patches: np.ndarray
    frames: np.ndarray
    centres: np.ndarray
    is_event: np.ndarray
    is_fixed: bool


def add_arguments(parser) -> None:
    """Add the command's options."""
    add_data_argument(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--dims", type=int, nargs="+", default=[8, 16, 32], metavar="N", help="encoded dimensions")


def main(args) -> int:
    """Print a row for each part, encoder, number of dimensions and scene."""
    root = find_data(args.data)
    scenes = {name: load_scene(root, name) for name in CLIPS}
    rows = []
    for part in ("patch", "frame"):
        for dims in args.dims:
            for encoder in ENCODERS:
                rows += [compare(scenes, name, part, encoder, dims) for name in scenes]
    if args.json:
        print_json({"rows": rows})
    else:
        print_table(rows)
    return 0


def load_scene(root: pathlib.Path, name: str) -> Scene:
    """Describe every n-th frame of a clip with the default features, on a coarser grid."""
    path, is_fixed, every = CLIPS[name]
    config = Config(source=SourceConfig(uri=str(root / path)), features=FeaturesConfig(step_px=STEP_PX))
    extractor: FeatureExtractor = fitting_extractor(config)
    patches, frames, numbers = [], [], []
    for number, frame in enumerate(frames_of(config.source.uri, config)):
        if number % every == 0:
            features = extractor.extract(frame)
            patches.append(features.raw_patches.copy())
            frames.append(features.raw_frame.copy())
            numbers.append(number)
    spans = event_spans(root, path)
    is_event = np.array([any(first <= number <= last for first, last in spans) for number in numbers])
    return Scene(np.stack(patches), np.stack(frames), features.centres.copy(), is_event, is_fixed)


def event_spans(root: pathlib.Path, path: str) -> list[tuple[int, int]]:
    """Return first and last frame of each event of a clip; for the transect, of what is shown for the first time."""
    name = pathlib.Path(path).name
    if path.startswith("surveillance"):
        events = json.loads((root / "surveillance" / "events.json").read_text())["files"][name]["events"]
    else:
        segments = json.loads((root / "underwater" / "segments.json").read_text())[name]["segments"]
        events = [segment for segment in segments[1:] if segment["first_time"]]
    return [(event["start"], event["end"]) for event in events]


def compare(scenes: dict[str, Scene], name: str, part: str, encoder: str, dims: int) -> dict:
    """Return one row: an encoder fitted without (or only on the start of) a scene, used on the rest of it."""
    scene = scenes[name]
    rest = samples_of(scene, part)[WARMUP_FRAMES:]
    projection = make_projection(scenes, name, part, encoder, min(dims, rest.shape[-1]))
    flat = rest.reshape(-1, rest.shape[-1])
    return {
        "part": part,
        "encoder": encoder,
        "dims": dims,
        "scene": name,
        "variance_kept": variance_kept(projection, flat),
        "neighbours_kept": neighbours_kept(projection, flat),
        "auc": novelty_auc(projection, scene, part),
    }


def samples_of(scene: Scene, part: str) -> np.ndarray:
    """Return (frames, samples a frame, raw dims)."""
    return scene.patches if part == "patch" else scene.frames[:, None, :]


def make_projection(scenes: dict[str, Scene], name: str, part: str, encoder: str, dims: int) -> Projection:
    """Fit on the scene's first frames, or on an equal number of samples from each of the other scenes."""
    n_raw = samples_of(scenes[name], part).shape[-1]
    if encoder == "random":
        return random_projection(n_raw, dims, SEED)
    if encoder.startswith("own"):
        samples = samples_of(scenes[name], part)[:WARMUP_FRAMES].reshape(-1, n_raw)
    else:
        rng = np.random.default_rng(SEED)
        others = [samples_of(scene, part).reshape(-1, n_raw) for other, scene in scenes.items() if other != name]
        size = min(4000, *(len(rows) for rows in others))
        samples = np.concatenate([rows[rng.choice(len(rows), size, replace=False)] for rows in others])
    return fit_pca(samples, dims, whiten=encoder.endswith("whitened"))


def encode(projection: Projection, samples: np.ndarray) -> np.ndarray:
    """Return encoded rows."""
    return projection.apply(samples, np.empty((len(samples), projection.basis.shape[1]), np.float32))


def squared_distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return all squared distances between rows, (len(a), len(b))."""
    return np.maximum((a * a).sum(1)[:, None] + (b * b).sum(1) - 2 * a @ b.T, 0)


def neighbours_kept(projection: Projection, samples: np.ndarray) -> float:
    """Return how often a sample's nearest neighbour in raw space is among its five nearest after encoding."""
    rng = np.random.default_rng(SEED)
    samples = samples[rng.choice(len(samples), min(len(samples), 2500), replace=False)]
    n_queries = len(samples) // 5
    queries, others = samples[:n_queries], samples[n_queries:]
    truth = squared_distances(queries, others).argmin(axis=1)
    distances = squared_distances(encode(projection, queries), encode(projection, others))
    rank = (distances < distances[np.arange(n_queries), truth][:, None]).sum(axis=1)
    return float((rank < NEIGHBOURS).mean())


def novelty_auc(projection: Projection, scene: Scene, part: str) -> float:
    """Return the frame AUC of distance to a reservoir of what was seen before, scored before it is offered.

    On fixed cameras positions are appended to patches, as wide as the descriptors.
    """
    samples = samples_of(scene, part)
    n_frames, n, _ = samples.shape
    encoded = encode(projection, samples.reshape(n_frames * n, -1)).reshape(n_frames, n, -1)
    if part == "patch" and scene.is_fixed:
        spread = np.sqrt(encoded[:WARMUP_FRAMES].reshape(-1, encoded.shape[-1]).var(axis=0).sum())
        centres = 2 * spread * scene.centres / scene.centres.std()
        encoded = np.concatenate([encoded, np.broadcast_to(centres, (n_frames, n, 2)).astype(np.float32)], axis=-1)
    rng = np.random.default_rng(SEED)
    kept, seen, scores = np.zeros((RESERVOIR, encoded.shape[-1]), np.float32), 0, []
    for number, rows in enumerate(encoded):
        if number >= WARMUP_FRAMES:
            nearest = np.sqrt(squared_distances(rows, kept[: min(seen, RESERVOIR)]).min(axis=1))
            scores.append(np.sort(nearest)[-max(1, round(TOP * n)) :].mean())
        for row in rows[rng.choice(n, max(1, round(SHARE * n)), replace=False)]:
            place = seen if seen < RESERVOIR else rng.integers(seen + 1)
            if place < RESERVOIR:
                kept[place] = row
            seen += 1
    return area_under_curve(np.array(scores), scene.is_event[WARMUP_FRAMES:])


def area_under_curve(scores: np.ndarray, is_event: np.ndarray) -> float:
    """Return the probability that an event's frame scores above another; ties count half."""
    events, others = scores[is_event], scores[~is_event]
    above = (events[:, None] > others).mean()
    return float(above + 0.5 * (events[:, None] == others).mean())


def print_table(rows: list[dict]) -> None:
    """Print one line for each part, encoder and number of dimensions, averaged over scenes."""
    print(f"{'part':6} {'dims':>4} {'encoder':20} {'variance':>8} {'neighbours':>10} {'auc':>6}  auc by scene")
    for key in dict.fromkeys((row["part"], row["dims"], row["encoder"]) for row in rows):
        group = [row for row in rows if (row["part"], row["dims"], row["encoder"]) == key]
        means = [np.mean([row[column] for row in group]) for column in ("variance_kept", "neighbours_kept", "auc")]
        by_scene = " ".join(f"{row['scene']} {row['auc']:.3f}" for row in group)
        print(f"{key[0]:6} {key[1]:>4} {key[2]:20} {means[0]:8.3f} {means[1]:10.3f} {means[2]:6.3f}  {by_scene}")
