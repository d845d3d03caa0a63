"""A camera that watches by itself, learns what is normal in fixed memory, and tells people far away what is new.

`import stillwatch` is light: neither numba nor OpenCV is loaded before a learner or a stage is asked for. The names of
`stillwatch.learn` are here too, imported when they are first used, and `open_run`, which reads a run folder.
"""

if __name__ != "stillwatch":
    raise ImportError("import stillwatch, not agent: a second copy of every class would follow")

import os

from stillwatch.base.version import __version__

# Read once when cv2 loads, so it must stand before any import of it: the hard stop behind source.max_pixels.
os.environ.setdefault("OPENCV_IO_MAX_IMAGE_PIXELS", str(268_435_456))

__all__ = [
    "GaussianProcessActiveSet",
    "GroupedMixture",
    "MemoryBoundedMixture",
    "SimultaneousMixture",
    "StreamGreedy",
    "__version__",
    "open_run",
]


def __getattr__(name: str):
    if name == "open_run":
        from stillwatch.runs import open_run

        return open_run
    if name in __all__:
        from stillwatch import learn

        return getattr(learn, name)
    raise AttributeError(f"module 'stillwatch' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
