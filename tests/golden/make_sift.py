"""Makes sift.npz: a grey crop of a real image, OpenCV's SIFT and our own of it on one upright grid.

    python tests/golden/make_sift.py IMAGE OUT.npz

Run it only when a descriptor is meant to change; say why in the change. OpenCV's rows are unit vectors.
"""

import sys

import cv2
import numpy as np

from stillwatch.features.dense_sift import DenseSift


def opencv_sift(image: np.ndarray, rows: np.ndarray, columns: np.ndarray, bin_px: int) -> np.ndarray:
    """Return cv2.SIFT's descriptors, of unit norm or zero, at the grid's points with bins of `bin_px` pixels."""
    keypoints = [cv2.KeyPoint(float(x), float(y), 2.0 / 3.0 * bin_px, 0, 0, 0) for y in rows for x in columns]
    _, descriptors = cv2.SIFT_create().compute(image, keypoints)
    return descriptors / np.maximum(np.linalg.norm(descriptors, axis=1, keepdims=True), 1e-9)


def main(image_path: str, out_path: str) -> None:
    image = np.ascontiguousarray(cv2.imread(image_path, cv2.IMREAD_GRAYSCALE)[100:196, 120:248])
    dense = DenseSift(*image.shape, step_px=16)
    ours = dense.compute(image)
    theirs = opencv_sift(image, dense.rows, dense.columns, 4)
    np.savez_compressed(
        out_path,
        image=image,
        ours=ours.astype(np.float16),
        opencv=np.round(theirs * 255).astype(np.uint8),
        energy=dense.energy,
        brightness=dense.brightness,
        version=np.array(cv2.__version__),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
