"""Principal coordinates by blocks against NumPy's decomposition, and whitening."""

import numpy as np
import pytest

from stillwatch.tools.survey import principal_coordinates, whitened


def falling(n=120, width=60):
    """Return rows whose spectrum falls as a power law."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, width)) @ np.diag(np.arange(1.0, width + 1) ** -1.0) + 3.0


def blocks_of(rows, size=50):
    return lambda: iter([rows[i : i + size] for i in range(0, len(rows), size)])


def test_coordinates_are_those_of_the_singular_value_decomposition():
    rows = falling()
    found = principal_coordinates(blocks_of(rows), 5)
    u, s, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    np.testing.assert_allclose(np.abs(found), np.abs(u[:, :5] * s[:5]), atol=2e-3)


def test_fewer_rows_than_dimensions_give_as_many_as_there_are():
    assert principal_coordinates(blocks_of(falling(4)), 20).shape == (4, 4)
    assert principal_coordinates(blocks_of(falling(1)), 20).shape == (1, 1)


def test_no_rows_are_refused():
    with pytest.raises(ValueError, match="no rows"):
        principal_coordinates(lambda: iter([]))


def test_whitened_rows_have_variance_one_and_no_correlation():
    found = whitened(falling(400), 10)
    np.testing.assert_allclose(found.T @ found / 400, np.eye(10), atol=1e-8)


def test_constant_rows_keep_one_column_and_constant_directions_none():
    assert whitened(np.ones((5, 3))).shape == (5, 1)
    assert whitened(np.outer(np.arange(6.0), [1.0, 2.0, 0.0])).shape == (6, 1)
