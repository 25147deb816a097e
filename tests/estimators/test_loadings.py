"""Estimators whose components have features of their own: attributes, control, input, errors."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from kspan import ElementSparsePCA, NonnegativeProblem, NonnegativeSparsePCA, StiefelSparsePCA
from kspan.problem import ElementSparseProblem
from kspan.solvers.registry import methods_for

FORMS = {
    "joint": {},
    "exact count": {"n_nonzero_coefs": 4},
    "l21": {"penalty": "l21"},
    "deflation": {"solver": "deflation", "n_nonzero_coefs": 4},
    "two-stage": {"solver": "two-stage", "n_features_to_select": 6},
    "admm": {"solver": "admm"},
}


def samples():
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((60, 3)) @ rng.standard_normal((3, 12))
    return factors + 0.5 * rng.standard_normal((60, 12)) + np.arange(12)


@pytest.fixture
def X():
    return samples()


ESTIMATORS = [
    *(
        pytest.param(StiefelSparsePCA(random_state=0, **options), id=f"stiefel {form}")
        for form, options in FORMS.items()
    ),
    *(
        pytest.param(ElementSparsePCA(2, 4, solver=solver, random_state=0), id=solver)
        for solver in methods_for(ElementSparseProblem)
    ),
    *(
        pytest.param(
            NonnegativeSparsePCA(2, 4, solver=solver, random_state=0),
            id=f"nonnegative {solver}",
        )
        for solver in methods_for(NonnegativeProblem)
    ),
]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fitted_attributes_say_what_they_say(estimator, X):
    estimator = clone(estimator).fit(X)
    Z = estimator.components_.T
    A = np.cov(X, rowvar=False)
    np.testing.assert_allclose(np.linalg.norm(Z, axis=0), 1.0, atol=1e-9)
    R = np.linalg.qr((X - X.mean(axis=0)) @ Z, mode="r") / np.sqrt(59)
    np.testing.assert_allclose(estimator.explained_variance_, np.diag(R) ** 2, rtol=1e-7)
    assert estimator.objective_ == pytest.approx(estimator.explained_variance_.sum())
    np.testing.assert_allclose(
        estimator.explained_variance_ratio_, estimator.explained_variance_ / np.trace(A)
    )
    error = np.abs(Z.T @ Z - np.eye(2)).max()
    assert estimator.orthogonality_error_ == pytest.approx(error, abs=1e-12)
    assert estimator.n_nonzero_coefs_.tolist() == np.count_nonzero(Z, axis=0).tolist()
    assert np.array_equal(estimator.get_support(indices=True), np.flatnonzero(Z.any(axis=1)))
    largest = np.abs(Z).argmax(axis=0)
    assert (Z[largest, [0, 1]] > 0).all()
    Q = np.linalg.qr(Z)[0]
    assert estimator.score(X) == pytest.approx(np.trace(Q.T @ A @ Q) / np.trace(A))
    assert estimator.n_components_ == 2
    assert isinstance(estimator.status_, str)
    assert estimator.n_passes_ > 0


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_transform_and_back(estimator, X):
    estimator = clone(estimator)
    scores = estimator.fit_transform(X)
    np.testing.assert_allclose(scores, (X - X.mean(axis=0)) @ estimator.components_.T, atol=1e-10)
    points = estimator.inverse_transform(scores)
    # A point of the span comes back as itself, orthogonal components or not.
    np.testing.assert_allclose(estimator.transform(points), scores, atol=1e-8)
    unused = ~estimator.get_support()
    np.testing.assert_allclose(points[:, unused], np.tile(X.mean(axis=0)[unused], (60, 1)))


@cache
def on_round_numbers(estimator):
    """The components that dense data gives, fitted once for all other kinds of input."""
    return clone(estimator).fit(np.round(samples() * 4)).components_


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("kind", ["sparse", "float32", "fortran", "frame", "precomputed", "int"])
def test_the_same_answer_for_any_input(estimator, X, kind):
    X, reference = np.round(X * 4), on_round_numbers(estimator)
    estimator = clone(estimator)
    given = {
        "sparse": lambda: sp.csr_array(X),
        "float32": lambda: X.astype(np.float32),
        "fortran": lambda: np.asfortranarray(X),
        "frame": lambda: pd.DataFrame(X, columns=[f"f{i}" for i in range(12)]),
        "precomputed": lambda: np.cov(X, rowvar=False),
        "int": lambda: X.astype(np.int64),
    }[kind]()
    estimator.set_params(covariance="precomputed" if kind == "precomputed" else None)
    estimator.fit(given)
    assert estimator.components_.dtype == (np.float32 if kind == "float32" else np.float64)
    tolerance = 2e-3 if kind == "float32" else 1e-4
    np.testing.assert_allclose(estimator.components_, reference, atol=tolerance)
    if kind == "frame":
        chosen = [f"f{i}" for i in np.flatnonzero(reference.any(axis=0))]
        assert list(estimator.selected_features_) == chosen


def test_control_of_sparsity(X):
    sparse, sparser = (StiefelSparsePCA(alpha=alpha).fit(X) for alpha in (0.05, 0.5))
    assert sparser.n_nonzero_coefs_.sum() < sparse.n_nonzero_coefs_.sum()
    assert StiefelSparsePCA(n_nonzero_coefs=3).fit(X).n_nonzero_coefs_.tolist() == [3, 3]
    two = StiefelSparsePCA(solver="two-stage", n_features_to_select=5).fit(X)
    assert two.get_support().sum() == 5
    assert two.orthogonality_error_ < 1e-10
    assert ElementSparsePCA().fit(X).n_nonzero_coefs_.tolist() == [2, 2]


def test_the_default_alpha_follows_the_data(X):
    small, large = (StiefelSparsePCA().fit(X * scale) for scale in (1e-3, 1e3))
    assert large.alpha_ == pytest.approx(small.alpha_ * 1e12)
    np.testing.assert_allclose(large.components_, small.components_, atol=1e-8)


def test_too_large_an_alpha_names_the_largest_useful_one(X):
    with pytest.raises(ValueError, match="The largest useful alpha is"):
        StiefelSparsePCA(alpha=1e9).fit(X)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (StiefelSparsePCA(alpha=0.1, n_nonzero_coefs=3), "alpha or counts .*, not both"),
        (StiefelSparsePCA(alpha=0.1, n_nonzero_total=5), "alpha or counts .*, not both"),
        (StiefelSparsePCA(disjoint=True), "disjoint=True needs n_nonzero_coefs or n_nonzero_total"),
        (StiefelSparsePCA(n_nonzero_coefs=[3, 3, 3]), "3 numbers for n_components=2 components"),
        (StiefelSparsePCA(n_nonzero_coefs=[3, 2.5]), "n_nonzero_coefs"),
        (StiefelSparsePCA(n_nonzero_total=1), "n_nonzero_total=1 must be between n_components=2"),
        (StiefelSparsePCA(n_components=13, n_nonzero_coefs=2), "between 1 and n_features=12"),
        (StiefelSparsePCA(solver="two-stage"), "n_features_to_select and solver='two-stage'"),
        (StiefelSparsePCA(n_features_to_select=3), "n_features_to_select and solver='two-stage'"),
        (StiefelSparsePCA(solver_options={"alpha": 1}), "'alpha' is a parameter of its own"),
        (StiefelSparsePCA(solver_options={"delta": 1}), "has no option 'delta'"),
        (StiefelSparsePCA(n_components=13), "between 1 and n_features=12"),
        (StiefelSparsePCA(n_nonzero_coefs=13), "between 1 and n_features=12"),
        (ElementSparsePCA(n_nonzero_coefs=13), "between 1 and n_features=12"),
        (ElementSparsePCA(n_components=13), "between 1 and n_features=12"),
        (ElementSparsePCA(solver_options={"solver": 1}), "'solver' is a parameter of its own"),
        (
            ElementSparsePCA(solver="gpower-l0-block", deflation="schur"),
            "has no option 'deflation'",
        ),
        (ElementSparsePCA(solver="matching", deflation="schur"), "has no option 'deflation'"),
    ],
)
def test_what_cannot_be(estimator, message, X):
    with pytest.raises(ValueError, match=message):
        estimator.fit(X)


@pytest.mark.parametrize(
    "estimator", [StiefelSparsePCA(), ElementSparsePCA(), NonnegativeSparsePCA()]
)
def test_bad_data_is_named(estimator, X):
    X = pd.DataFrame(X, columns=[f"f{i}" for i in range(12)])
    X.iloc[3, 5] = np.nan
    with pytest.raises(ValueError, match="f5"):
        estimator.fit(X)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_more_components_than_directions_is_a_warning(estimator, rng):
    X = np.outer(rng.standard_normal(40), rng.uniform(1, 2, 12))
    with pytest.warns(UserWarning, match="above the rank of the covariance, which is 1"):
        clone(estimator).fit(X)


def test_time_limit_callback_and_verbose(X, capsys):
    told = []
    StiefelSparsePCA(callback=told.append, verbose=1).fit(X)
    assert told
    assert "[kspan] auto" in capsys.readouterr().err
    assert StiefelSparsePCA(time_limit=1e-9).fit(X).status_ == "time limit"


def test_many_features_are_scouted_first(rng):
    """Beyond 2000 features the starts are compared on the largest ones; the answer is as good."""
    X = 0.3 * rng.standard_normal((40, 2500))
    X[:, 100:140] += rng.standard_normal((40, 1)) @ rng.uniform(1, 2, (1, 40))
    X[:, 200:230] += rng.standard_normal((40, 1)) @ rng.uniform(1, 2, (1, 30))
    scouted = StiefelSparsePCA().fit(X)
    plain = StiefelSparsePCA(init="svd").fit(X)

    def objective(fit):
        V = fit.components_.T
        scores = (X - X.mean(axis=0)) @ V
        return -0.5 * np.sum(scores**2) / 39 + fit.alpha_ * np.abs(V).sum()

    assert objective(plain) < 0
    assert objective(scouted) <= objective(plain) * (1 - 1e-3), "lower is better"
    # Most of the loadings are on the features that carry the factors.
    informative = [*range(100, 140), *range(200, 230)]
    assert np.sum(scouted.components_[:, informative] ** 2) > 1.9
