"""Sparse coding kernels against scikit-learn's orthogonal matching pursuit and least squares, and at their edges."""

import numpy as np
import pytest
from sklearn.linear_model import orthogonal_mp

from stillwatch.kernels import sparse_code as kernels

N_ATOMS = 4


def dictionary(k=30, d=12, seed=0):
    """Return rows of length 1, (k, d) float32."""
    atoms = np.random.default_rng(seed).normal(size=(k, d))
    return (atoms / np.linalg.norm(atoms, axis=1, keepdims=True)).astype(np.float32)


def scratch(k, n_atoms=N_ATOMS):
    shapes = [(n_atoms, k), (n_atoms, n_atoms)]
    return [np.zeros(shape, np.float32) for shape in shapes] + [
        np.zeros(n_atoms, np.int32),
        np.zeros(n_atoms, np.float32),
    ]


def coded(atoms, signal, n_atoms=N_ATOMS, least=1e-4):
    """Return the code of one signal as a dense vector."""
    basis, triangle, places, values = scratch(len(atoms), n_atoms)
    gram = np.ascontiguousarray(atoms @ atoms.T)
    n = kernels.pursue(atoms @ signal, gram, n_atoms, np.float32(least), basis, triangle, places, values)
    code = np.zeros(len(atoms))
    code[places[:n]] = values[:n]
    return code


@pytest.mark.parametrize("seed", range(5))
def test_codes_are_those_of_orthogonal_matching_pursuit(seed):
    atoms = dictionary(seed=seed)
    signal = np.random.default_rng(seed + 100).normal(size=12).astype(np.float32)
    wanted = orthogonal_mp(atoms.T.astype(np.float64), signal.astype(np.float64), n_nonzero_coefs=N_ATOMS)
    np.testing.assert_allclose(coded(atoms, signal), wanted, atol=1e-4)


def test_a_sum_of_orthogonal_atoms_is_found_exactly_and_no_more_is_taken():
    code = coded(np.eye(6, dtype=np.float32), np.array([0.0, 3.0, 0.0, -2.0, 0.0, 0.0], np.float32))
    np.testing.assert_allclose(code, [0.0, 3.0, 0.0, -2.0, 0.0, 0.0], atol=1e-6)


def test_nothing_has_no_code():
    assert not coded(dictionary(), np.zeros(12, np.float32)).any()


def test_an_atom_twice_in_the_dictionary_is_taken_once():
    atoms = np.concatenate([dictionary(3), dictionary(3)])
    code = coded(atoms, 2.0 * atoms[1] + 0.5 * atoms[2])
    assert np.count_nonzero(code) == 2
    np.testing.assert_allclose(atoms.T @ code, 2.0 * atoms[1] + 0.5 * atoms[2], atol=1e-5)


def test_an_atom_that_adds_no_direction_ends_the_code():
    atoms = np.repeat(dictionary(1), 2, axis=0)
    assert np.count_nonzero(coded(atoms, atoms[0], least=-1.0)) == 1


def test_cells_keep_the_largest_sizes_and_left_out_patches_count_nowhere():
    atoms, signals = dictionary(), np.random.default_rng(7).normal(size=(5, 12)).astype(np.float32)
    pooled, cells = np.zeros((2, 30), np.float32), np.array([0, 0, 1, -1, 0])
    gram = np.ascontiguousarray(atoms @ atoms.T)
    kernels.code_and_pool(signals @ atoms.T, gram, cells, N_ATOMS, np.float32(1e-4), *scratch(30), pooled)
    sizes = np.abs([coded(atoms, signal) for signal in signals])
    np.testing.assert_allclose(pooled, [sizes[[0, 1, 4]].max(axis=0), sizes[2]], atol=1e-5)


def test_the_largest_of_a_vector_is_the_first_of_equals_whatever_its_sign():
    values = np.array([1.0, -5.0, 5.0, 2.0], np.float32)
    assert kernels.place_of_largest(values) == 1
    assert kernels.largest_size(values) == 5.0
    kernels.subtract(values, np.float32(2.0), np.ones(4, np.float32))
    np.testing.assert_array_equal(values, [-1.0, -7.0, 3.0, 0.0])
