r"""Bounds when A is too large to be relaxed as a whole: in the space of samples, and by a split.

**The sample-space bound**, for few samples: an ascent that always carries a certificate. For any
Λ ⪰ 0, τ > 0, vectors p_i and numbers s_i ≥ 0 with
:math:`x_ix_i' ⪯ p_ip_i' + s_i(Λ + τI)`,

.. math:: OPT(k) \le KyFan_m\big(\textstyle\sum_i p_ip_i' + σΛ\big) + στ, \qquad
          σ = \text{sum of the k largest } s_i

(proof in `kspan.proofs.check.bounds.sample_bound`). At the solution all s_i ≤ 1, so σ = k. For
m = 1 a full matrix Λ is much better than a multiple of the identity: it says that every direction,
not their average, is served by k features. For m > 1 it gains nothing and is left out.

Saddle point. Write L = Λ + τI. For a density Y (0 ⪯ Y ⪯ I, tr Y = m) let
:math:`w_i = Y^{1/2}x_i`, :math:`D = Y^{1/2}LY^{1/2}`. The p_i of smallest p_i'Yp_i has
:math:`Y^{1/2}p_ip_i'Y^{1/2} = (w_iw_i' - D)_+ = μ_iv_iv_i'` where μ_i solves
:math:`w_i'(D + μ)^{-1}w_i = 1` and v_i ∝ (D + μ_i)^{-1}w_i; features with w_i'D^{-1}w_i ≤ 1 have
p_i = 0. The Lagrangian k⟨L, Y⟩ + Σμ_i (m = 1) is concave in Y and convex in L; both conditions
are fixed points,

    Y = Y^{1/2} G Y^{1/2} / θ  (eigenvalues capped at 1),   G = Σ p_ip_i' + kΛ
    D = D^{1/2} (Σ v_iv_i' / k) D^{1/2}

and iterating them (the second with a power below one, as it overshoots) converges in some
dozens of steps. Cost: O(dr²) a step for r samples; nothing larger than r×d is formed.

**The split bound**: the relaxation on the features that matter, their variance for the others. The
features are split into T (relaxed, `cone_relaxation.py`) and R (each one costs its variance).
Never forms a matrix of all features: it needs A on T and the diagonal.
"""

from dataclasses import dataclass, replace

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.linalg.selection import placed, places_in
from kspan.problem import Choice
from kspan.proofs.check.claims import Problem
from kspan.proofs.check.known import KnownFactor, KnownMatrix, KnownVariances
from kspan.proofs.check.witnesses import SampleWitness, SplitWitness
from kspan.proofs.search.cone_relaxation import ConeRelaxation, ConeSnapshot
from kspan.proofs.search.proof import Proof
from kspan.proofs.search.tree_state import Budgets

POWER = 0.25  # damping of the metric's fixed point; less when the bound oscillates
MIX = 3e-3  # share of the identity in the density, falling
FLOOR = 1e-6  # τ as a share of the mean eigenvalue of the metric: keeps it well conditioned
HEAD_START = 8  # steps of the metric before the density moves
ROOM = 1e-10  # share of the bound that another order of additions may change, in its metric
PATIENCE, MIN_GAIN = 20, 1e-5  # stop when this many steps gained less than this share


def prove_by_samples(proof: Proof, budgets: Budgets) -> None:
    """Lower the bound until its budget is spent, little is gained, or told to stop."""
    problem = proof.problem
    known = KnownFactor.of(problem)
    search = SampleSearch(known, problem.n_components, problem.choice, proof.support)
    last, uppers = np.inf, [np.inf]
    for iteration in range(1, budgets.sample_iter + 1):
        if not search.has_options or proof.monitor.out_of_time():
            break
        try:
            active, witness = search.answer()
            upper = witness.bound(known, problem) * known.scale
        except (FloatingPointError, np.linalg.LinAlgError):
            break  # what was found before holds
        proof.n_eigensolves += 3
        proof.offer(upper * (1 + ROOM), witness)
        uppers.append(min(upper, uppers[-1]))
        search.damp(oscillates=upper > last)
        last = upper
        if proof.report(n_features_left=active) or uppers[-1] <= proof.lower:
            break
        waited = iteration > 2 * PATIENCE
        if waited and uppers[-PATIENCE - 1] - uppers[-1] < MIN_GAIN * uppers[-1]:
            break
        try:
            search.advance(iteration)
        except np.linalg.LinAlgError:
            break
    proof.note()


