"""The first half of a frame's way: the gate judges it, the features describe it, rows are made of them.

Called by agent/pipeline/pipeline.py, or by agent/describing/child.py in a process beside it. It must not see a model:
once the encoder is frozen it depends on nothing that scoring or learning changes.
"""

from dataclasses import dataclass

import numpy as np

from stillwatch.base import Clock, Frame, Laps, Stage
from stillwatch.describing.thumbnail import jpeg_thumbnail
from stillwatch.epochs import Widths
from stillwatch.features import FeatureExtractor, Features, RowMaker, Rows
from stillwatch.gate import Gate, Verdict
from stillwatch.novelty import CameraMotion, Viewpoints
from stillwatch.settings import Config

TILE_PX = 24  # of a made picture: wider than the cells that the gate asks for detail


@dataclass(frozen=True, slots=True)
class Described:
    """A frame as the gate judged it and the features describe it, before it is scored.

    Attributes
    ----------
    frame : Frame
    verdict : Verdict
    rows : Rows or None
        None where the gate refused the frame.
    features : Features or None
        What an encoder that warms up learns from; None where the gate refused the frame, or another process described
        it, which is done only once the encoder is frozen.
    jpeg : bytes
        What the learners show it by; empty where its rows mean nothing yet.
    """

    frame: Frame
    verdict: Verdict
    rows: Rows | None = None
    features: Features | None = None
    jpeg: bytes = b""


class Describer:
    """Gate, features, camera and rows, allocated from the config for the largest frame.

    Parameters
    ----------
    config : Config
    clock : Clock
        Measures stages, and decides nothing.

    Attributes
    ----------
    stage_seconds : dict of str to float
        Spent so far in "gate" and "features".
    shape : tuple of int
        Height and width of the frames.
    """

    def __init__(self, config: Config, clock: Clock):
        self._config, self._clock = config, clock
        self.shape = (config.source.height, config.source.width)
        self.gate = Gate(config.gate, height=self.shape[0], width=self.shape[1])
        self.features = FeatureExtractor(config)
        self.camera = CameraMotion(config.novelty.camera)
        self.viewpoint = Viewpoints()
        self.rows = RowMaker(self.features.capacity_patches, self.features.n_patch_dims, config.features.step_px)
        self.stage_seconds: dict[str, float] = {}

    def describe(self, frame: Frame) -> Described:
        """Judge and describe the next frame. The arrays that it leads to are valid until the next one."""
        if frame.grey.shape != self.shape:
            self.reshape(*frame.grey.shape)
        passed = Laps(self.stage_seconds, self._clock)
        verdict = self.gate.judge(frame, self.camera.rule)
        passed.stage("gate")
        if not verdict.accepted:
            return Described(frame, verdict)
        features = self.features.extract(frame)
        rule = self.camera.observe(frame.grey, frame.t_ns)
        view = self.viewpoint.observe(frame.grey, frame.t_ns, rule)
        rows = self.rows.rows_of(frame, features, rule, view)
        pictures = self._config.exemplars
        jpeg = b""
        if rows.ready:
            jpeg = jpeg_thumbnail(frame.colour, pictures.thumbnail_px, pictures.thumbnail_bytes)
        passed.stage("features")
        return Described(frame, verdict, rows, features, jpeg)

    def load_kernels(self) -> bool:
        """Describe a made picture, so that the first real frame waits for no code: half a second of it.

        What is known of the stream is lost: for a describer that is given a state next. Returns whether the gate let
        the picture pass, without which its features are not described.
        """
        rows, columns = np.indices(self.shape)
        tiles = (rows // TILE_PX + columns // TILE_PX) % 2
        grey = np.where(tiles, np.uint8(80), np.uint8(160))
        described = self.describe(Frame(grey, np.repeat(grey[..., None], 3, axis=2), None, 0, 0, 0, 0, 0))
        self.stage_seconds.clear()
        return described.verdict.accepted

    def reshape(self, height: int, width: int) -> None:
        """A new stream epoch of another size: grids and masks are rebuilt within what is allocated."""
        self.shape = (height, width)
        self.gate.reshape(height, width)
        self.features.reshape(height, width)
        self.viewpoint.reset()

    def widths(self) -> Widths:
        """Return the widths of rows, words and frame descriptors."""
        return Widths(
            n_patch_dims=self.rows.n_row_dims,
            n_word_dims=self.rows.n_word_dims,
            n_frame_dims=self.features.n_frame_dims,
        )

    def stages(self) -> dict[str, Stage]:
        """Return the parts with state, by their names in the saved one."""
        return {"features": self.features, **self.running()}

    def running(self) -> dict[str, Stage]:
        """Return those whose state changes from frame to frame once the encoder is frozen."""
        return {"gate": self.gate, "camera": self.camera, "viewpoint": self.viewpoint}
