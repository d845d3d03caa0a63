"""Clips of alerts: the camera's own packets from some seconds before, remuxed into MP4, or JPEGs where there are none.

Owns: the ring of packets, the clip that is being collected, the files.
In: packets, `Step`. Out: `clips/<alert>.mp4`.
Imports: base, settings, sources, pipeline.
"""

from stillwatch.clips.clips import Clips
from stillwatch.clips.cutter import Clip, ClipCutter
from stillwatch.clips.mp4 import ClipPacket, PacketStream, write_mp4
from stillwatch.clips.writer import keep_newest, write_clip

__all__ = ["Clip", "ClipCutter", "ClipPacket", "Clips", "PacketStream", "keep_newest", "write_clip", "write_mp4"]
