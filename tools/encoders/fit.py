"""Fit an encoder file on any number of sources, so that a camera needs no warm-up of its own.

A command of the console script; the experiment on encoders uses its sampling. It must not write anything but the
file it was asked for.
"""

import sys
from collections.abc import Iterator

import msgspec
import numpy as np

from stillwatch.base import Frame, FrameFlag, RealClock, SourceError, UsageError
from stillwatch.features import FeatureExtractor, Projection, save_encoder
from stillwatch.settings import Config, load_config
from stillwatch.sources import Capture, open_source
from stillwatch.tools.shared import existing, print_json

WAIT_S = 1.0


def add_arguments(parser) -> None:
    """Add the command's options."""
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="files, folders, or any other source that ends")
    parser.add_argument("--out", required=True, metavar="FILE", help="the encoder file to write (.swenc)")
    parser.add_argument("--config", type=existing, metavar="FILE", help="feature settings that the encoder belongs to")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override one setting")
    parser.add_argument("--patches", type=int, default=50_000, metavar="N", help="patches to fit on, over all sources")
    parser.add_argument("--frames", type=int, default=2_000, metavar="N", help="frames to fit on, over all sources")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def main(args) -> int:
    """Sample the sources, fit, write the file, say how much of the variance it keeps."""
    if min(args.patches, args.frames) < 2:
        raise UsageError(f"--patches {args.patches} --frames {args.frames}: at least 2 of each are needed")
    config = load_config(args.config, args.set, opens_source=False)
    patches = Reservoir(args.patches // len(args.sources), config.agent.seed)
    frames = Reservoir(args.frames // len(args.sources), config.agent.seed + 1)
    extractor = fitting_extractor(config)
    all_patches, all_frames = [], []
    for uri in args.sources:
        sample_source(uri, config, extractor, patches, frames)
        if not len(patches.rows()):
            raise SourceError(f"{uri}: no frame with a patch outside the mask")
        all_patches.append(patches.rows())
        all_frames.append(frames.rows())
        patches.clear()
        frames.clear()
    fitted_on = np.concatenate(all_patches), np.concatenate(all_frames)
    encoder = extractor.fit_encoder(*fitted_on)
    try:
        save_encoder(encoder, args.out, source=", ".join(args.sources))
    except OSError as error:
        raise UsageError(f"--out {args.out}: not written: {error.strerror}; name another place") from None
    report = {
        "file": args.out,
        "hash": encoder.hash,
        "patches": len(fitted_on[0]),
        "frames": len(fitted_on[1]),
        "patch_dims": encoder.patch.basis.shape[1],
        "frame_dims": encoder.frame.basis.shape[1],
        "patch_variance_kept": variance_kept(encoder.patch, fitted_on[0]),
        "frame_variance_kept": variance_kept(encoder.frame, fitted_on[1]),
    }
    print_json(report) if args.json else print(describe(report))
    return 0


def describe(report: dict) -> str:
    """Return the report in words."""
    return (
        f"{report['file']}: encoder {report['hash']} from {report['patches']} patches of {report['frames']} frames\n"
        f"keeps {report['patch_variance_kept']:.1%} of the patches' variance in {report['patch_dims']} dimensions and "
        f"{report['frame_variance_kept']:.1%} of the frames' in {report['frame_dims']}"
    )


def fitting_extractor(config: Config) -> FeatureExtractor:
    """Return an extractor with the config's features and no encoder file."""
    encoder = msgspec.structs.replace(config.encoder, file="")
    return FeatureExtractor(msgspec.structs.replace(config, encoder=encoder))


def variance_kept(projection: Projection, samples: np.ndarray) -> float:
    """Return the share of the samples' variance inside the projection's span, 0 to 1; 1 where they don't vary."""
    span, _ = np.linalg.qr(projection.basis.astype(np.float64))
    centred = samples - samples.mean(axis=0, dtype=np.float64)
    total = float((centred**2).sum())
    return float(((centred @ span) ** 2).sum()) / total if total > 0 else 1.0


class Reservoir:
    """A uniform sample of fixed size of all rows offered (Vitter's algorithm R, a frame at a time)."""

    def __init__(self, capacity: int, seed: int):
        self._capacity = max(capacity, 1)
        self._random = np.random.default_rng(seed)
        self.clear()

    def clear(self) -> None:
        self._rows: np.ndarray | None = None
        self._seen = 0

    def offer(self, rows: np.ndarray) -> None:
        """Take each row with the probability that keeps the sample uniform; rows are copied."""
        if self._rows is None:
            self._rows = np.zeros((self._capacity, rows.shape[1]), np.float32)
        numbers = self._seen + np.arange(len(rows))
        places = np.where(numbers < self._capacity, numbers, self._random.integers(0, numbers + 1))
        kept = places < self._capacity
        self._rows[places[kept]] = rows[kept]
        self._seen += len(rows)

    def rows(self) -> np.ndarray:
        """Return the sample, (n, n_dims) float32."""
        return np.zeros((0, 0), np.float32) if self._rows is None else self._rows[: min(self._seen, self._capacity)]


def sample_source(uri: str, config: Config, extractor: FeatureExtractor, patches: Reservoir, frames: Reservoir) -> None:
    """Offer every undamaged frame's valid raw descriptors to the reservoirs."""
    for frame in frames_of(uri, config):
        features = extractor.extract(frame)
        if features.valid.any():
            patches.offer(features.raw_patches[features.valid])
            frames.offer(features.raw_frame[None])


def frames_of(uri: str, config: Config) -> Iterator[Frame]:
    """Yield the undamaged frames of a source that ends; a source that fails before its end says so on stderr."""
    clock = RealClock()
    capture = Capture(lambda: open_source(uri, config.source, clock), config.source, clock)
    if capture.live:
        raise UsageError(f"{uri}: a live source does not end; record it first")
    capture.start()
    try:
        while not capture.ended:
            frame = capture.next(WAIT_S)
            if frame is not None and not frame.flags & FrameFlag.DAMAGED:
                yield frame
        if capture.error is not None:
            if not capture.error.partial:
                raise capture.error
            print(f"stillwatch: {capture.error}", file=sys.stderr)
    finally:
        capture.stop()
