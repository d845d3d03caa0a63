"""Makes the golden recordings of format 1. Run once, when the format was new; its output is never made again.

    python tests/golden/recording_v1/make_golden.py

A later format gets a folder of its own. What this folder holds must open in every later version.
"""

import json
import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent / "helpers" / "runs"))


def main():
    from recordings import make_video, storage_config

    from stillwatch.base.clock import RealClock
    from stillwatch.base.environment import versions
    from stillwatch.pipeline import RunCounts
    from stillwatch.restart import checkpoint
    from stillwatch.restart.recorder import Recorder
    from stillwatch.transport.disk.recording import Session

    expected = {"versions": versions()}
    for mode, codec, pix_fmt in (
        ("packets", "libx264", "yuv420p"),
        ("packets_mjpeg", "mjpeg", "yuvj420p"),
        ("jpeg", "libx264", "yuv420p"),
        ("lossless", "libx264", "yuv420p"),
    ):
        video = make_video(HERE / "v.mkv", frames=24, width=96, height=72, gop=8, codec=codec, pix_fmt=pix_fmt)
        config = storage_config(record_frames=mode.partition("_")[0])
        session = Session(agent="cam1", run="golden", config_text='[agent]\nid = "cam1"\n', config_hash="0" * 16)
        recorder = Recorder(HERE / mode, config, RealClock(), session)
        expected[mode] = [list(item) for item in _record(video, config, recorder)]
        recorder.end(RunCounts(frames=22, accepted=21), "fedcba9876543210", "source ended")
        video.unlink()
    state = {
        "a.mean": np.arange(6, dtype=np.float32).reshape(2, 3) / 3,
        "a.count": np.int64(-7),
        "b.names": np.array(["dark", "frozen"]),
        "b.flags": np.array([True, False]),
        "c": np.empty((0, 4)),
    }
    checkpoint.save(HERE, state, {"next_sequence": 24, "config_hash": "0" * 16})
    (HERE / "expected.json").write_text(json.dumps(expected, indent=1))


def _record(video, config, recorder):
    """Record every frame but two, with decisions, an activation, a journal entry and a checkpoint mark."""
    from recordings import stamp

    from stillwatch.base.clock import RealClock
    from stillwatch.sources.capture import Capture
    from stillwatch.sources.registry import open_source

    clock = RealClock()
    capture = Capture(lambda: recorder.tap(open_source(str(video), config.source, clock)), config.source, clock)
    capture.start()
    while (frame := capture.next(5.0)) is not None:
        if frame.sequence in (5, 6):
            continue
        frame = recorder.frame(frame)
        accepted = frame.sequence != 9
        if frame.sequence == 12:
            recorder.activation(frame, "0123456789abcdef", 1)
        recorder.decision(frame, accepted=accepted, reason="" if accepted else "dark", value=0.5 * frame.sequence)
        if frame.sequence == 12:
            recorder.saved(12, 10, HERE / "checkpoint-00000001.swck", "0123456789abcdef")
            recorder.journal(13, "set_share", {"share": 0.5})
        yield stamp(frame)


if __name__ == "__main__":
    main()
