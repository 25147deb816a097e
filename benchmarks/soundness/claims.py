"""Everything that a certificate claims, held against the truth."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.soundness.joint_oracle import JointTruth
from benchmarks.soundness.oracle import TIED, Truth, exact
from kspan import verify
from kspan.proofs import Certificate, CertificateError

# A bound is wrong when it is on the wrong side by more than this share of the optimum.
TOLERANCE = 1e-12

# What "optimal" promises: nothing is better by more than this share.
OPTIMAL = 1e-6

# Beside the tolerance, what the oracle is off by when it takes components out of a matrix, as a
# share of that matrix.
ORACLE_ERROR = 1e-17

# Loadings are orthonormal up to this.
ORTHONORMAL = 1e-8


@dataclass
class Judgement:
    """What was tried, and what was found wrong.

    Attributes
    ----------
    certificates, values, forgeries, refused : int
        Certificates tried; values of `upper_at` and of bands; false certificates and records that
        were offered; problems that kspan honestly refused.
    accepted : int
        Forgeries that passed because what they say is true all the same.
    grazed : int
        Bounds that were on the wrong side at all, though within the tolerance.
    worst : float
        The largest share by which a bound was on the wrong side, within the tolerance.
    net_missed, net_expected : number of probable bounds that did not hold, and that need not
    wrong : list of (claim, sentence)
    """

    certificates: int = 0
    values: int = 0
    forgeries: int = 0
    accepted: int = 0
    refused: int = 0
    grazed: int = 0
    worst: float = 0.0
    net_missed: int = 0
    net_expected: float = 0.0
    wrong: list[tuple[str, str]] = field(default_factory=list)

    def complain(self, claim: str, sentence: str) -> None:
        """Note something that is not true."""
        self.wrong.append((claim, sentence))

    def need(self, condition: bool, claim: str, sentence: str) -> None:
        """Note something unless it is true."""
        if not condition:
            self.complain(claim, sentence)

    def ordered(self, claim: str, smaller: Any, larger: Any, size: Any, error: Any = 0.0) -> None:
        """Require ``smaller ≤ larger``, up to the tolerance's share of `size`."""
        excess = violation(smaller, larger, size, error)
        if excess > TOLERANCE:
            self.complain(claim, f"{claim}: {smaller!r} > {larger!r}, by a share of {excess:.3g}")
        else:
            self.worst = max(self.worst, excess)
            self.grazed += int(excess > TIED)


def violation(smaller: Any, larger: Any, size: Any, error: Any = 0.0) -> float:
    """Return by which share of `size` two numbers are in the wrong order, 0 if they are not."""
    excess = np.longdouble(smaller) - np.longdouble(larger) - np.longdouble(error)
    if not excess > 0:
        return 0.0 if excess <= 0 else np.inf  # not a number is as wrong as can be
    return float(excess / size) if size > 0 else np.inf


# --- shared features


def check_shared(
    certificate: Certificate, problem: Any, truth: Truth, judge: Judgement, error: Any = 0.0
) -> None:
    """Hold a certificate of a `RowSparseProblem` against the truth."""
    judge.certificates += 1
    m, k = problem.n_components, problem.choice.size
    include, exclude = problem.choice.include.tolist(), problem.choice.exclude.tolist()
    supports, values = truth.supports(m, k, include, exclude)
    values = np.maximum(values, 0)  # what is left of a matrix of few digits may all be negative
    optimum, support = values.max(), np.sort(certificate.support)
    feasible = (supports == support).all(axis=1) if support.shape == (k,) else np.zeros(1, bool)
    judge.need(bool(feasible.any()), "support", f"support {support} is not feasible")
    if feasible.any():
        reached = values[feasible][0]
        check_bounds(certificate, reached, optimum, judge, error)
        check_weights(certificate, truth, judge, error)
    optimal = supports[values >= optimum * (1 - TIED)]
    check_settled(certificate, optimal, judge)
    for size in range(max(m, len(include)), truth.d - len(exclude) + 1):
        best = truth.optimum(m, size, include, exclude)
        check_upper_at(certificate, size, best, judge, error)
    check_verified(certificate, problem, optimum, judge, error)


def check_bounds(
    certificate: Certificate, reached: Any, optimum: Any, judge: Judgement, error: Any = 0.0
) -> None:
    """The lower bound is reached, the upper one never passed, and "optimal" is."""
    judge.ordered("lower", certificate.lower, reached, optimum, error)
    judge.ordered("upper", optimum, certificate.upper, optimum, error)
    if certificate.status.value == "optimal":
        short = violation(optimum, reached, optimum, error)
        judge.need(short <= OPTIMAL * (1 + OPTIMAL), "optimal",
                   f"called optimal, but {short:.3g} below the optimum")  # fmt: skip


def check_weights(
    certificate: Certificate, truth: Truth, judge: Judgement, error: Any = 0.0
) -> None:
    """The loadings, where there are any, are orthonormal and explain what was reached."""
    if not certificate.weights.size:
        return
    W, support = np.asarray(certificate.weights), certificate.support
    fits = W.shape == (support.size, certificate.n_components) and W.dtype.kind == "f"
    fits = fits and bool(np.isfinite(W).all())
    judge.need(fits, "weights", "the weights are not loadings on the support")
    if fits:
        gram = W.T @ W
        explained = max(np.trace(W.T @ truth.A[np.ix_(support, support)] @ W), np.longdouble(0))
        good = np.abs(gram - np.eye(len(gram))).max() <= OPTIMAL
        good = good and explained >= certificate.lower * (1 - OPTIMAL) - error
        judge.need(good, "weights", f"the weights explain {explained!r}, not {certificate.lower!r}")


