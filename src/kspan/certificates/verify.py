"""`verify`: recompute a certificate from the data and its witness, and believe nothing else.

A search tree is walked from the root. Starting from all supports, a record may cut off pieces
with a witness (supports with a removed feature, supports without a fixed one), be split on a
feature, or be a leaf that is bounded by a witness or enumerated. Every number is recomputed and
compared with the one claimed; the upper bound that follows is the largest of all pieces.
"""

import math
from itertools import combinations, islice

import numpy as np

from kspan.arrays import FloatArray, Index, Mask
from kspan.certificates.bounds import (
    UNIT,
    Bound,
    cone_bound,
    dual_bound,
    full_bound,
    low_rank_dual_bound,
    row_bound,
    sample_bound,
    split_bound,
    spread,
    trace_bound,
)
from kspan.certificates.certificate import (
    OPTIMAL_GAP,
    Certificate,
    CertificateError,
    CertificateStatus,
)
from kspan.certificates.matrices import DENSE_LIMIT, dense_matrix, sample_matrix
from kspan.certificates.net import confidence, net_bound
from kspan.certificates.screening import cut_levels
from kspan.certificates.witness import (
    Cones,
    DualWitness,
    NetWitness,
    PathWitness,
    Record,
    Reduction,
    RowWitness,
    SampleWitness,
    SplitWitness,
    TraceWitness,
    TreeWitness,
)
from kspan.linalg.nonnegative import has_no_interior_optimum
from kspan.problem import NonnegativeProblem, RowSparseProblem

# Two computations of one number differ by rounding: by less than this share of it.
AGREEMENT = 1e-9

Problem = RowSparseProblem | NonnegativeProblem

MAX_ENUMERATED = 5_000_000


def verify(problem: Problem, certificate: Certificate) -> tuple[float, float]:
    """Recompute the bounds of a certificate; raise at the first number that does not follow.

    Parameters
    ----------
    problem : RowSparseProblem or NonnegativeProblem
        The problem that the certificate is to be about.
    certificate : Certificate

    Returns
    -------
    lower, upper : float
        As recomputed, rounded outwards. The upper one of an ε-net (level "net") holds with the
        probability ``certificate.confidence``, which is recomputed too; it presumes that whoever
        made it did not choose the seed to that end.

    Raises
    ------
    CertificateError
        Naming what does not follow.

    Examples
    --------
    >>> from kspan import RowSparseProblem, as_covariance, certify, solve, verify
    >>> from kspan.datasets import load_pitprops
    >>> A = as_covariance(load_pitprops().covariance, kind="covariance")
    >>> problem = RowSparseProblem(A, 2, 5)
    >>> certificate = certify(problem, solve(problem, random_state=0), level="exact")
    >>> lower, upper = verify(problem, certificate)
    >>> round(lower, 6), certificate.status.value
    (4.391046, 'optimal')
    """
    _same_problem(problem, certificate)
    problem.covariance.ensure_psd()
    if certificate.compute_digest() != certificate.digest:
        raise CertificateError("digest: the certificate was changed after it was made")
    try:
        lower = _lower(problem, certificate)
        _agree("lower", lower, certificate.lower)
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            for number, path in enumerate(certificate.path):
                _check_path(problem, path, f"path witness {number}")
            upper = max(_upper(problem, certificate), lower)
    except CertificateError:
        raise
    except FloatingPointError as error:
        raise CertificateError(f"witness: {error}") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # Arrays of a wrong kind or shape: a file may hold anything.
        raise CertificateError(f"witness: does not fit the problem ({error})") from None
    chance = 1.0
    if isinstance(certificate.witness, NetWitness):
        chance = confidence(certificate.witness)
    _agree("confidence", chance, certificate.confidence)
    _follow("upper", upper, certificate.upper)
    _check_settled(problem, certificate, lower)
    if certificate.status is CertificateStatus.OPTIMAL:
        _need(certificate.gap <= OPTIMAL_GAP, f"status: optimal, but the gap is {certificate.gap}")
    return lower, upper


def _need(condition: bool, message: str) -> None:
    if not condition:
        raise CertificateError(message)


