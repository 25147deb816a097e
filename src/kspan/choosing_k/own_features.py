r"""The path of components with features of their own: k is the number of features in each.

Every k of a thin grid is solved as an estimator would solve it, with its proof right after
(`solve_with_proof`). Orthonormal components start from those of the k before.

*One problem for all components* (orthonormal ones under counts, or a single component). What is
feasible with k features in each is so with more. So the objective never falls: where a solve falls
short of the k before, the components of that k are kept. And a bound at k holds for all fewer.

*Components one after the other.* Each solves its problem in what those before it left, which is
another matrix at every k. Nothing of the above holds for their sum, and no bound on it is claimed:
only the certificates of single components.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.choosing_k.band import checked, free_bounds, least_of_more
from kspan.choosing_k.result import JOINT, ComponentPath
from kspan.covariance import Covariance
from kspan.linalg.selection import top_k
from kspan.problem import (
    Candidate,
    ElementSparseProblem,
    NonnegativeProblem,
    Patterns,
    StiefelProblem,
    adjusted_variances,
    explained_at_least,
    shares_along,
)
from kspan.progress import Monitor, Status, worst
from kspan.proofs import Certificate
from kspan.proofs.check.claims import provable
from kspan.proofs.search.prover import ProofOptions
from kspan.solvers.method import AnyMethod
from kspan.solvers.one_by_one import OneByOneMethod
from kspan.solvers.registry import as_method
from kspan.solving import require_orthonormal, run_method, solve_with_proof

KINDS: dict[str, type] = {
    JOINT: StiefelProblem,
    "separate": ElementSparseProblem,
    "nonnegative": NonnegativeProblem,
}

# Of "auto" along a path of orthonormal components, as the k before is a better start than chance.
# Without kicks and from 5 points, single k fall up to 1.5% short of a fit at that k. With these
# none does on wine, pitprops and breast cancer: two and three components, k up to 15.
QUICK = {"n_restarts": 0, "n_kicks": 10, "n_improved": 12}


@dataclass(frozen=True)
class OwnFeatures:
    """Problems with at most k features in each component, which differ in k only.

    Parameters
    ----------
    covariance : Covariance
    n_components : int
    estimator : one of `KINDS`
    disjoint : whether no two (orthonormal) components share a feature
    """

    covariance: Covariance
    n_components: int
    estimator: str
    disjoint: bool = False

    @property
    def kind(self) -> type:
        """The kind of the problems."""
        return KINDS[self.estimator]

    @property
    def is_one_problem(self) -> bool:
        """Whether one proof is about all components."""
        return self.estimator == JOINT or self.n_components == 1

    def at(self, k: int) -> Any:
        """Return the problem with k features in each component."""
        A, m = self.covariance, self.n_components
        if self.estimator != JOINT:
            return self.kind(A, m, k)
        patterns = Patterns.of(A.n_features, m, k, disjoint=self.disjoint)
        return StiefelProblem(A, m, patterns=patterns)

    def require_feasible(self, k: int, point: Candidate) -> None:
        """Raise `ValueError` unless a point has at most k features in each component."""
        used = point.weights != 0
        if used.shape != (point.support.size, self.n_components):
            raise ValueError("loadings: not one for each feature and component")
        counts = used.sum(axis=0)
        if not ((counts >= 1) & (counts <= k)).all():
            raise ValueError(f"loadings: a component has none, or more than {k} features")
        if self.disjoint and (used.sum(axis=1) > 1).any():
            raise ValueError("loadings: two components share a feature")
        if self.kind is NonnegativeProblem and not (point.weights >= 0).all():
            raise ValueError("loadings: negative")

    def at_least(self, k: int, point: Candidate) -> float:
        """Return what a point reaches at k, rounded downwards; of one problem for all."""
        self.require_feasible(k, point)
        if self.estimator == JOINT:
            reached: float = self.at(k).claimed_value(point.support, point.weights)
            return reached
        return explained_at_least(self.covariance, point.support, point.weights, 1)

    def point(self, loadings: FloatArray) -> Candidate:
        """Return (d, m) loadings as a point, with what each component counts for."""
        support = np.flatnonzero(loadings.any(axis=1))
        W = loadings[support]
        gram = W.T @ self.covariance.matmat(W, support)[support]
        if self.is_one_problem:
            return Candidate(support, W, np.maximum(np.diagonal(gram), 0.0))
        return Candidate(support, W, adjusted_variances(gram))

    def upper_band(
        self, ks: Sequence[int], proved_at: Sequence[int], certificates: Sequence[Certificate]
    ) -> FloatArray:
        """Return what no components of at most k features each can exceed, for every k.

        NaN where components are found one after the other: nothing is proved about their sum.

        Parameters
        ----------
        ks : the numbers of features, ascending
        proved_at, certificates : certificates, and the k of each
        """
        if not self.is_one_problem:
            return np.full(len(ks), np.nan)
        upper, numbers = free_bounds([provable(self.at(k)) for k in ks]), np.asarray(ks)
        for k, certificate in zip(proved_at, certificates, strict=True):
            reach = numbers <= k
            upper[reach] = np.minimum(upper[reach], certificate.upper)
        return least_of_more(upper)


def own_method(estimator: str, solver: str | AnyMethod) -> AnyMethod:
    """Return the method that is run along the path."""
    kind = KINDS[estimator]
    options = QUICK if kind is StiefelProblem and solver == "auto" else {}
    method = as_method(kind, solver, options)
    if kind is StiefelProblem:
        require_orthonormal(method)
    return method


@dataclass
class OwnWalk:
    """Solves and proves one k after the other.

    Parameters
    ----------
    problems : OwnFeatures
    method : AnyMethod
    level : of the proofs, or None
    rng, monitor : see `kspan.solvers.method.Method.run`
    """

    problems: OwnFeatures
    method: AnyMethod
    level: str | None
    rng: np.random.Generator
    monitor: Monitor
    best: dict[int, Candidate] = field(default_factory=dict)
    proofs: dict[int, list[Certificate]] = field(default_factory=dict)
    statuses: list[Status] = field(default_factory=list)

    def run(self, ks: Sequence[int], prove_at: Sequence[int]) -> None:
        """Walk from the smallest k to the largest, as far as the monitor allows: one at least."""
        with self.monitor.interruptible():
            self._walk(ks, prove_at)
        if not self.best:
            self.best[ks[0]], self.proofs[ks[0]] = self._single_features(), []

    def _walk(self, ks: Sequence[int], prove_at: Sequence[int]) -> None:
        seed = int(self.rng.integers(2**31))
        for place, k in enumerate(ks):
            if self.best and self.monitor.out_of_time():
                break
            part = self.monitor.inner(quiet=True, share=1 / (len(ks) - place))
            self._solve(k, part, np.random.default_rng(seed), prove=k in prove_at)
            self.monitor.solver = f"path k={k}"
            if self.monitor.report(self.best[k].objective):
                break

    def _solve(self, k: int, part: Monitor, rng: np.random.Generator, *, prove: bool) -> None:
        problem, method = self.problems.at(k), self._warmed()
        found: list[Certificate] = []
        if prove and self.level is not None:
            solution, found = solve_with_proof(
                problem, method, self.level, part, rng, ProofOptions()
            )
        else:
            solution = run_method(problem, method.searching(), part, rng)
        point = self.problems.point(solution.loadings)
        if self.problems.is_one_problem and self.best:
            before = self.best[max(self.best)]
            point = max(point, before, key=lambda candidate: candidate.objective)
        self.proofs[k], self.best[k] = found, point
        self.statuses += [solution.status, *(proof.status for proof in found)]

    def _warmed(self) -> AnyMethod:
        """Return the method with what is known as its start, if it can take one."""
        init = getattr(self.method, "init", None)
        if not (self.best and isinstance(init, str) and init == "auto"):
            return self.method
        known = self.best[max(self.best)].loadings(self.problems.covariance.n_features)
        warmed: AnyMethod = replace(self.method, init=known)  # type: ignore[call-arg]
        return warmed

    def _single_features(self) -> Candidate:
        """Return components of one feature each: feasible whatever is asked."""
        A, m = self.problems.covariance, self.problems.n_components
        loadings = np.zeros((A.n_features, m))
        loadings[top_k(A.diagonal(), m), range(m)] = 1.0
        return self.problems.point(loadings)

    @property
    def status(self) -> Status:
        """How it ended: stopped early if any part was."""
        early = [status for status in self.statuses if status.stopped_early]
        if self.method.proof_level is not None:
            early += [proof.status for found in self.proofs.values() for proof in found]
        return self.monitor.stopped or worst([Status.COMPLETED, *early])


def component_path(walk: OwnWalk, names: list[str] | None) -> ComponentPath:
    """Put the path together, with the band that holds the optima where there is one."""
    problems, best = walk.problems, walk.best
    A, m, done = problems.covariance, problems.n_components, sorted(best)
    objective = np.array([best[k].objective for k in done])
    proved_at = [k for k in done for _ in walk.proofs[k]]
    certificates = [proof for k in done for proof in walk.proofs[k]]
    upper = problems.upper_band(done, proved_at, certificates)
    if problems.is_one_problem:
        upper = checked(objective, upper, lambda i: problems.at_least(done[i], best[done[i]]))
    method = walk.method
    supports = [best[k].support for k in done]
    represented, panel = shares_along(A, supports, [best[k].weights for k in done])
    return ComponentPath(
        k=np.array(done, dtype=np.intp), objective=objective, upper=upper,
        supports=supports, n_components=m, n_features=A.n_features,
        full=float(A.leading(m).values.sum()), total_variance=A.trace(), feature_names=names,
        solver=method.name, status=walk.status.value, certificates=certificates,
        n_passes=A.n_passes, seconds=walk.monitor.seconds,
        loadings=[_signed(best[k].weights) for k in done], estimator=problems.estimator,
        disjoint=problems.disjoint,
        deflation=method.deflation if isinstance(method, OneByOneMethod) else None,
        proved_at=np.array(proved_at, dtype=np.intp), represented=represented, panel=panel,
    )  # fmt: skip


def _signed(weights: FloatArray) -> FloatArray:
    """Return loadings of which the largest is positive in every component, as of estimators."""
    largest: Index = np.abs(weights).argmax(axis=0)
    turned: FloatArray = weights * np.where(weights[largest, range(weights.shape[1])] < 0, -1, 1)
    return turned + 0.0