@dataclass(frozen=True)
class _Frame:
    """The metric seen from the density: ``D = Y^{1/2}LY^{1/2}`` in its eigenbasis R."""

    turned: FloatArray  # R'Y^{1/2}
    back: FloatArray  # Y^{-1/2}R
    R: FloatArray
    shift: FloatArray  # the eigenvalues of D

    @classmethod
    def of(cls, Y: FloatArray, metric: FloatArray) -> "_Frame":
        values, Q = np.linalg.eigh(Y)
        root = np.sqrt(np.maximum(values, 1e-14 * values[-1]))
        half, inverse_half = (Q * root) @ Q.T, (Q / root) @ Q.T
        D = half @ metric @ half
        shift, R = np.linalg.eigh(0.5 * (D + D.T))
        shift = np.maximum(shift, 1e-15 * shift[-1])
        return cls(R.T @ half, inverse_half @ R, R, shift)


class SampleSearch:
    """The two fixed points: `answer` gives the vectors p_i for Y and L, `advance` moves both.

    Parameters
    ----------
    known : X on all features
    m, choice : components; which features may be chosen
    support : only gives the starting point
    """

    def __init__(self, known: KnownFactor, m: int, choice: Choice, support: Index):
        X, self.scale, self.m = known.X, known.scale, m
        self.r, self.n_open = X.shape[0], choice.size - choice.include.size
        self.names, self.forced = choice.free, choice.include
        self.Z, self.fixed = X[:, self.names], X[:, self.forced]
        self.base = self.fixed @ self.fixed.T
        self.shared = m > 1  # a multiple of the identity only
        self.power = POWER
        variance = np.einsum("ij,ij->j", self.Z, self.Z)
        self.has_options = self.n_open > 0 and bool(variance.any())
        if self.has_options:
            self._start(X[:, support], variance)

    def _start(self, chosen: FloatArray, variance: FloatArray) -> None:
        r, m, identity = self.r, self.m, np.eye(self.r)
        guess = chosen @ chosen.T
        total = float(np.trace(guess))
        Y = m / r * identity if total == 0 else m * (0.3 / r * identity + 0.7 / total * guess)
        values, Q = np.linalg.eigh(Y)
        self.Y = (Q * _capped(np.maximum(values, 1e-12), m)) @ Q.T if r > m else identity
        n_open = min(self.n_open, variance.size)
        self.tau = float(np.partition(variance, -n_open)[-n_open]) / 3 or FLOOR
        self.metric = self.tau * identity  # Λ + τI

    def answer(self) -> tuple[int, SampleWitness]:
        """Return the best vectors for the present density and metric, and how many are active."""
        self.frame = frame = _Frame.of(self.Y, self.metric)
        C = frame.turned @ self.Z
        active = np.flatnonzero((C * C / frame.shift[:, None]).sum(axis=0) > 1.0)
        C = C[:, active].T
        self.mu = mu = _secular_roots(C * C, frame.shift)
        V = C / (frame.shift + mu[:, None])
        V /= np.sqrt(np.einsum("ij,ij->i", V, V))[:, None]
        self.V = V
        vectors = frame.back @ (V * np.sqrt(mu)[:, None]).T
        if self.shared:
            factor, floor = np.zeros((self.r, 0)), self.tau
        else:
            floor = 0.5 * FLOOR * float(np.trace(self.metric)) / self.r
            factor = np.linalg.cholesky(self.metric - floor * np.eye(self.r))
        names = np.concatenate([self.forced, self.names[active]])
        all_vectors = np.hstack([self.fixed, vectors])
        return active.size, SampleWitness(self.scale, names, all_vectors, factor, floor)

    def damp(self, *, oscillates: bool) -> None:
        """Move the metric less far when the bound rose, and further again when it fell."""
        self.power = max(0.7 * self.power, 0.02) if oscillates else min(1.03 * self.power, POWER)

    def advance(self, iteration: int) -> None:
        """Move the metric and, after some steps, the density to the present vectors."""
        G = self._move_metric()
        if iteration <= HEAD_START or self.r <= self.m:
            return
        values, Q = np.linalg.eigh(G)
        if not values[-1] > 0:
            return  # no feature is active: the density has nowhere to go
        mix = max(MIX / (1 + 0.1 * iteration), 1e-6)
        capped = _capped(np.maximum(values, 1e-15 * values[-1]), self.m)
        Q = self.frame.R @ Q
        self.Y = (Q * ((1 - mix) * capped + mix * self.m / self.r)) @ Q.T

    def _move_metric(self) -> FloatArray:
        """Return the gradient in Y, in the frame that the metric is moved away from."""
        frame, V, r, identity = self.frame, self.V, self.r, np.eye(self.r)
        G: FloatArray = (V.T * self.mu) @ V + frame.turned @ self.base @ frame.turned.T
        if self.shared:
            # dμ_i/dτ = -v_i'Yv_i, in the eigenbasis of D = τY
            count = float(((V * V) @ (frame.shift / self.tau)).sum()) / self.n_open
            self.tau *= float(np.clip(count, 0.05, 20.0)) ** self.power
            self.metric = self.tau * identity
            return G
        served, E = np.linalg.eigh(V.T @ V / self.n_open)
        growth = (E * np.clip(served, 0.05, 20.0) ** self.power) @ E.T
        root = np.sqrt(frame.shift)
        metric = frame.back @ (root[:, None] * growth * root) @ frame.back.T
        metric = 0.5 * (metric + metric.T)
        self.metric = metric + FLOOR * float(np.trace(metric)) / r * identity
        return G + self.n_open * np.diag(frame.shift)