def _agree(what: str, follows: float, claimed: float) -> None:
    slack = AGREEMENT * max(abs(follows), abs(claimed))
    _need(
        math.isfinite(claimed) and abs(follows - claimed) <= slack,
        f"{what}: claimed {claimed!r}, but {follows!r} follows",
    )


def _follow(what: str, follows: float, claimed: float) -> None:
    """A claimed bound may be larger than the one that follows, not smaller."""
    slack = AGREEMENT * max(abs(follows), abs(claimed))
    _need(
        math.isfinite(claimed) and follows <= claimed + slack,
        f"{what}: claimed {claimed!r}, but only {follows!r} follows",
    )


def _same_problem(problem: Problem, certificate: Certificate) -> None:
    kind = "nonnegative" if isinstance(problem, NonnegativeProblem) else "row-sparse"
    _need(certificate.problem == kind, f"problem: is {kind}, the certificate's is not")
    _need(
        kind == "row-sparse" or problem.n_components == 1,
        "problem: a certificate is about one nonnegative component",
    )
    for what, asked, claimed in (
        ("n_features", problem.n_features, certificate.n_features),
        ("n_components", problem.n_components, certificate.n_components),
        ("n_features_to_select", problem.n_features_to_select, certificate.n_features_to_select),
    ):
        _need(asked == claimed, f"{what}: the problem has {asked}, the certificate {claimed}")
    for what, mine, its in (
        ("include", problem.include, certificate.include),
        ("exclude", problem.exclude, certificate.exclude),
    ):
        _need(np.array_equal(mine, its), f"{what}: differs between problem and certificate")


def _features(values: Index, d: int, what: str) -> Index:
    array = np.asarray(values)
    _need(array.ndim == 1, f"{what}: not a list of feature numbers")
    if array.size == 0:
        return np.empty(0, dtype=np.intp)
    _need(array.dtype.kind in "iu", f"{what}: not feature numbers")
    _need(array.min() >= 0 and array.max() < d, f"{what}: out of range")
    _need(np.unique(array).size == array.size, f"{what}: a feature is named twice")
    return array.astype(np.intp)


def _lower(problem: Problem, certificate: Certificate) -> float:
    support = _features(certificate.support, problem.n_features, "support")
    if isinstance(problem, NonnegativeProblem):
        return _nonnegative_lower(problem, support, certificate.weights)
    _need(support.size == problem.n_features_to_select, "support: has a wrong size")
    _need(bool(np.isin(problem.include, support).all()), "support: lacks a feature to include")
    _need(not np.isin(problem.exclude, support).any(), "support: has an excluded feature")
    values = problem.covariance.leading(problem.n_components, np.sort(support)).values
    return float(np.maximum(values, 0.0).sum())


def _nonnegative_lower(problem: NonnegativeProblem, support: Index, weights: FloatArray) -> float:
    """Return x'Ax, after checking that x is a nonnegative unit vector with at most k features."""
    _need(1 <= support.size <= problem.n_nonzero_coefs, "support: has a wrong size")
    _need(weights.shape == (support.size, 1), "weights: do not fit the support")
    x = np.asarray(weights[:, 0], dtype=np.float64)
    _need(bool(np.isfinite(x).all() and (x >= 0).all()), "weights: are not all nonnegative")
    length = float(x @ x)
    _need(abs(length - 1) <= AGREEMENT, "weights: are not a unit vector")
    return max(float(x @ problem.covariance.submatrix(support) @ x) / length, 0.0)


def _check_cones(problem: Problem, cones: Cones | None, what: str) -> None:
    """Multipliers of P ≥ 0 are for nonnegative problems only."""
    allowed = cones is None or not cones.signs.size or isinstance(problem, NonnegativeProblem)
    _need(allowed, f"{what}: has multipliers of signs, but loadings may have any sign")


def _masks(problem: Problem) -> tuple[Mask, Mask]:
    forced = np.zeros(problem.n_features, dtype=bool)
    forced[problem.include] = True
    return forced, problem.allowed


