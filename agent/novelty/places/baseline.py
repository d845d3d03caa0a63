"""What is usual in one view of a fixed camera: at each place, in light, over the whole picture, in traffic, in level.

Made by agent/novelty/places/unlikeness.py, one for each view that is remembered. It must not know who visits: people
are the same in every view.
"""

from stillwatch.base import Composed, Stage
from stillwatch.novelty.places.level import FrameLevel
from stillwatch.novelty.places.light import UsualLight
from stillwatch.novelty.places.place_memory import PlaceMemory
from stillwatch.novelty.places.traffic import Traffic
from stillwatch.novelty.places.whole_view import WholeView
from stillwatch.novelty.strategy import Sizes


class Baseline(Composed):
    """All that would mislead in another view.

    Parameters
    ----------
    sizes : Sizes
    halflife_s : float
        Of what is remembered.
    usual_per_hour : float
        A place that comes to look like it did before so often does as it usually does.
    seed : int

    Attributes
    ----------
    memory : PlaceMemory
    light : UsualLight
    whole_view : WholeView
    traffic : Traffic
    level : FrameLevel
    """

    _where = "baseline"

    def __init__(self, sizes: Sizes, halflife_s: float, usual_per_hour: float, seed: int):
        n, n_dims = sizes.capacity_patches, sizes.n_patch_dims
        self.memory = PlaceMemory(n, n_dims, horizon_s=halflife_s, usual_per_hour=usual_per_hour, seed=seed)
        self.light = UsualLight(n, n_dims, halflife_s)
        self.whole_view = WholeView(n_dims, halflife_s, seed)
        self.traffic = Traffic(n, halflife_s)
        self.level = FrameLevel(halflife_s)

    def reset(self, grid_shape: tuple[int, int]) -> None:
        """Forget everything: the grid has another shape, or the camera a view that it never had."""
        self.memory.reset(grid_shape[0] * grid_shape[1])
        self.light.reset(grid_shape)
        self.whole_view.reset()
        self.traffic.reset(grid_shape)
        self.level.reset()

    def _parts(self) -> dict[str, Stage]:
        return {
            "memory": self.memory,
            "light": self.light,
            "whole view": self.whole_view,
            "traffic": self.traffic,
            "level": self.level,
        }

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of all arrays at the largest frame."""
        return {"baseline": self.parts_bytes()}
