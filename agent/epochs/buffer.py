"""Fixed buffers that collect an epoch of samples for the learners: patches, frame descriptors, thumbnails.

Two are owned by agent/epochs/schedule.py: the pipeline fills one while the worker learns the other. It holds no
learner and decides nothing about when an epoch ends but "full".
"""

import struct

import numpy as np

from stillwatch.base import Array, Commit, Restorable, SnapshotError, State, check_arrays

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


class EpochBuffer(Restorable):
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
        self.patch_capacity = patch_capacity
        self._patches = np.zeros((patch_capacity, n_patch_dims), np.float32)
        self._frames = np.zeros((frame_capacity, n_frame_dims), np.float32)
        self._payloads = np.zeros((frame_capacity, payload_bytes), np.uint8)
        self._payload_sizes = np.zeros(frame_capacity, np.int64)
        self.n_patches = 0
        self.n_frames = 0

    @property
    def full(self) -> bool:
        return self.n_patches == len(self._patches) or self.n_frames == len(self._frames)

    def add(self, patches: np.ndarray, frame: np.ndarray, payload: bytes) -> int:
        """Copy one frame's samples in; return how many patches found room. The buffer must not be full."""
        assert not self.full, "an epoch buffer was offered a frame after it was full"
        n_taken = min(len(patches), len(self._patches) - self.n_patches)
        self._patches[self.n_patches : self.n_patches + n_taken] = patches[:n_taken]
        self.n_patches += n_taken
        self._frames[self.n_frames] = frame
        if len(payload) > self._payloads.shape[1]:
            payload = b""
        self._payloads[self.n_frames, : len(payload)] = np.frombuffer(payload, np.uint8)
        self._payload_sizes[self.n_frames] = len(payload)
        self.n_frames += 1
        return n_taken

    def rows(self) -> np.ndarray:
        """Return the patches held, a view of shape (n_patches, n_patch_dims)."""
        return self._patches[: self.n_patches]

    def descriptors(self) -> np.ndarray:
        """Return the frame descriptors held, a view of shape (n_frames, n_frame_dims)."""
        return self._frames[: self.n_frames]

    def payloads(self) -> list[bytes]:
        """Return the payloads of the frames held, in order."""
        return [self._payloads[i, : self._payload_sizes[i]].tobytes() for i in range(self.n_frames)]

    def clear(self) -> None:
        self.n_patches = 0
        self.n_frames = 0

    def memory_bytes(self) -> int:
        return self._patches.nbytes + self._frames.nbytes + self._payloads.nbytes + self._payload_sizes.nbytes

    def state(self) -> State:
        return {
            "patches": self.rows().copy(),
            "frames": self.descriptors().copy(),
            "payloads": self._payloads[: self.n_frames].copy(),
            "payload_sizes": self._payload_sizes[: self.n_frames].copy(),
        }

    def prepare(self, state: State) -> Commit:
        room = self._payloads.shape[1]
        wanted = {
            "patches": Array(np.float32, (None, self._patches.shape[1])),
            "frames": Array(np.float32, (None, self._frames.shape[1])),
            "payloads": Array(np.uint8, (None, room)),
            "payload_sizes": Array(np.int64, (None,), low=0, high=room),
        }
        check_arrays(state, wanted, "epoch buffer")
        n_patches, n_frames = len(state["patches"]), len(state["frames"])
        if n_patches > len(self._patches) or n_frames > len(self._frames):
            most = f"{len(self._patches)} and {len(self._frames)}"
            raise SnapshotError(f"epoch buffer: {n_patches} patches and {n_frames} frames, must be at most {most}")
        if not n_frames == len(state["payloads"]) == len(state["payload_sizes"]):
            raise SnapshotError(f"epoch buffer: {n_frames} frames do not fit {len(state['payload_sizes'])} payloads")
        held = {name: state[name] for name in wanted}

        def commit() -> None:
            self.n_patches, self.n_frames = n_patches, n_frames
            self._patches[:n_patches] = held["patches"]
            self._frames[:n_frames] = held["frames"]
            self._payloads[:n_frames] = held["payloads"]
            self._payload_sizes[:n_frames] = held["payload_sizes"]

        return commit
