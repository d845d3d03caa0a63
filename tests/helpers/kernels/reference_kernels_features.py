"""Slow, plain versions of the descriptor kernels: one pixel, one patch, one bin at a time, in float64.

Read by the kernels' tests. They share no code with the kernels and follow the papers' definitions directly.
"""

import math

import numpy as np


def mirrored(index: int, length: int) -> int:
    """Reflect an index at both ends without repeating the end, by walking."""
    while not 0 <= index < length:
        index = 0 if length == 1 else -index if index < 0 else 2 * (length - 1) - index
    return index


def blurred(image: np.ndarray, sigma: float) -> np.ndarray:
    """Gaussian blur, separable, reflecting at the edges; radius as OpenCV's for float images."""
    image = image.astype(np.float64)
    if sigma <= 0:
        return image
    radius = (round(8 * sigma + 1) | 1) // 2
    weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    weights /= weights.sum()
    height, width = image.shape
    rows = np.stack([[mirrored(y + k, height) for k in range(-radius, radius + 1)] for y in range(height)])
    columns = np.stack([[mirrored(x + k, width) for k in range(-radius, radius + 1)] for x in range(width)])
    return np.einsum("yxk,k->yx", np.einsum("ykx,k->yx", image[rows], weights)[:, columns], weights)


def patch_sift(image, row, column, bin_px, *, gaussian=True, root=False, contrast=0.0):
    """Describe one patch of an image that is already smoothed: (descriptor (128,), energy, brightness, flat)."""
    height, width = image.shape
    reach = math.ceil(2.5 * bin_px) - 1
    centres = [(b - 1.5) * bin_px for b in range(4)]
    bins = np.zeros((4, 4, 8))
    grey = total = 0.0

    def weight(offset, b):
        at = offset if gaussian else centres[b]
        return max(0.0, 1 - abs(offset - centres[b]) / bin_px) * math.exp(-0.5 * (at / (2 * bin_px)) ** 2)

    for dy in range(-reach, reach + 1):
        for dx in range(-reach, reach + 1):
            wy, wx = [weight(dy, b) for b in range(4)], [weight(dx, b) for b in range(4)]
            y, x = row + dy, column + dx
            grey += sum(wy) * sum(wx) * image[min(max(y, 0), height - 1), min(max(x, 0), width - 1)]
            total += sum(wy) * sum(wx)
            if not (0 < y < height - 1 and 0 < x < width - 1):
                continue
            gx, gy = image[y, x + 1] - image[y, x - 1], image[y - 1, x] - image[y + 1, x]
            angle = (math.atan2(gy, gx) % (2 * math.pi)) * 8 / (2 * math.pi)
            low, share = int(angle) % 8, angle % 1
            votes = np.outer(wy, wx) * math.hypot(gx, gy)
            bins[:, :, low] += votes * (1 - share)
            bins[:, :, (low + 1) % 8] += votes * share
    energy = bins.sum() / total
    descriptor = bins.ravel()
    norm = np.linalg.norm(descriptor)
    if energy < contrast or norm == 0:
        return np.zeros(128), energy, grey / total, True
    descriptor = np.minimum(descriptor, 0.2 * norm)
    if root:
        descriptor = np.sqrt(descriptor / descriptor.sum())
    else:
        descriptor = descriptor / np.linalg.norm(descriptor)
    return descriptor, energy, grey / total, False


def gradients(image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Central differences, not halved, reflecting at the edges: (along x, along y down)."""
    height, width = image.shape
    dx, dy = np.zeros(image.shape), np.zeros(image.shape)
    for y in range(height):
        for x in range(width):
            dx[y, x] = image[y, mirrored(x + 1, width)] - image[y, mirrored(x - 1, width)]
            dy[y, x] = image[mirrored(y + 1, height), x] - image[mirrored(y - 1, height), x]
    return dx, dy


def block_hog(image: np.ndarray, row: int, column: int, cell: int, gamma: bool) -> np.ndarray:
    """Describe the block of 2 x 2 cells whose first cell is (row, column): 36 values in OpenCV's order."""
    dx, dy = gradients(np.sqrt(image.astype(np.float64)) if gamma else image.astype(np.float64))
    cells = np.zeros((2, 2, 9))  # cell column, cell row, orientation
    for i in range(2 * cell):
        for j in range(2 * cell):
            gx, gy = dx[row * cell + i, column * cell + j], dy[row * cell + i, column * cell + j]
            window = math.exp(-0.5 * ((i - cell) ** 2 + (j - cell) ** 2) / (cell / 2) ** 2)
            angle = (math.atan2(gy, gx) % math.pi) * 9 / math.pi - 0.5
            low, share = math.floor(angle), angle - math.floor(angle)
            for a in range(2):
                for b in range(2):
                    along_x = max(0.0, 1 - abs((j + 0.5) / cell - 0.5 - a))
                    along_y = max(0.0, 1 - abs((i + 0.5) / cell - 0.5 - b))
                    vote = math.hypot(gx, gy) * window * along_x * along_y
                    cells[a, b, low % 9] += vote * (1 - share)
                    cells[a, b, (low + 1) % 9] += vote * share
    values = cells.ravel()
    values = np.minimum(values / (np.linalg.norm(values) + 3.6), 0.2)
    return values / (np.linalg.norm(values) + 1e-3)


def cell_hog(image: np.ndarray, cell: int, epsilon: float) -> np.ndarray:
    """Felzenszwalb's 31 values of every whole cell, (rows, columns, 31)."""
    height, width = image.shape
    rows, columns = max(height // cell, 1), max(width // cell, 1)
    dx, dy = gradients(image.astype(np.float64))
    h = np.zeros((rows, columns, 18))
    for y in range(height):
        for x in range(width):
            angle = (math.atan2(dy[y, x], dx[y, x]) % (2 * math.pi)) * 18 / (2 * math.pi)
            low, share = int(angle) % 18, angle % 1
            for r in range(rows):
                wy = max(0.0, 1 - abs((y + 0.5) / cell - 0.5 - r))
                for c in range(columns):
                    vote = wy * max(0.0, 1 - abs((x + 0.5) / cell - 0.5 - c)) * math.hypot(dx[y, x], dy[y, x])
                    h[r, c, low] += vote * (1 - share)
                    h[r, c, (low + 1) % 18] += vote * share
    unsigned = h[..., :9] + h[..., 9:]
    energy = (unsigned**2).sum(-1)
    out = np.zeros((rows, columns, 31))
    for r in range(rows):
        for c in range(columns):
            for q, (down, right) in enumerate(((-1, -1), (-1, 1), (1, -1), (1, 1))):
                r2, c2 = min(max(r + down, 0), rows - 1), min(max(c + right, 0), columns - 1)
                norm = 1 / math.sqrt(energy[r, c] + energy[r2, c] + energy[r, c2] + energy[r2, c2] + epsilon)
                out[r, c, :18] += 0.5 * np.minimum(h[r, c] * norm, 0.2)
                out[r, c, 18:27] += 0.5 * np.minimum(unsigned[r, c] * norm, 0.2)
                out[r, c, 27 + q] = 0.2357 * np.minimum(h[r, c] * norm, 0.2).sum()
    return out