def _secular_roots(squares: FloatArray, shift: FloatArray, max_iter: int = 60) -> FloatArray:
    """Return μ ≥ 0 with ``Σ_j squares_ij / (shift_j + μ_i) = 1`` for every row i.

    Newton on 1/h(μ) = 1: 1/h is concave and rising, so the iterates climb to the root.
    """
    mu = np.zeros(squares.shape[0])
    for _ in range(max_iter):
        inverse = 1.0 / (shift + mu[:, None])
        terms = squares * inverse
        h = terms.sum(axis=1)
        step = (h - 1.0) * h / np.einsum("ij,ij->i", terms, inverse)
        mu = np.maximum(mu + step, 0.0)
        if np.all(np.abs(step) <= 1e-12 * mu):
            break
    return mu


def _capped(values: FloatArray, m: int) -> FloatArray:
    """Return ``min(values / θ, 1)`` with θ such that the sum is m."""
    order = np.sort(values)[::-1]
    for n_capped in range(m):
        theta = float(order[n_capped:].sum()) / (m - n_capped)
        if order[n_capped] <= theta:
            return np.minimum(values / theta, 1.0)
    return (values >= order[m - 1]).astype(float)


# T is small at first, with a few steps to see whether it will do: a step takes |T|³.
FIRST_INSIDE, FIRST_FACTOR, FIRST_ITER = 250, 4, 40

BOUND_EVERY = 20  # iterations between two evaluations of the bound
HOPELESS = 0.98  # of the bound so far, that the features outside reach by their variances


