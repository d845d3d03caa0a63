"""Where frames come from: one URI turned into a source, and the capture that reads it.

Owns: the kinds of source, reconnecting, stream time, scaling to the working size, positions.
In: a camera, file, folder, world or recording. Out: `Frame`s at the working size, stamped and numbered.
Imports: base, settings, worlds, transport.disk, transport.wire.
"""

from stillwatch.sources.base import PacketTap, RawFrame, Source
from stillwatch.sources.capture import Capture, FrameMaker
from stillwatch.sources.images import natural_key
from stillwatch.sources.nav import NavTrack
from stillwatch.sources.recording import RecordingSource, first_frames
from stillwatch.sources.registry import open_source

__all__ = [
    "Capture",
    "FrameMaker",
    "NavTrack",
    "PacketTap",
    "RawFrame",
    "RecordingSource",
    "Source",
    "first_frames",
    "natural_key",
    "open_source",
]
