"""Makes hog_opencv4.npz, and compares live: run it with a Python that has OpenCV 4 (4.12 to 4.14), which ships HOG.

    python tests/golden/make_hog_opencv4.py make IMAGE OUT.npz   stores a grey crop of IMAGE and OpenCV's HOG of it
    python tests/golden/make_hog_opencv4.py check FILE.npz       compares the stored values with this OpenCV's

Imports OpenCV and numpy alone, so that the second venv needs nothing of ours. Where Stillwatch is importable
too, `check` also compares its kernel with the live OpenCV on random images.
"""

import importlib.util
import sys

import cv2
import numpy as np

CELL = 8
LIMIT = 1e-3


def opencv_blocks(image: np.ndarray, gamma: bool) -> np.ndarray:
    """Return cv2.HOGDescriptor over the whole image, (n_blocks, 36), blocks row by row."""
    height, width = (side // CELL * CELL for side in image.shape)
    size, block, cell = (width, height), (2 * CELL, 2 * CELL), (CELL, CELL)
    descriptor = cv2.HOGDescriptor(size, block, cell, cell, 9, 1, -1, 0, 0.2, gamma)
    values = descriptor.compute(np.ascontiguousarray(image[:height, :width]))
    rows, columns = height // CELL - 1, width // CELL - 1
    return values.reshape(columns, rows, 36).transpose(1, 0, 2).reshape(-1, 36)


def make(image_path: str, out_path: str) -> int:
    image = cv2.imread(image_path, cv2.IMREAD_GRAYSCALE)[100:196, 120:248]
    np.savez_compressed(
        out_path,
        image=image,
        gamma=opencv_blocks(image, True),
        linear=opencv_blocks(image, False),
        opencv=np.array(cv2.__version__),
    )
    return 0


def check(path: str) -> int:
    worst = 0.0
    with np.load(path) as golden:
        for name, gamma in (("gamma", True), ("linear", False)):
            worst = max(worst, float(np.abs(opencv_blocks(golden["image"], gamma) - golden[name]).max()))
    print(f"OpenCV {cv2.__version__}: stored values differ from live ones by at most {worst:.1e}")
    if importlib.util.find_spec("stillwatch") is not None:
        worst = max(worst, compare_with_kernel())
    return 0 if worst <= LIMIT else 1


def compare_with_kernel() -> float:
    from stillwatch.features.hog import BlockHog

    worst, rng = 0.0, np.random.default_rng(0)
    for height, width in ((96, 128), (64, 64), (120, 200), (240, 320)):
        image = cv2.GaussianBlur(rng.integers(0, 256, (height, width)).astype(np.uint8), (0, 0), 1.0)
        for gamma in (True, False):
            ours = BlockHog(height, width, CELL, gamma).compute(image)
            worst = max(worst, float(np.abs(ours - opencv_blocks(image, gamma)).max()))
    print(f"OpenCV {cv2.__version__}: our kernel differs by at most {worst:.1e} on random images (limit {LIMIT:.0e})")
    return worst


if __name__ == "__main__":
    command, *paths = sys.argv[1:]
    sys.exit({"make": make, "check": check}[command](*paths))
