"""Fixed buffers that collect an epoch of samples for the learners: patches, words, frame descriptors, pictures.

Two are owned by agent/epochs/schedule.py: the pipeline fills one while the worker learns the other. It holds no
learner and decides nothing about when an epoch ends but "full".
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stillwatch.base import Array, Commit, Restorable, SnapshotError, State, check_arrays

# Of a word's values: what differs by less is the same. The colour of one ground drifts by so much with light and water
# (a ratio of 1.5 %), while a mean over many patches hardly scatters: topics would be times of the day, not grounds.
WORD_RESOLUTION = np.float32(0.03)
CROPS = 2  # words of a frame whose picture waits with them: a JPEG each
PAYLOAD_HEADER = struct.Struct("<qqI")  # frame sequence, stream time in ns, bytes of the JPEG, which follows
NOTE_BYTES = 1024  # room for what else is known of a frame: which part of it shows which topic


def pack_payload(sequence: int, t_ns: int, jpeg: bytes, note: bytes = b"") -> bytes:
    """Return what travels with an exemplar: where it came from, then its thumbnail and a note, if there is room."""
    return PAYLOAD_HEADER.pack(sequence, t_ns, len(jpeg)) + jpeg + (note if len(note) <= NOTE_BYTES else b"")


def unpack_payload(payload: bytes) -> tuple[int, int, bytes]:
    """Return (sequence, t_ns, jpeg) of a payload made by `pack_payload`; (-1, 0, b"") for an empty one."""
    if len(payload) < PAYLOAD_HEADER.size:
        return -1, 0, b""
    sequence, t_ns, size = PAYLOAD_HEADER.unpack_from(payload)
    return sequence, t_ns, payload[PAYLOAD_HEADER.size : PAYLOAD_HEADER.size + size]


def note_of(payload: bytes) -> bytes:
    """Return the note of a payload made by `pack_payload`; b"" where it has none."""
    if len(payload) < PAYLOAD_HEADER.size:
        return b""
    return payload[PAYLOAD_HEADER.size + PAYLOAD_HEADER.unpack_from(payload)[2] :]


@dataclass(frozen=True, slots=True)
class FrameWords:
    """The words of one frame: what topics are learnt from.

    rows : ndarray of shape (n, n_word_dims), float32;  valid : (n,) bool;  crop : JPEG of what a word shows, by its row
    """

    rows: np.ndarray
    valid: np.ndarray
    crop: Callable[[int], bytes]


class _Slots:
    """Payloads in slots of one size; a longer one is dropped whole."""

    def __init__(self, capacity: int, limit: int):
        self.bytes = np.zeros((capacity, limit), np.uint8)
        self.sizes = np.zeros(capacity, np.int64)

    def __len__(self) -> int:
        return len(self.sizes)

    def put(self, slot: int, payload: bytes) -> None:
        if len(payload) > self.bytes.shape[1]:
            payload = b""
        self.bytes[slot, : len(payload)] = np.frombuffer(payload, np.uint8)
        self.sizes[slot] = len(payload)

    def first(self, n: int) -> list[bytes]:
        return [self.bytes[i, : self.sizes[i]].tobytes() for i in range(n)]

    def memory_bytes(self) -> int:
        return self.bytes.nbytes + self.sizes.nbytes


class EpochBuffer(Restorable):
    """Samples of one epoch.

    Parameters
    ----------
    patch_capacity, word_capacity, frame_capacity : int
        Most patches, words and frames an epoch may hold; it is full when it has no room for a patch or a frame.
    n_patch_dims, n_word_dims, n_frame_dims : int
    payload_bytes : int
        Room for one frame's payload; a longer one is dropped whole, as half a JPEG shows nothing.
    crop_bytes : int
        Room for one word's payload.
    """

    def __init__(
        self,
        *,
        patch_capacity: int,
        word_capacity: int,
        frame_capacity: int,
        n_patch_dims: int,
        n_word_dims: int,
        n_frame_dims: int,
        payload_bytes: int,
        crop_bytes: int,
    ):
        self.patch_capacity, self.word_capacity = patch_capacity, word_capacity
        self._patches = np.zeros((patch_capacity, n_patch_dims), np.float32)
        self._frames = np.zeros((frame_capacity, n_frame_dims), np.float32)
        self._payloads = _Slots(frame_capacity, payload_bytes)
        self._words = np.zeros((word_capacity, n_word_dims), np.float32)
        self._documents = np.zeros(word_capacity, np.int64)
        self._crops = _Slots(min(CROPS * frame_capacity, word_capacity), crop_bytes)
        self._cropped = np.zeros(len(self._crops), np.int64)  # places of the words that the crops show
        self.n_patches = self.n_words = self.n_crops = self.n_frames = 0

    @property
    def full(self) -> bool:
        return self.n_patches == len(self._patches) or self.n_frames == len(self._frames)

    def add(
        self, sequence: int, t_ns: int, patches: np.ndarray, frame: np.ndarray, jpeg: bytes, note: bytes = b""
    ) -> int:
        """Copy one frame's samples in; return how many patches found room. The buffer must not be full."""
        assert not self.full, "an epoch buffer was offered a frame after it was full"
        n_taken = min(len(patches), len(self._patches) - self.n_patches)
        self._patches[self.n_patches : self.n_patches + n_taken] = patches[:n_taken]
        self.n_patches += n_taken
        self._frames[self.n_frames] = frame
        self._payloads.put(self.n_frames, pack_payload(sequence, t_ns, jpeg, note))
        self.n_frames += 1
        return n_taken

    def add_words(
        self, sequence: int, t_ns: int, words: FrameWords, chosen: np.ndarray, rng: np.random.Generator
    ) -> None:
        """Copy the words `chosen` (their rows) of a frame in, as far as there is room, and cut some of them out.

        Each value is moved by a draw of deviation WORD_RESOLUTION.
        """
        chosen = chosen[: self.word_capacity - self.n_words]
        first, n = self.n_words, len(chosen)
        blur = rng.standard_normal((n, self._words.shape[1]), np.float32)
        np.add(words.rows[chosen], WORD_RESOLUTION * blur, out=self._words[first : first + n])
        self._documents[first : first + n] = sequence
        self.n_words += n
        shown = min(CROPS, n, len(self._crops) - self.n_crops)
        # One in each part of the picture, anywhere in it: the same place of every frame would show its own ground only.
        for place in (n * np.arange(shown) + rng.integers(n)) // shown if shown else ():
            self._cropped[self.n_crops] = first + place
            self._crops.put(self.n_crops, pack_payload(sequence, t_ns, words.crop(int(chosen[place]))))
            self.n_crops += 1

    def rows(self) -> np.ndarray:
        """Return the patches held, a view of shape (n_patches, n_patch_dims)."""
        return self._patches[: self.n_patches]

    def words(self) -> np.ndarray:
        """Return the words held, a view of shape (n_words, n_word_dims)."""
        return self._words[: self.n_words]

    def documents(self) -> np.ndarray:
        """Return the number of each word's frame, a view of shape (n_words,)."""
        return self._documents[: self.n_words]

    def cropped(self) -> np.ndarray:
        """Return the places among the words of those that were cut out, a view of shape (n_crops,)."""
        return self._cropped[: self.n_crops]

    def crops(self) -> list[bytes]:
        """Return the payloads of the words that were cut out, in order."""
        return self._crops.first(self.n_crops)

    def descriptors(self) -> np.ndarray:
        """Return the frame descriptors held, a view of shape (n_frames, n_frame_dims)."""
        return self._frames[: self.n_frames]

    def payloads(self) -> list[bytes]:
        """Return the payloads of the frames held, in order."""
        return self._payloads.first(self.n_frames)

    def clear(self) -> None:
        self.n_patches = self.n_words = self.n_crops = self.n_frames = 0

    def memory_bytes(self) -> int:
        arrays = (self._patches, self._words, self._documents, self._cropped, self._frames)
        return sum(array.nbytes for array in arrays) + self._payloads.memory_bytes() + self._crops.memory_bytes()

    def _held(self) -> dict[str, tuple[np.ndarray, int]]:
        """Every array and how much of it is in use."""
        return {
            "patches": (self._patches, self.n_patches),
            "words": (self._words, self.n_words),
            "documents": (self._documents, self.n_words),
            "frames": (self._frames, self.n_frames),
            "payloads": (self._payloads.bytes, self.n_frames),
            "payload_sizes": (self._payloads.sizes, self.n_frames),
            "cropped": (self._cropped, self.n_crops),
            "crops": (self._crops.bytes, self.n_crops),
            "crop_sizes": (self._crops.sizes, self.n_crops),
        }

    def state(self) -> State:
        return {name: array[:n].copy() for name, (array, n) in self._held().items()}

    def prepare(self, state: State) -> Commit:
        held = self._held()
        wanted = {name: Array(array.dtype.type, (None, *array.shape[1:])) for name, (array, _) in held.items()}
        for name, slots in (("payload_sizes", self._payloads), ("crop_sizes", self._crops)):
            wanted[name] = Array(np.int64, (None,), low=0, high=slots.bytes.shape[1])
        wanted["documents"] = Array(np.int64, (None,), low=0)
        wanted["cropped"] = Array(np.int64, (None,), low=0, high=max(len(state.get("words", ())) - 1, 0))
        check_arrays(state, wanted, "epoch buffer")
        for name, (array, _) in held.items():
            if len(state[name]) > len(array):
                raise SnapshotError(f"epoch buffer: {name} has {len(state[name])} rows, must be at most {len(array)}")
        for names in (
            ("frames", "payloads", "payload_sizes"),
            ("words", "documents"),
            ("cropped", "crops", "crop_sizes"),
        ):
            if len({len(state[name]) for name in names}) > 1:
                told = ", ".join(f"{len(state[name])} {name}" for name in names)
                raise SnapshotError(f"epoch buffer: {told} do not fit each other")
        taken = {name: np.array(state[name]) for name in held}

        def commit() -> None:
            self.n_patches, self.n_frames = len(taken["patches"]), len(taken["frames"])
            self.n_words, self.n_crops = len(taken["words"]), len(taken["cropped"])
            for name, (array, _) in held.items():
                array[: len(taken[name])] = taken[name]

        return commit
