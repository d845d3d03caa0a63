"""The features stage: dense patch descriptors and one frame descriptor, reduced by frozen encoders.

Called by agent/pipeline/pipeline.py, tools and tests. It must not score or remember frames, but for the warm-up
samples that an encoder is fitted on; positions are appended by those who want them.
"""

from dataclasses import dataclass, replace

import numpy as np

from stillwatch.base import Array, Commit, Frame, Restorable, SnapshotError, State, check_arrays
from stillwatch.features.dense_sift import DenseSift
from stillwatch.features.encoder import (
    Encoder,
    check_settings,
    encoder_from_state,
    fit_projection,
    load_encoder,
    projection_of,
    random_projection,
)
from stillwatch.features.frame_descriptor import FrameDescriptor
from stillwatch.features.masks import MaskFill, patches_clear_of, rasterise
from stillwatch.kernels.gating import gate_descriptors
from stillwatch.settings import Config

SETTINGS_VERSION = 1  # of the raw descriptors' meaning: raised whenever their values change
GATE_DIMS = 2  # contrast and brightness,
CONTRAST, BRIGHTNESS = -2, -1  # the last columns of a gated raw patch
WARMUP_SAMPLES = 4096  # patches that the encoder is fitted on, over all warm-up frames
BRIGHTNESS_SCALE = 1.0 / 64.0  # grey levels that weigh as much as a whole descriptor


@dataclass(frozen=True, slots=True)
class GateAxes:
    """How the last two raw values stand in an encoded patch; each ndarray of shape (n_patch_dims,), float32.

    contrast, brightness: what one unit of either adds. origin: what a patch of nothing is encoded as.
    """

    contrast: np.ndarray
    brightness: np.ndarray
    origin: np.ndarray


@dataclass(slots=True)
class Features:
    """What is known of one frame. All arrays are the extractor's own and valid until its next call.

    Attributes
    ----------
    raw_patches : ndarray of shape (n, n_raw_dims), float32
    patches : ndarray of shape (n, n_patch_dims), float32
        Encoded; zeros until `ready`.
    valid : ndarray of shape (n,), bool
        False where the patch's square touches the mask: for no learner and no score.
    flat : ndarray of shape (n,), bool
        Contrast below the threshold: the SIFT part is zero. Still a sample like others.
    centres : ndarray of shape (n, 2), float32
        x and y in [0, 1] of width and height; row by row of the grid.
    grid_shape : tuple of int
        Rows and columns of the grid; n = rows * columns.
    raw_frame : ndarray of shape (n_raw_frame_dims,), float32
    frame : ndarray of shape (n_frame_dims,), float32
        Encoded; zeros until `ready`.
    ready : bool
        Whether `patches` and `frame` are encoded.
    gate : GateAxes or None
        What contrast and brightness add to an encoded patch; None where it has none, or is not encoded.
    """

    raw_patches: np.ndarray
    patches: np.ndarray
    valid: np.ndarray
    flat: np.ndarray
    centres: np.ndarray
    grid_shape: tuple[int, int]
    raw_frame: np.ndarray
    frame: np.ndarray
    ready: bool
    gate: GateAxes | None = None


