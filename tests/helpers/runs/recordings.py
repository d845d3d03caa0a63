"""Makes recordings for tests: video files with known frames, and what a capture takes of them."""

import msgspec

from stillwatch.base.clock import RealClock
from stillwatch.restart.recorder import Recorder, pixel_checksum
from stillwatch.settings.config import Config
from stillwatch.sources.capture import Capture
from stillwatch.sources.registry import open_source
from stillwatch.transport.disk.recording import Session


def make_video(
    path, *, codec="libx264", frames=40, width=160, height=120, rate=10, gop=12, pix_fmt="yuv420p", seed=0, crf=23
):
    """Write a video of drifting noise with a moving square; return its path."""
    import av
    import cv2
    import numpy as np

    rng = np.random.default_rng(seed)
    ground = rng.integers(40, 200, (height // 8 + 2, width // 8 + 8, 3), dtype=np.uint8)
    wide = cv2.resize(ground, None, fx=8, fy=8, interpolation=cv2.INTER_CUBIC)  # hard blocks would pass for damage
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=rate)
        stream.width, stream.height, stream.pix_fmt = width, height, pix_fmt
        stream.codec_context.gop_size = gop
        if codec == "libx264":
            stream.options = {"preset": "veryfast", "crf": str(crf)}
        for i in range(frames):
            picture = np.ascontiguousarray(wide[4 : 4 + height, i % 40 : i % 40 + width])
            picture[20:40, (3 * i) % (width - 20) : (3 * i) % (width - 20) + 20] = (0, 80, 250)
            frame = av.VideoFrame.from_ndarray(picture, format="bgr24")
            frame.pts = i
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def storage_config(**storage) -> Config:
    config = Config()
    fields = {"min_free_bytes": 0, **storage}
    return msgspec.structs.replace(config, storage=msgspec.structs.replace(config.storage, **fields))


def stamp(frame):
    """Return all that a replay must give back of a frame."""
    return (
        frame.sequence,
        frame.t_ns,
        frame.source_ns,
        int(frame.flags),
        frame.epoch,
        frame.mono_ns,
        frame.wall_ns,
        pixel_checksum(frame.colour),
        pixel_checksum(frame.grey),
    )


def frames_of(uri, config, recorder=None, dropped=()):
    """Capture a source to its end; return stamps of the frames taken, without those whose number is in `dropped`."""
    clock = RealClock()

    def make_source():
        source = open_source(uri, config.source, clock)
        return recorder.tap(source) if recorder is not None else source

    capture = Capture(make_source, config.source, clock)
    capture.start()
    taken = []
    while True:
        frame = capture.next(1.0)
        if frame is None:
            if capture.ended:
                break
            continue
        if frame.sequence in dropped:
            continue
        if recorder is not None:
            frame = recorder.frame(frame)
        taken.append(stamp(frame))
    return taken


def record(uri, folder, config, dropped=()):
    """Record a source to its end without a pipeline; return the stamps of the frames that a pipeline would see."""
    recorder = Recorder(folder, config, RealClock(), Session(agent="cam1", run="test"))
    taken = frames_of(uri, config, recorder, dropped)
    recorder.end(None, "")
    return taken
