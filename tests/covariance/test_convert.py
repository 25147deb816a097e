"""What `as_covariance` says about input that it cannot use."""

import numpy as np
import pytest
import scipy.sparse as sp

from kspan import as_covariance


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones(3), "Expected 2D array, got 1D"),
        (np.ones((2, 2), dtype=complex), "Complex data not supported"),
        (np.array([["a", "b"], ["c", "d"]]), "must be numeric"),
        (np.empty((3, 0)), r"0 feature\(s\)"),
        (np.ones((1, 3)), r"1 sample\(s\).*minimum of 2"),
        (np.ones((4, 3)), "no variance to explain"),
        (np.full((4, 3), 0.1), "no variance to explain"),
        (sp.csr_array((4, 3)), "no variance to explain"),
        (np.array([[1e200, 1.0], [-1e200, 0.0]]), "variances overflow"),
    ],
)
def test_unusable_data(X, message):
    with pytest.raises(ValueError, match=message):
        as_covariance(X)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array, sp.csc_array])
def test_missing_values_are_counted_and_located(convert):
    X = np.ones((4, 3)) * np.arange(4)[:, None]
    X[1, 2] = X[3, 2] = np.nan
    X[0, 1] = np.inf
    with pytest.raises(ValueError, match=r"2 NaN and 1 infinity.*2 column.*column 1 \('b'\)"):
        as_covariance(convert(X), feature_names=["a", "b", "c"])


@pytest.mark.parametrize(
    ("A", "message"),
    [
        (np.ones((2, 3)), r"square, got shape \(2, 3\)"),
        (np.empty((0, 0)), r"0 feature\(s\)"),
        (np.array([[1.0, 0.5], [0.2, 1.0]]), r"not symmetric.*\|A - A.T\| is 0.3"),
        (
            np.array([[1.0, 2.0], [2.0, 1.0]]),
            "not positive semidefinite.*eigenvalue of -1,.*33.33%",
        ),
        (np.array([[-1.0, 0.0], [0.0, 1.0]]), "variance of column 0 is -1, below zero"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), "NaN or infinity: 2 NaN.*column 0"),
        (np.zeros((2, 2)), "no variance to explain"),
        (sp.csr_array(np.eye(2)), "dense array"),
    ],
)
def test_unusable_covariances(A, message):
    with pytest.raises(ValueError, match=message):
        as_covariance(A, kind="covariance")


@pytest.mark.parametrize("size", [5, 1500])
def test_one_wrong_entry_is_found(rng, size):
    A = np.eye(size)
    A[3, 1] = 1e-3
    with pytest.raises(ValueError, match=r"not symmetric.*0\.001"):
        as_covariance(A, kind="covariance")


def test_a_large_indefinite_matrix_is_found_by_the_eigensolver(rng):
    Q = np.linalg.qr(rng.standard_normal((1200, 2)))[0]
    A = np.eye(1200) + (Q * [9.0, -3.0]) @ Q.T
    covariance = as_covariance(A, kind="covariance")  # too large for a factorisation
    with pytest.raises(ValueError, match=r"not positive semidefinite.*-2"):
        covariance.leading(1)


def test_rounding_is_forgiven(rng):
    A = np.cov(rng.standard_normal((5, 30)), rowvar=False)  # rank 4: eigenvalues of ±1e-16
    A[0, 1] *= 1 + 1e-12
    as_covariance(A, kind="covariance")
    as_covariance(A.astype(np.float32), kind="covariance")


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_scales_near_the_ends_of_the_range(rng, scale):
    A = np.cov(rng.standard_normal((30, 5)), rowvar=False)
    pairs = as_covariance(A * scale, kind="covariance").leading(2)
    np.testing.assert_allclose(pairs.values / scale, np.linalg.eigvalsh(A)[:2:-1], rtol=1e-12)


def test_kind_and_scale_are_checked():
    with pytest.raises(ValueError, match="kind must be"):
        as_covariance(np.eye(2), kind="corr")
    with pytest.raises(ValueError, match="scale=True needs data"):
        as_covariance(np.eye(2), kind="covariance", scale=True)
