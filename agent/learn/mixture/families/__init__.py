"""The covariance families behind one interface: moments, posteriors, log joints and restricted splits.

Owns: statistics and posteriors of components, diagonal and full, and what a clump costs.
In: items and weights. Out: moments, fits, children of splits.
Imports: base, kernels.
"""

from stillwatch.learn.mixture.families.diagonal import DiagonalFamily
from stillwatch.learn.mixture.families.full import FullFamily, RoundedFamily
from stillwatch.learn.mixture.families.narrow import NARROW, NarrowFamily

Family = DiagonalFamily | FullFamily
FORMS: dict[str, type[DiagonalFamily] | type[FullFamily]] = {
    "diagonal": DiagonalFamily, "full": FullFamily, "rounded": RoundedFamily,
}  # fmt: skip


def clump_cost(form: str, n_dims: int) -> int:
    """Return the values of one clump of a form."""
    return FORMS[form].clump_cost(n_dims)


def make_family(form: str, n_dims: int, capacity: int, n_items: int) -> Family:
    """Return the family of a form: "diagonal", "full", or "rounded", which is full over rounded clumps."""
    made = NarrowFamily if form == "rounded" and n_dims <= NARROW else FORMS[form]
    return made(n_dims, capacity, n_items)