def check_settled(certificate: Certificate, optimal: Iterable[Any], judge: Judgement) -> None:
    """What is proved in is in every optimal support, what is proved out is in none."""
    for support in optimal:
        inside = np.isin(certificate.proved_in, support).all()
        outside = not np.isin(certificate.proved_out, support).any()
        judge.need(inside, "proved_in", f"{certificate.proved_in} but {support} is optimal")
        judge.need(outside, "proved_out", f"{certificate.proved_out} but {support} is optimal")
        if not (inside and outside):
            return


def check_upper_at(
    certificate: Certificate, k: int, optimum: Any, judge: Judgement, error: Any = 0.0
) -> None:
    """The bound for another number of features holds."""
    try:
        bound = certificate.upper_at(k)
    except ValueError as refusal:
        honest = "No witness" in str(refusal) and k > certificate.reach
        judge.need(honest, "upper_at refuses", f"upper_at({k}): {refusal}")
        return
    judge.values += 1
    judge.ordered("upper_at", optimum, bound, optimum, error)


def check_verified(
    certificate: Certificate, problem: Any, optimum: Any, judge: Judgement, error: Any = 0.0,
    above: Any = None,
) -> None:  # fmt: skip
    """`verify` accepts, and what it returns is true as well; `above`: what the optimum may be."""
    try:
        lower, upper = verify(problem, certificate)
    except CertificateError as refusal:
        judge.complain("verify refuses", f"verify refuses an honest certificate: {refusal}")
        return
    judge.ordered("verified lower", lower, optimum if above is None else above, optimum, error)
    if certificate.confidence == 1:
        judge.ordered("verified upper", optimum, upper, optimum, error)


# --- one nonnegative component


def check_nonnegative(
    certificate: Certificate, problem: Any, truth: Truth, judge: Judgement, error: Any = 0.0
) -> None:
    """Hold a certificate of one nonnegative component against the truth."""
    judge.certificates += 1
    k, support = problem.choice.size, certificate.support
    points, values = truth.nonnegative_points(k)
    optimum = max(values.max(), np.longdouble(0))
    weights = np.asarray(certificate.weights)
    feasible = (
        support.size <= k and weights.shape == (support.size, 1) and bool((weights >= 0).all())
    )
    judge.need(feasible, "support", f"weights {weights} on {support} are not feasible")
    if not feasible:
        return
    reached = max(truth.nonnegative_value(support, weights), np.longdouble(0))
    if certificate.confidence < 1:
        judge.ordered("lower", certificate.lower, reached, optimum, error)
        judge.net_expected += 1 - certificate.confidence
        missed = violation(optimum, certificate.upper, optimum, error) > TOLERANCE
        judge.net_missed += int(missed)
    else:
        check_bounds(certificate, reached, optimum, judge, error)
        for size in range(1, int(problem.choice.features.size) + 1):
            best = truth.nonnegative_points(size)[1].max()
            check_upper_at(certificate, size, best, judge, error)
    tied = points[values >= optimum * (1 - TIED)]
    check_settled(certificate, [np.flatnonzero(x) for x in tied], judge)
    check_verified(certificate, problem, optimum, judge, error)


# --- orthonormal components with supports of their own


def check_joint(
    certificate: Certificate, problem: Any, truth: JointTruth, judge: Judgement
) -> None:
    """Hold a certificate of components with counts of their own against the truth."""
    judge.certificates += 1
    check_joint_claims(certificate, truth, judge)
    check_verified(certificate, problem, truth.reached, judge, above=truth.above)


def check_joint_claims(certificate: Certificate, truth: JointTruth, judge: Judgement) -> None:
    """The loadings are feasible and reach the lower bound, and nothing exceeds the upper one."""
    d, r = truth.limits.n_features, len(truth.limits.limits)
    support, W = np.asarray(certificate.support), np.asarray(certificate.weights)
    fits = W.shape == (support.size, r) and W.dtype.kind == "f" and bool(np.isfinite(W).all())
    whole = np.zeros((d, r), dtype=np.longdouble)
    if fits:
        whole[support] = exact(W)
        off = np.abs(whole.T @ whole - np.eye(r)).max()
        fits = truth.limits.allow(whole != 0) and bool(off <= ORTHONORMAL)
    judge.need(fits, "weights", f"weights {W} on {support} are not feasible")
    if not fits:
        return
    # Nearly orthonormal loadings may explain more than any that are so.
    reached = min(np.trace(whole.T @ truth.truth.A @ whole), truth.above_on(whole != 0))
    check_bounds(certificate, reached, truth.reached, judge)
    for supports in truth.optimal():
        every = set(supports[0]).intersection(*supports)
        any_of_them = set().union(*supports)
        inside = every >= set(certificate.proved_in.tolist())
        outside = not any_of_them & set(certificate.proved_out.tolist())
        judge.need(inside, "proved_in", f"{certificate.proved_in} but {supports} are optimal")
        judge.need(outside, "proved_out", f"{certificate.proved_out} but {supports} are optimal")