class FeatureExtractor(Restorable):
    """Describes frames up to the box of the config, in memory allocated here.

    The encoder comes from the file of the config, or both its projections are random and it is ready at once, or it
    is fitted on the first frames handed to `observe`; it never changes after that.

    Attributes
    ----------
    ready : bool
        The encoder is frozen.
    n_patch_dims, n_frame_dims, n_raw_dims, n_raw_frame_dims : int
    capacity_patches : int
        Patches of the largest frame.
    grid_shape : tuple of int
        Rows and columns at the present frame shape.
    """

    def __init__(self, config: Config):
        self._config = config
        settings = config.features
        self._gated = settings.patch == "gated_sift"
        self._sift = DenseSift(
            config.source.height,
            config.source.width,
            step_px=settings.step_px,
            bin_px=settings.bin_px,
            window=settings.window,
            smoothing_px=settings.smoothing_px,
            root_sift=settings.root_sift,
            contrast_threshold=settings.contrast_threshold,
            extra_dims=GATE_DIMS if self._gated else 0,
        )
        self.capacity_patches = self._sift.capacity
        self.n_raw_dims = self._sift.out.shape[1]
        self.n_patch_dims = min(config.encoder.patch_dims, self.n_raw_dims)
        self.n_raw_frame_dims = FrameDescriptor.n_dims
        self.n_frame_dims = min(config.encoder.frame_dims, self.n_raw_frame_dims)
        self._patches = np.zeros((self.capacity_patches, self.n_patch_dims), np.float32)
        self._frame = np.zeros(self.n_frame_dims, np.float32)
        self._encoder = self._first_encoder()
        self._warmup = WarmUp(config.encoder.warmup_frames, self.n_raw_dims, self.n_raw_frame_dims)
        self.reshape(config.source.height, config.source.width)
        self._bytes = self._count_bytes()

    @property
    def ready(self) -> bool:
        return self._encoder is not None

    @property
    def encoder(self) -> Encoder | None:
        return self._encoder

    @property
    def encoder_hash(self) -> str:
        """16 hex digits over both projections; empty until ready."""
        return self._encoder.hash if self._encoder else ""

    def reshape(self, height: int, width: int) -> None:
        """Begin a stream epoch of another frame shape: new grid and masks. ValueError outside the config's box."""
        settings = self._config.features
        self._sift.reshape(height, width)
        masked = rasterise(settings.mask, settings.mask_png, height, width)
        rows, columns = self._sift.rows, self._sift.columns
        self._fill = MaskFill(masked)
        self._frame_descriptor = FrameDescriptor(masked, settings.colour_constancy)
        self._valid = patches_clear_of(masked, rows, columns, 4 * max(settings.bin_px))
        x, y = np.meshgrid((columns + 0.5) / width, (rows + 0.5) / height)
        self._centres = np.stack([x.ravel(), y.ravel()], axis=1).astype(np.float32)
        self.grid_shape = (len(rows), len(columns))

    def extract(self, frame: Frame) -> Features:
        """Describe one frame, whatever is in it; a frame of another shape begins a new epoch by itself.

        ValueError only where the frame does not fit in the config's box.
        """
        if frame.grey.shape != self._sift.shape:
            self.reshape(*frame.grey.shape)
        grey, colour = self._fill.apply(frame.grey, frame.colour)
        raw = self._sift.compute(grey)
        if self._gated:
            gate = np.float32(1.0 / self._config.features.gate_level)
            dims = self._sift.descriptor_dims
            gate_descriptors(self._sift.energy, self._sift.brightness, gate, np.float32(BRIGHTNESS_SCALE), dims, raw)
        self._frame_descriptor.compute(grey, colour)
        self._encode()
        return self._features()

    def observe(self, features: Features) -> bool:
        """Let an accepted frame's features teach the encoder; does nothing when it is ready.

        Called with what `extract` returned last. Frames without a valid patch do not count. Returns whether
        the encoder became ready now; then `features` is encoded too, in place.
        """
        if self.ready:
            return False
        self._warmup.add(features, self._config.agent.seed)
        if self._warmup.count < self._config.encoder.warmup_frames:
            return False
        self._encoder = self.fit_encoder(self._warmup.patches(), self._warmup.frames())
        self._warmup.release()
        self._encode()
        features.ready = True
        features.gate = self._gate()
        return True

    def take_projection(self, basis: np.ndarray, offset: np.ndarray) -> None:
        """Encode patches by another agent's projection from now on; the frame's stays.

        basis : ndarray of shape (n_raw_dims, n_patch_dims);  offset : (n_patch_dims,);  ValueError for other shapes
        """
        if basis.shape != (self.n_raw_dims, self.n_patch_dims) or offset.shape != (self.n_patch_dims,):
            wanted = f"({self.n_raw_dims}, {self.n_patch_dims})"
            raise ValueError(f"projection of shape {basis.shape} with {offset.shape}: the settings need {wanted}")
        if self._encoder is None:
            raise ValueError("features: no encoder yet whose projection of patches could be another")
        self._encoder = replace(self._encoder, patch=projection_of(basis, offset))

    def fit_encoder(self, patches: np.ndarray, frames: np.ndarray) -> Encoder:
        """Return an encoder of the config's kinds for raw patch and frame descriptors; this extractor keeps its own."""
        settings, seed = self._config.encoder, self._config.agent.seed
        return Encoder(
            fit_projection(patches, self.n_patch_dims, settings.kind, settings.whiten, seed),
            fit_projection(frames, self.n_frame_dims, settings.frame_kind, settings.whiten, seed),
            self.settings(),
            self._kinds(),
        )

    def _kinds(self) -> str:
        return f"{self._config.encoder.kind}+{self._config.encoder.frame_kind}"

    def settings(self) -> dict[str, object]:
        """Return everything that the meaning of the raw descriptors depends on, for encoder files."""
        settings = self._config.features
        return {
            "version": SETTINGS_VERSION,
            "patch": settings.patch,
            "bin_px": list(settings.bin_px),
            "window": settings.window,
            "smoothing_px": settings.smoothing_px,
            "root_sift": settings.root_sift,
            "contrast_threshold": settings.contrast_threshold,
            "gate_level": settings.gate_level if self._gated else None,
            "colour_constancy": settings.colour_constancy,
        }

    def state(self) -> State:
        """Return the frozen encoder, or the warm-up samples so far."""
        return self._encoder.state() if self._encoder else self._warmup.state()

    def prepare(self, state: State) -> Commit:
        """Validate the state of an extractor of the same config and return its commit; SnapshotError otherwise."""
        if "patch_basis" not in state:
            if self._first_encoder() is not None:
                raise SnapshotError("features: saved state has no encoder, the config's does not warm up")
            take_samples = self._warmup.prepare(state)

            def commit() -> None:
                take_samples()
                self._encoder = None

            return commit
        encoder = encoder_from_state(state, self.settings(), self._kinds(), "features")
        self._check_shapes(encoder, "features")
        if self._config.encoder.file and self._encoder and encoder.hash != self._encoder.hash:
            raise SnapshotError(f"features: saved encoder {encoder.hash} is not the file's, {self._encoder.hash}")

        def take_encoder() -> None:
            self._encoder = encoder
            self._warmup.release()

        return take_encoder

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of all arrays of this stage at the largest frame, the most they can be."""
        return {"features": self._bytes}

    def _count_bytes(self) -> int:
        own = self._patches.nbytes + self._frame.nbytes + self._valid.nbytes + self._centres.nbytes
        encoders = 4 * ((self.n_raw_dims + 1) * self.n_patch_dims + (self.n_raw_frame_dims + 1) * self.n_frame_dims)
        parts = (self._sift, self._fill, self._frame_descriptor)
        warmup = sum(self._warmup.memory_bytes().values())
        return own + encoders + warmup + sum(part.memory_bytes() for part in parts)

    def _first_encoder(self) -> Encoder | None:
        settings = self._config.encoder
        if settings.file:
            encoder = load_encoder(settings.file)
            where = f"encoder file {settings.file}"
            check_settings(encoder.settings, self.settings(), where)
            self._check_shapes(encoder, where)
            return encoder
        if settings.kind == settings.frame_kind == "random":
            seed = self._config.agent.seed
            return Encoder(
                random_projection(self.n_raw_dims, self.n_patch_dims, seed),
                random_projection(self.n_raw_frame_dims, self.n_frame_dims, seed),
                self.settings(),
                self._kinds(),
            )
        return None

    def _check_shapes(self, encoder: Encoder, where: str) -> None:
        for name, found, wanted in (
            ("patch", encoder.patch.basis.shape, (self.n_raw_dims, self.n_patch_dims)),
            ("frame", encoder.frame.basis.shape, (self.n_raw_frame_dims, self.n_frame_dims)),
        ):
            if found != wanted:
                raise SnapshotError(
                    f"{where}: its {name} projection is {found[0]} to {found[1]} dimensions, the config needs "
                    f"{wanted[0]} to {wanted[1]}"
                )

    def _gate(self) -> GateAxes | None:
        if self._encoder is None or not self._gated:
            return None
        patch = self._encoder.patch
        return GateAxes(patch.basis[CONTRAST], patch.basis[BRIGHTNESS], patch.offset)

    def _encode(self) -> None:
        if self._encoder:
            raw = self._sift.out
            self._encoder.patch.apply(raw, self._patches[: len(raw)])
            self._encoder.frame.apply(self._frame_descriptor.out, self._frame)

    def _features(self) -> Features:
        raw = self._sift.out
        return Features(
            raw_patches=raw,
            patches=self._patches[: len(raw)],
            valid=self._valid,
            flat=self._sift.flat,
            centres=self._centres,
            grid_shape=self.grid_shape,
            raw_frame=self._frame_descriptor.out,
            frame=self._frame,
            ready=self.ready,
            gate=self._gate(),
        )


class WarmUp(Restorable):
    """A buffer of raw descriptors from the first accepted frames, an equal share from each; held until `release`."""

    def __init__(self, n_frames: int, n_raw_dims: int, n_raw_frame_dims: int):
        self._share = max(1, WARMUP_SAMPLES // n_frames)
        self._shapes = (self._share * n_frames, n_raw_dims), (n_frames, n_raw_frame_dims)
        self._n_patches = 0
        self.count = 0
        self._hold()

    def _hold(self) -> None:
        self._patches, self._frames = (np.zeros(shape, np.float32) for shape in self._shapes)

    def release(self) -> None:
        """Give the samples' memory back: the encoder is fitted, and most agents never warm up again."""
        self._n_patches = self.count = 0
        self._patches, self._frames = (np.zeros((0, shape[1]), np.float32) for shape in self._shapes)

    def add(self, features: Features, seed: int) -> None:
        """Take a frame and a random share of its valid patches, the choice fixed by seed and frame number."""
        valid = np.flatnonzero(features.valid)
        if not len(valid) or self.count == len(self._frames):
            return
        if len(valid) > self._share:
            valid = np.sort(np.random.default_rng([seed, self.count]).choice(valid, self._share, replace=False))
        self._patches[self._n_patches : self._n_patches + len(valid)] = features.raw_patches[valid]
        self._n_patches += len(valid)
        self._frames[self.count] = features.raw_frame
        self.count += 1

    def patches(self) -> np.ndarray:
        return self._patches[: self._n_patches]

    def frames(self) -> np.ndarray:
        return self._frames[: self.count]

    def state(self) -> State:
        """Return the samples so far, as copies."""
        return {"warmup_patches": self.patches().copy(), "warmup_frames": self.frames().copy()}

    def prepare(self, state: State) -> Commit:
        """Validate saved samples and return what takes them over; SnapshotError where they do not fit the buffers."""
        shapes = dict(zip(("warmup_patches", "warmup_frames"), self._shapes, strict=True))
        check_arrays(state, {name: Array(np.float32, (None, shape[1])) for name, shape in shapes.items()}, "features")
        for name, (most, _) in shapes.items():
            if len(state[name]) > most:
                raise SnapshotError(f"features: {name} has {len(state[name])} rows, must be at most {most}")
        patches, frames = state["warmup_patches"].copy(), state["warmup_frames"].copy()

        def commit() -> None:
            self._hold()
            self._n_patches, self.count = len(patches), len(frames)
            self._patches[: len(patches)], self._frames[: len(frames)] = patches, frames

        return commit

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of both buffers while they are held, the most they can be."""
        return {"encoder warm-up": 4 * sum(rows * columns for rows, columns in self._shapes)}
