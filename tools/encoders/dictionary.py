"""Learn the dictionary of sparse codes that ships with the package, from pictures of many kinds, by k-means.

A command of the console script. It must not touch the ten classes that `experiment survey-caltech` is scored on.
"""

import pathlib
import zipfile
from collections.abc import Iterator

import cv2
import numpy as np

from stillwatch.base import UsageError
from stillwatch.features import patch_descriptor
from stillwatch.tools.shared import add_data_argument, find_data, print_json, result_stream
from stillwatch.worlds import make_world

LONGEST_PX = 320
# The thesis's ten classes: `experiment survey-caltech` is scored on those of them that are there.
SCORED = (
    "cougar_body", "Leopards", "laptop", "camera", "Faces", "airplanes", "Motorbikes", "watch", "elephant", "beaver",
)  # fmt: skip
WORLD_FRAMES = 40


def add_arguments(parser) -> None:
    """Add the command's options."""
    add_data_argument(parser)
    parser.add_argument("--out", required=True, metavar="FILE", help="the dictionary file to write (.npz)")
    parser.add_argument("--atoms", type=int, default=1024, metavar="K", help="(default: 1024)")
    parser.add_argument("--patches", type=int, default=60_000, metavar="N", help="patches to learn from")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def main(args) -> int:
    """Sample patches evenly over the pictures, cluster them, write the centres as bytes."""
    if min(args.atoms, args.patches) < 2:
        raise UsageError(f"--atoms {args.atoms} --patches {args.patches}: at least 2 of each are needed")
    data = find_data(args.data)
    from sklearn.cluster import MiniBatchKMeans

    pictures = list(pictures_of(data))
    rng = np.random.default_rng(args.seed)
    patches = sample_patches(pictures, args.patches, rng)
    k_means = MiniBatchKMeans(args.atoms, batch_size=4096, max_iter=60, n_init=1, random_state=args.seed)
    atoms = k_means.fit(patches).cluster_centers_
    # A byte a value: SIFT is not negative, and a direction needs no more.
    scaled = np.round(255.0 * atoms / atoms.max(axis=1, keepdims=True)).clip(0, 255).astype(np.uint8)
    with result_stream(args.out) as stream:
        np.savez_compressed(stream, atoms=scaled)
    report = {"file": args.out, "pictures": len(pictures), "patches": len(patches), "atoms": len(scaled)}
    report["bytes"] = pathlib.Path(args.out).stat().st_size
    if args.json:
        print_json(report)
    else:
        print("  ".join(f"{name}: {value}" for name, value in report.items()))
    return 0


def scaled_grey(image: np.ndarray) -> np.ndarray:
    """Return a grey picture whose longer side is at most 320 px."""
    grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY) if image.ndim == 3 else image
    ratio = LONGEST_PX / max(grey.shape)
    if ratio >= 1.0:
        return grey
    size = (max(1, round(grey.shape[1] * ratio)), max(1, round(grey.shape[0] * ratio)))
    return cv2.resize(grey, size, interpolation=cv2.INTER_AREA)


def pictures_of(data: pathlib.Path) -> Iterator[np.ndarray]:
    """Yield grey pictures: Caltech's training ones of other classes, the sea floor, and made worlds."""
    with zipfile.ZipFile(data / "caltech" / "train.zip") as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(".jpg") and pathlib.PurePath(name).parent.name not in SCORED:
                yield scaled_grey(decoded(archive.read(name), name))
    for path in sorted((data / "underwater").rglob("*.jpg")):
        whole = decoded(path.read_bytes(), str(path))
        yield from (scaled_grey(part) for half in np.array_split(whole, 2) for part in np.array_split(half, 2, axis=1))
    for name in ("road", "room"):  # not the transect: `experiment survey-transects` is scored on it
        world = make_world(name, seed=7, width=320, height=240)
        for frame in np.linspace(0, world.n_frames - 1, WORLD_FRAMES).astype(int):
            yield scaled_grey(world.render(int(frame)))


def decoded(data: bytes, name: str) -> np.ndarray:
    """Return the grey picture that a file's bytes hold."""
    grey = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_GRAYSCALE)
    if grey is None:
        raise UsageError(f"{name}: no picture that can be read; give JPEG or PNG files")
    return grey


def sample_patches(pictures: list[np.ndarray], n: int, rng: np.random.Generator) -> np.ndarray:
    """Return about n descriptors of patches with texture, as many from each picture, (n, 128) float32."""
    each = max(1, round(n / len(pictures)))
    sift = patch_descriptor(LONGEST_PX, LONGEST_PX)
    taken = []
    for grey in pictures:
        sift.reshape(*grey.shape)
        rows = sift.compute(grey)[~sift.flat]
        taken.append(rows[rng.permutation(len(rows))[:each]].copy())
    return np.concatenate(taken)