def _upper(problem: Problem, certificate: Certificate) -> float:
    witness = certificate.witness
    m, k = problem.n_components, problem.n_features_to_select
    forced, allowed = _masks(problem)
    variances = problem.covariance.diagonal()
    n_samples = problem.covariance.n_samples or 0
    if isinstance(witness, TraceWitness):
        return trace_bound(variances[allowed], forced[allowed], k, n_samples).value
    if isinstance(witness, RowWitness):
        A, scale = dense_matrix(problem, np.flatnonzero(allowed))
        return row_bound(A, m, k, n_samples) * scale
    if isinstance(witness, DualWitness):
        return _dual(problem, witness, k).value * witness.scale
    if isinstance(witness, SplitWitness | SampleWitness):
        _check_scale(problem, witness.scale)
    if isinstance(witness, SplitWitness):
        _check_cones(problem, witness.cones, "witness")
        inside = _features(witness.inside, problem.n_features, "witness")
        A = problem.covariance.submatrix(inside) / witness.scale
        value = split_bound(A, variances / witness.scale, m, k, witness, forced, allowed, n_samples)
        return value * witness.scale
    if isinstance(witness, SampleWitness):
        _features(witness.active, problem.n_features, "witness")
        X = sample_matrix(problem) / math.sqrt(witness.scale)
        return sample_bound(X, m, k, witness, forced, allowed) * witness.scale
    if isinstance(witness, TreeWitness):
        return _TreeChecker(problem, witness).upper() * witness.scale
    if isinstance(witness, NetWitness):
        _need(isinstance(problem, NonnegativeProblem), "witness: nets are for nonnegative problems")
        assert isinstance(problem, NonnegativeProblem)
        _check_scale(problem, witness.scale)
        return net_bound(problem, witness).value * witness.scale
    raise CertificateError(f"witness: unknown kind {type(witness).__name__}")


def _dual(problem: Problem, witness: DualWitness | PathWitness, k: int) -> Bound:
    forced, allowed = _masks(problem)
    features = _features(witness.features, problem.n_features, "witness")
    _need(np.array_equal(features, np.flatnonzero(allowed)), "witness: lacks a feature")
    _check_scale(problem, witness.scale)
    _need(len(witness.factor) == features.size, "witness: the factor has a wrong shape")
    m, forced = problem.n_components, forced[features]
    if features.size > DENSE_LIMIT and problem.covariance.is_wide:
        X = sample_matrix(problem)[:, features] / math.sqrt(witness.scale)
        return low_rank_dual_bound(X, witness.factor, m, k, forced)
    A = problem.covariance.submatrix(features) / witness.scale
    n_samples = problem.covariance.n_samples or 0
    cones = witness.cones if isinstance(witness, PathWitness) else None
    _check_cones(problem, cones, "witness")
    return full_bound(0.5 * (A + A.T), witness.factor, cones, m, k, forced, n_samples)


def _check_scale(problem: Problem, scale: float) -> None:
    """Require a power of four of about the size of the data.

    Then dividing by it and by its root is exact, and the rounding margins hold.
    """
    if math.isfinite(scale) and scale > 0:
        mantissa, exponent = math.frexp(scale)
        size = math.frexp(float(problem.covariance.diagonal().max()))[1]
        if mantissa == 0.5 and exponent % 2 == 1 and abs(exponent - size) <= 20:
            return
    raise CertificateError(f"the scale is not a power of four of the data's size: {scale!r}")


def _check_path(problem: Problem, path: PathWitness, what: str) -> None:
    bound = _dual(problem, path, problem.n_features_to_select)
    size = float(bound.scores.max(initial=0.0)) + abs(bound.ky_fan)
    _need(
        abs(bound.ky_fan - path.ky_fan) <= AGREEMENT * size,
        f"{what}, Ky Fan sum: claimed {path.ky_fan!r}, but {bound.ky_fan!r} follows",
    )
    _need(
        path.scores.shape == bound.scores.shape
        and bool((np.abs(path.scores - bound.scores) <= AGREEMENT * size).all()),
        f"{what}: the scores do not follow from the factor",
    )


