"""Fixed buffers that collect an epoch of samples for the learners: patches, frame descriptors, thumbnails.

Two are owned by agent/epochs/schedule.py: the pipeline fills one while the worker learns the other. It holds no
learner and decides nothing about when an epoch ends but "full".
"""

import struct

import numpy as np

from stillwatch.base import SnapshotError, State

PAYLOAD_HEADER = struct.Struct("<qq")  # frame sequence, stream time in ns; a JPEG follows


def pack_payload(sequence: int, t_ns: int, jpeg: bytes) -> bytes:
    """Return what travels with an exemplar: where it came from, then its thumbnail."""
    return PAYLOAD_HEADER.pack(sequence, t_ns) + jpeg


def unpack_payload(payload: bytes) -> tuple[int, int, bytes]:
    """Return (sequence, t_ns, jpeg) of a payload made by `pack_payload`; (-1, 0, b"") for an empty one."""
    if len(payload) < PAYLOAD_HEADER.size:
        return -1, 0, b""
    sequence, t_ns = PAYLOAD_HEADER.unpack_from(payload)
    return sequence, t_ns, payload[PAYLOAD_HEADER.size :]


class EpochBuffer:
    """Samples of one epoch.

    Parameters
    ----------
    patch_capacity, frame_capacity : int
        Most patches and most frames an epoch may hold; it is full when either is reached.
    n_patch_dims, n_frame_dims : int
    payload_bytes : int
        Room for one frame's payload; a longer one is dropped whole, as half a JPEG shows nothing.
    """

    def __init__(
        self, *, patch_capacity: int, frame_capacity: int, n_patch_dims: int, n_frame_dims: int, payload_bytes: int
    ):
        self.patches = np.zeros((patch_capacity, n_patch_dims), np.float32)
        self.frames = np.zeros((frame_capacity, n_frame_dims), np.float32)
        self._payloads = np.zeros((frame_capacity, payload_bytes), np.uint8)
        self._payload_sizes = np.zeros(frame_capacity, np.int64)
        self.n_patches = 0
        self.n_frames = 0

    @property
    def full(self) -> bool:
        return self.n_patches == len(self.patches) or self.n_frames == len(self.frames)

    def add(self, patches: np.ndarray, frame: np.ndarray, payload: bytes) -> int:
        """Copy one frame's samples in; return how many patches found room. The buffer must not be full."""
        assert not self.full, "an epoch buffer was offered a frame after it was full"
        n_taken = min(len(patches), len(self.patches) - self.n_patches)
        self.patches[self.n_patches : self.n_patches + n_taken] = patches[:n_taken]
        self.n_patches += n_taken
        self.frames[self.n_frames] = frame
        if len(payload) > self._payloads.shape[1]:
            payload = b""
        self._payloads[self.n_frames, : len(payload)] = np.frombuffer(payload, np.uint8)
        self._payload_sizes[self.n_frames] = len(payload)
        self.n_frames += 1
        return n_taken

    def payloads(self) -> list[bytes]:
        """Return the payloads of the frames held, in order."""
        return [self._payloads[i, : self._payload_sizes[i]].tobytes() for i in range(self.n_frames)]

    def clear(self) -> None:
        self.n_patches = 0
        self.n_frames = 0

    def memory_bytes(self) -> int:
        return self.patches.nbytes + self.frames.nbytes + self._payloads.nbytes + self._payload_sizes.nbytes

    def state(self) -> State:
        return {
            "patches": self.patches[: self.n_patches].copy(),
            "frames": self.frames[: self.n_frames].copy(),
            "payloads": self._payloads[: self.n_frames].copy(),
            "payload_sizes": self._payload_sizes[: self.n_frames].copy(),
        }

    def restore(self, state: State) -> None:
        for name, room in (
            ("patches", self.patches),
            ("frames", self.frames),
            ("payloads", self._payloads),
            ("payload_sizes", self._payload_sizes),
        ):
            held = state.get(name)
            if held is None or held.dtype != room.dtype or held.shape[1:] != room.shape[1:] or len(held) > len(room):
                got = "nothing" if held is None else f"{held.dtype} {held.shape}"
                raise SnapshotError(f"epoch buffer {name}: {got} does not fit {room.dtype} {room.shape}")
        self.n_patches = len(state["patches"])
        self.n_frames = len(state["frames"])
        self.patches[: self.n_patches] = state["patches"]
        self.frames[: self.n_frames] = state["frames"]
        self._payloads[: self.n_frames] = state["payloads"]
        self._payload_sizes[: self.n_frames] = state["payload_sizes"]