def prove_by_split(proof: Proof, budgets: Budgets) -> SplitWitness | None:
    """Lower the split bound until its budget is spent, it meets the value, or told to stop.

    Returns its best witness; None without any, as when features outside cost as much as any.
    """
    problem = proof.problem
    variances = problem.covariance.diagonal()
    first = max(FIRST_INSIDE, FIRST_FACTOR * problem.choice.size)
    large = 2 * first <= min(budgets.n_inside, problem.choice.features.size)
    sizes = [first] * large + [budgets.n_inside]
    best = None
    for size in sizes:
        inside = choose_inside(variances, size, proof.support, problem.choice)
        if not says_something(problem, inside, proof.upper):
            continue
        split = Split.of(problem, inside)
        relax = split.relaxation(problem, proof.support)
        if size < sizes[-1]:
            few = replace(budgets, split_iter=min(FIRST_ITER, budgets.split_iter))
            best = split.prove(proof, relax, few)
            if best is not None and split.is_too_small(best, problem):
                continue
            # Such steps are cheap enough for more of them.
            budgets = replace(budgets, split_patience=budgets.split_patience / 2)
        best = split.prove(proof, relax, budgets) or best
        proof.improve(placed(relax.z, inside, variances.size))
        break
    return best


@dataclass(frozen=True)
class Split:
    """What split bounds of problems that differ in k share: T, and what is known of A."""

    inside: Index
    known: KnownMatrix
    everywhere: KnownVariances

    @classmethod
    def of(cls, problem: Problem, inside: Index) -> "Split":
        """Form A on some features."""
        return cls(inside, KnownMatrix.of(problem, inside), KnownVariances.of(problem))

    def relaxation(
        self, problem: Problem, support: Index, start: ConeSnapshot | None = None
    ) -> ConeRelaxation:
        """Return the relaxation on T in which features of R may be bought for their variance.

        It begins where another one ended, or near a support in T.
        """
        choice, inside, scale = problem.choice.without_rules(), self.inside, self.known.scale
        outside = np.setdiff1d(choice.free, inside)
        rewards = problem.covariance.diagonal()[outside] / scale
        forced_outside = np.setdiff1d(choice.include, inside).size
        return ConeRelaxation(
            self.known.A, problem.n_components,
            choice.on(inside).resized(choice.size - forced_outside), rewards=rewards,
            nonnegative=problem.nonnegative, start=start,
            near=None if problem.nonnegative else places_in(support, inside),
        )  # fmt: skip

    def is_too_small(self, witness: SplitWitness, problem: Problem) -> bool:
        """Whether a bound is made of features outside too."""
        bound = witness.bound(self.known, self.everywhere, problem)
        best = problem.choice.without_rules().select(bound.scores)
        return not bool(np.isin(best, self.inside).all())

    def prove(self, proof: Proof, relax: ConeRelaxation, budgets: Budgets) -> SplitWitness | None:
        """Lower the bound of a proof by a relaxation; return the best witness, if there is one."""
        best, lowest = None, np.inf
        for iteration in range(1, budgets.split_iter + 1):
            relax.step()
            stop = proof.monitor.out_of_time() or iteration == budgets.split_iter
            if iteration % BOUND_EVERY and not stop:
                continue
            witness = SplitWitness(self.known.scale, self.inside, *relax.witness())
            try:
                bound = witness.bound(self.known, self.everywhere, proof.problem)
            except FloatingPointError:
                break
            value = bound.value * self.known.scale
            proof.n_eigensolves += 1
            gained, share = lowest - value, budgets.split_patience
            if value < lowest:
                best, lowest = witness, value
            proof.offer(value, witness)
            enough = lowest * (1 - budgets.split_enough) <= proof.lower
            if proof.report(n_features_left=self.inside.size) or enough:
                break
            if gained < share * (lowest - proof.lower):
                break
        proof.n_eigensolves += relax.n_eigensolves
        proof.note()
        return best


def says_something(problem: Problem, inside: Index, upper: float) -> bool:
    """Whether a split may bound a problem: not if features of R alone cost as much as is known."""
    outside = problem.choice.settled(removed=np.setdiff1d(inside, problem.choice.include))
    return outside.is_empty or outside.best_sum(problem.covariance.diagonal()) < HOPELESS * upper


def choose_inside(variances: FloatArray, size: int, support: Index, choice: Choice) -> Index:
    """Return T: the chosen and the forced features, and those of largest variance."""
    fixed = choice.without_rules().settled(fixed=support)
    return fixed.resized(max(size, fixed.include.size)).select(variances)