def _check_settled(problem: Problem, certificate: Certificate, lower: float) -> None:
    """Require that the root's cuts, checked before, settle what is called proved in or out."""
    witness = certificate.witness
    fixed, removed = [np.empty(0, dtype=np.intp)], [np.empty(0, dtype=np.intp)]
    if isinstance(witness, TreeWitness):
        for cut in witness.records[0].reductions:
            if cut.level * witness.scale < lower:
                fixed.append(cut.fixed)
                removed.append(cut.removed)
    for what, claimed, follows in (
        ("proved_in", certificate.proved_in, np.concatenate(fixed)),
        ("proved_out", certificate.proved_out, np.concatenate(removed)),
    ):
        named = _features(claimed, problem.n_features, what)
        _need(bool(np.isin(named, follows).all()), f"{what}: a feature does not follow")


class _TreeChecker:
    """Walks a search tree; all numbers in units of the witness's scale."""

    def __init__(self, problem: Problem, tree: TreeWitness):
        _check_scale(problem, tree.scale)
        self.problem, self.tree = problem, tree
        # A nonnegative component may use fewer than k features.
        self.at_most = isinstance(problem, NonnegativeProblem)
        self.m, self.k = problem.n_components, problem.n_features_to_select
        self.n_samples = problem.covariance.n_samples or 0
        every = np.arange(problem.n_features)
        self.A = problem.covariance.submatrix(every) / tree.scale
        self.A = 0.5 * (self.A + self.A.T)
        # A computed value on k features is off by m·4k·u times a norm ≤ k times the largest entry.
        largest = float(np.abs(np.diagonal(self.A)).max())
        self.error = 8 * self.m * self.k * (self.k + self.n_samples) * UNIT * largest

    def upper(self) -> float:
        forced, allowed_mask = _masks(self.problem)
        allowed = np.flatnonzero(allowed_mask)
        upper = -math.inf
        seen: set[int] = set()
        todo = [(0, allowed, forced[allowed])]
        while todo:
            index, allowed, forced = todo.pop()
            _need(
                0 <= index < len(self.tree.records) and index not in seen,
                f"node {index}: missing, or visited twice",
            )
            seen.add(index)
            value, children = self.record(index, allowed, forced)
            upper = max(upper, value)
            todo.extend(children)
        return upper

    def record(
        self, index: int, allowed: Index, forced: Mask
    ) -> tuple[float, list[tuple[int, Index, Mask]]]:
        """Return the bound of what this record settles, and the children left to visit."""
        record, what = self.tree.records[index], f"node {index}"
        upper = -math.inf
        if int(forced.sum()) > self.k:
            return upper, []  # no support
        allowed, forced = self.only_forced(allowed, forced)
        for step, reduction in enumerate(record.reductions):
            allowed, forced, level = self.cut(reduction, allowed, forced, f"{what}, cut {step}")
            upper = max(upper, level)
            if int(forced.sum()) > self.k or (allowed.size < self.k and not self.at_most):
                return upper, []  # every support was cut off
            allowed, forced = self.only_forced(allowed, forced)
        if record.kind == "branched":
            return upper, self.children(index, record, allowed, forced)
        if record.kind == "void":
            _need(self.at_most and bool(forced.all()), f"{what}: is not void")
            void = has_no_interior_optimum(self.A[np.ix_(allowed, allowed)])
            _need(void, f"{what}: is not void")
            return upper, []
        if record.kind == "enumerated":
            value = self.enumerate(allowed, forced, what)
        elif record.kind in ("bound", "open"):
            value = self.bound(record.witness, allowed, forced, what).value
        else:
            raise CertificateError(f"{what}: unknown kind {record.kind!r}")
        _follow(f"{what}, bound", value, record.bound)
        return max(upper, value), []

    def only_forced(self, allowed: Index, forced: Mask) -> tuple[Index, Mask]:
        """When as many features are forced as may be used, no other one can be."""
        if self.at_most and int(forced.sum()) == self.k:
            return allowed[forced], forced[forced]
        return allowed, forced

    def bound(self, index: int, allowed: Index, forced: Mask, what: str) -> Bound:
        _need(0 <= index < len(self.tree.witnesses), f"{what}: there is no witness {index}")
        witness = self.tree.witnesses[index]
        features = _features(witness.features, self.problem.n_features, f"{what}: witness")
        place = np.full(self.problem.n_features, -1)
        place[features] = np.arange(features.size)
        rows = place[allowed]
        _need(bool((rows >= 0).all()), f"{what}: the witness lacks a feature")
        A = self.A[np.ix_(allowed, allowed)]
        if witness.factor is None:
            return dual_bound(A, None, self.m, self.k, forced)
        _need(
            witness.factor.ndim == 2 and len(witness.factor) == features.size,
            f"{what}: the factor has a wrong shape",
        )
        if witness.cones is not None:
            _check_cones(self.problem, witness.cones, what)
            cones = witness.cones.on(rows)
            return cone_bound(
                A, witness.factor[rows], cones, self.m, self.k, forced, self.n_samples
            )
        extra: tuple[FloatArray, FloatArray] | None = None
        if witness.strengthening >= 0:
            _need(
                witness.strengthening < len(self.tree.strengthenings),
                f"{what}: there is no strengthening {witness.strengthening}",
            )
            shared = self.tree.strengthenings[witness.strengthening]
            _features(shared.features, self.problem.n_features, f"{what}: strengthening")
            extra = spread(shared, allowed)
        return dual_bound(A, witness.factor[rows], self.m, self.k, forced, extra, self.n_samples)

    def cut(
        self, reduction: Reduction, allowed: Index, forced: Mask, what: str
    ) -> tuple[Index, Mask, float]:
        """Check one screening step; return the smaller node and the level of what went."""
        d = self.problem.n_features
        bound = self.bound(reduction.witness, allowed, forced, what)
        removed = np.isin(allowed, _features(reduction.removed, d, f"{what}: removed"))
        fixed = np.isin(allowed, _features(reduction.fixed, d, f"{what}: fixed"))
        _need(int(fixed.sum()) == reduction.fixed.size, f"{what}: fixes what is not allowed")
        _need(not (removed & (fixed | forced)).any(), f"{what}: removes a forced feature")
        with_it, without = cut_levels(bound, forced, self.k)
        level = max(
            with_it[removed].max(initial=-math.inf),
            without[fixed & ~forced].max(initial=-math.inf),
        )
        _follow(f"{what}, level", float(level), reduction.level)
        forced = forced | fixed
        return allowed[~removed], forced[~removed], float(level)

    def children(
        self, index: int, record: Record, allowed: Index, forced: Mask
    ) -> list[tuple[int, Index, Mask]]:
        what = f"node {index}"
        _need(len(record.children) == 2, f"{what}: must have two children")
        first, second = record.children
        _need(
            min(first, second) > 0 and max(first, second) < len(self.tree.records),
            f"{what}: a child is missing",
        )
        with_it, without = self.tree.records[first], self.tree.records[second]
        _need(
            with_it.feature == without.feature and with_it.included and not without.included,
            f"{what}: the children do not cover it",
        )
        _need(with_it.parent == without.parent == index, f"{what}: a child has another parent")
        place = np.flatnonzero(allowed == with_it.feature)
        _need(
            place.size == 1 and not forced[place[0]],
            f"{what}: is split on a feature that is settled",
        )
        more = forced.copy()
        more[place[0]] = True
        return [
            (first, allowed, more),
            (second, np.delete(allowed, place), np.delete(forced, place)),
        ]

    def enumerate(self, allowed: Index, forced: Mask, what: str) -> float:
        base, free = allowed[forced], allowed[~forced]
        n_free = self.k - base.size
        if self.at_most:  # an eigenvalue bounds all smaller supports too
            n_free = min(n_free, free.size)
        if n_free < 0 or n_free > free.size or base.size + n_free == 0:
            return -math.inf
        _need(
            math.comb(free.size, n_free) <= MAX_ENUMERATED,
            f"{what}: too many supports to enumerate",
        )
        best, choices = -math.inf, combinations(free.tolist(), n_free)
        while batch := list(islice(choices, 4096)):
            chosen = np.array(batch, dtype=np.intp).reshape(len(batch), n_free)
            supports = np.hstack([np.broadcast_to(base, (len(batch), base.size)), chosen])
            blocks = self.A[supports[:, :, None], supports[:, None, :]]
            values = np.linalg.eigvalsh(blocks)[:, -self.m :].sum(axis=1)
            best = max(best, float(values.max()))
        return best + self.error
