"""Blockiness: displaced macroblocks are seen without any flag; what is usual for a stream is not."""

import numpy as np
import pytest

from stillwatch.base.frame import FrameFlag
from stillwatch.sources.blockiness import BELIEVED_AFTER, BlockinessJump, blockiness
from stillwatch.tools.checks.corpus import HEIGHT, WIDTH, picture


def displaced(image, seed, count=25):
    """Return the image with macroblocks copied to wrong places, as lost motion vectors do."""
    rng = np.random.default_rng(seed)
    broken = image.copy()
    for _ in range(count):
        y, x, v, u = (int(k) * 16 for k in rng.integers(0, [HEIGHT // 16, WIDTH // 16] * 2))
        level = rng.integers(-80, 80)
        block = image[v : v + 16, u : u + 16].astype(int).mean(axis=(0, 1)) + level
        broken[y : y + 16, x : x + 16] = np.clip(block, 0, 255)
    return broken


def coarse(image):
    """Return the image in 16x16 blocks of one colour: a stream that always is that bad."""
    small = image.reshape(HEIGHT // 16, 16, WIDTH // 16, 16, 3).mean(axis=(1, 3))
    return np.repeat(np.repeat(small, 16, axis=0), 16, axis=1).astype(np.uint8)


@pytest.mark.parametrize("image", [np.full((96, 96, 3), 77, np.uint8), picture(0), picture(5, noise=12.0)])
def test_pictures_without_blocks_measure_about_one(image):
    assert blockiness(image) == pytest.approx(1.0, abs=0.25)


def test_displaced_blocks_are_damage_and_only_they():
    judge = BlockinessJump()
    bad = {20, 21, 40}
    images = (displaced(picture(i), i, 40) if i in bad else picture(i) for i in range(60))
    assert {i for i, image in enumerate(images) if judge.is_damaged(image)} == bad


def test_a_stream_that_always_shows_blocks_is_not_damaged():
    judge = BlockinessJump()
    assert not any(judge.is_damaged(coarse(picture(i))) for i in range(60))


def test_blocks_that_stay_are_another_setting_of_the_encoder():
    judge = BlockinessJump()
    assert not any(judge.is_damaged(picture(i)) for i in range(20))
    verdicts = [judge.is_damaged(coarse(picture(i))) for i in range(BELIEVED_AFTER + 20)]
    assert verdicts == [True] * (BELIEVED_AFTER - 1) + [False] * 21


def test_damage_baked_into_a_stream_is_flagged_by_its_decoder(tmp_path):
    from stillwatch.settings.config import SourceConfig
    from stillwatch.sources.video import VideoFileSource
    from stillwatch.tools.checks.corpus import encode

    images = (displaced(picture(i), i, 40) if i == 30 else picture(i) for i in range(40))
    path = encode(tmp_path / "a.mkv", images, codec="ffv1", pix_fmt="bgr0")
    source = VideoFileSource(str(path), SourceConfig())
    source.open()
    flagged = [i for i, frame in enumerate(iter(source.read, None)) if frame.flags & FrameFlag.DAMAGED]
    source.close()
    assert flagged == [30]
