"""Random problems, their answers by enumeration, and ways to make and to forge certificates."""

from dataclasses import fields, is_dataclass, replace
from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from kspan import RowSparseProblem, as_covariance
from kspan.problem import Choice
from kspan.progress import Monitor
from kspan.proofs.search import prover
from kspan.proofs.search.tree_state import Budgets
from kspan.solving import HEURISTICS

# Enumerate nothing: every node goes through the relaxation.
RELAX = Budgets(enumerate_cost=0.0)

# Two ways to add up m eigenvalues of a 12×12 matrix differ by a few dozen unit roundoffs.
ROUNDING = 1e-12

KINDS = (
    "gaussian", "rank deficient", "ties", "repeated eigenvalues", "diagonal", "duplicated columns",
    "tiny", "huge", "mixed scales",
)  # fmt: skip


def random_psd(rng, d, kind):
    """A positive semidefinite matrix of a kind that has broken proofs before."""
    F = rng.standard_normal((d, d))
    if kind == "rank deficient":
        F = F[:, : max(1, d // 3)]
    elif kind == "ties":
        F = rng.integers(-1, 2, (d, max(2, d // 2))).astype(float)
    elif kind == "repeated eigenvalues":
        Q = np.linalg.qr(F)[0]
        F = Q * np.sqrt(np.repeat([3.0, 1.0], [d // 2, d - d // 2]))
    elif kind == "diagonal":
        F = np.diag(np.abs(F[0]))
    elif kind == "duplicated columns":
        F = F[rng.integers(0, max(1, d // 2), d)]
    elif kind == "mixed scales":
        F *= 10.0 ** rng.integers(-4, 3, d)[:, None]
    scale = {"tiny": 1e-150, "huge": 1e150}.get(kind, 1.0)
    A = F @ F.T if F.any() else np.eye(d)  # kspan refuses data without variance
    return 0.5 * (A + A.T) * scale


def all_values(A, m, k, include=(), exclude=()):
    """Every feasible support and what it explains."""
    supports = np.array(
        [
            support
            for support in combinations(range(len(A)), k)
            if set(include) <= set(support) and not set(exclude) & set(support)
        ]
    )
    blocks = A[supports[:, :, None], supports[:, None, :]]
    size = np.abs(blocks).max() or 1.0  # LAPACK rescales too, but in the batch only once
    return supports, np.linalg.eigvalsh(blocks / size)[:, -m:].sum(axis=1) * size


def optimum(problem, A):
    """The best value and all supports that reach it, up to rounding."""
    supports, values = all_values(
        A, problem.n_components, problem.n_features_to_select, problem.include, problem.exclude
    )
    best = float(values.max())
    return best, supports[values >= best * (1 - 1e-14)]


def first_support(problem):
    """A feasible support that nobody thought about."""
    choice = problem.choice
    order = [*choice.include, *choice.free]
    return np.sort(np.array(order[: choice.size], dtype=np.intp))


def prove(
    problem, level, support=None, *, heuristic=True, budgets=None, time_limit=None, callback=None,
    **options,
):  # fmt: skip
    """Certify a support (a thoughtless one unless given) with options `certify` does not have."""
    best = problem.refit(first_support(problem) if support is None else np.sort(support))
    return prover.prove(
        problem,
        best,
        level,
        heuristic=HEURISTICS[type(problem)] if heuristic else None,
        monitor=Monitor(level, callback, time_limit),
        options=prover.ProofOptions(**options, budgets=budgets or Budgets()),
    )


def choice_of(forced, k, allowed=None, *, at_most=False):
    """The choice with masks of what must and may be chosen."""
    forced = np.asarray(forced, dtype=bool)
    return Choice(k, forced, np.ones_like(forced) if allowed is None else allowed, at_most)


def any_of(d, k, *, at_most=False):
    """The choice of k of d features."""
    return Choice.of(d, k, at_most=at_most)


def matrix_problem(A, m, k, include=(), exclude=()):
    return RowSparseProblem(as_covariance(A, kind="covariance"), m, k, include, exclude)


@st.composite
def psd_problems(draw, max_d=12, kinds=KINDS, constraints=True):
    """A matrix and a problem with it."""
    d = draw(st.integers(1, max_d))
    m = draw(st.integers(1, d))
    k = draw(st.integers(m, d))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    A = random_psd(rng, d, draw(st.sampled_from(kinds)))
    include = exclude = ()
    if constraints:
        order = rng.permutation(d)
        include = order[: draw(st.integers(0, k))].tolist() if draw(st.booleans()) else []
        most = min(d - k, d - len(include))
        exclude = order[d - draw(st.integers(0, most)) :].tolist() if most else []
    return A, matrix_problem(A, m, k, include, exclude)


def assert_sandwich(certificate, problem, A):
    """All that a certificate says about its problem is true."""
    best, supports = optimum(problem, A)
    assert certificate.lower <= best * (1 + ROUNDING)
    assert certificate.upper >= best * (1 - ROUNDING)
    assert certificate.support.size == problem.n_features_to_select
    assert np.isin(problem.include, certificate.support).all()
    assert not np.isin(problem.exclude, certificate.support).any()
    for support in supports:
        assert np.isin(certificate.proved_in, support).all()
        assert not np.isin(certificate.proved_out, support).any()
    return best


# --- what forgers do

JUNK = (
    np.nan, np.inf, -1, 0, 10**9, 1e300, -1e300, 5e-324, True, "text", None,
    np.empty(0), np.empty((0, 0)), np.zeros((3, 3)), np.arange(3), np.array([np.nan]),
)  # fmt: skip


def leaves(value, path=()):
    """All numbers and arrays in a tree of dataclasses and lists, with the way to them."""
    if is_dataclass(value):
        for entry in fields(value):
            yield from leaves(getattr(value, entry.name), (*path, entry.name))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from leaves(item, (*path, i))
    elif value is not None:
        yield path, value


def changed(value, path, new):
    """The tree with another value at the end of a path."""
    if not path:
        return new
    first, *rest = path
    if isinstance(value, list):
        return [changed(item, rest, new) if i == first else item for i, item in enumerate(value)]
    return replace(value, **{first: changed(getattr(value, first), rest, new)})
