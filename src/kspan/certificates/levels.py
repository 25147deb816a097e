"""From a problem and a support to a certificate, at one of three levels.

fast    closed forms, from what the fit computed
tight   the relaxation with screening and strengthening, up to `DENSE_LIMIT` features; beyond,
        the split bound and (wide data) the sample-space bound, whichever is better
exact   the same, then branch and bound until the gap is closed or a budget is spent

One nonnegative component goes the same way with P ≥ 0 in its relaxation. Bounds for loadings of
either sign hold for it too. Level "net" is the bound of its paper (`net.py`).
"""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kspan.arrays import FloatArray, Index, Mask
from kspan.certificates.bounds import (
    dual_bound,
    full_bound,
    low_rank_dual_bound,
    row_bound,
    trace_bound,
    unit_scale,
)
from kspan.certificates.branch_and_bound import (
    BranchAndBound,
    Heuristic,
    Keeper,
    start_search,
    value_of,
)
from kspan.certificates.certificate import OPTIMAL_GAP, Certificate, CertificateStatus
from kspan.certificates.cone_relaxation import ConeRelaxation
from kspan.certificates.matrices import DENSE_LIMIT, dense_matrix
from kspan.certificates.net import confidence, net_bound, net_witnesses
from kspan.certificates.nonnegative_search import NonnegativeBranchAndBound
from kspan.certificates.outcome import Outcome
from kspan.certificates.relaxation import Relaxation
from kspan.certificates.sample_space import solve_sample_space
from kspan.certificates.search import Options
from kspan.certificates.split import choose_inside, solve_split
from kspan.certificates.witness import (
    Cones,
    DualWitness,
    PathWitness,
    RowWitness,
    TraceWitness,
    Witness,
)
from kspan.linalg.threads import one_blas_thread
from kspan.problem import NonnegativeProblem, RowSparseProblem
from kspan.progress import Callback, Monitor, Status
from kspan.solution import Candidate

# Features that the split bound relaxes, and its iterations.
N_INSIDE, SPLIT_ITER = 500, 400

SAMPLE_ITER = 150

# Newton steps for each full-size witness of the path.
PATH_ITER = 14

# ADMM steps for each of them when the component is nonnegative.
PATH_CONE_ITER = 200

_STATUS = {
    Status.TIME_LIMIT: CertificateStatus.TIME_LIMIT,
    Status.INTERRUPTED: CertificateStatus.INTERRUPTED,
    Status.STOPPED: CertificateStatus.STOPPED,
}


@dataclass
class _Proof:
    """A certificate in the making; `upper` in the units of the problem."""

    best: Candidate
    upper: float = np.inf
    method: str = ""
    witness: Witness = field(default_factory=TraceWitness)
    path: list[PathWitness] = field(default_factory=list)
    proved_in: Index = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    proved_out: Index = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    n_eigensolves: int = 0
    n_nodes: int = 0
    confidence: float = 1.0
    history: list[list[float]] = field(default_factory=list)

    @property
    def lower(self) -> float:
        """What the best point explains."""
        return self.best.objective

    @property
    def support(self) -> Index:
        """Where the best point is."""
        return self.best.support

    def offer(self, upper: float, method: str, witness: Witness, confidence: float = 1.0) -> None:
        """Keep the bound if it is better."""
        if upper < self.upper:
            self.upper, self.method, self.witness = upper, method, witness
            self.confidence = confidence


class Certifier:
    """Makes one certificate. See `kspan.certify` for the parameters."""

    def __init__(
        self,
        problem: RowSparseProblem | NonnegativeProblem,
        best: Candidate,
        *,
        level: str,
        heuristic: Heuristic | None,
        time_limit: float | None,
        callback: Callback | None,
        checkpoint: str | os.PathLike[str] | None,
        checkpoint_every: float,
        k_grid: Sequence[int],
        options: Options | None = None,
        net: tuple[int | None, float | None] = (None, None),
    ):
        self.net = net  # rank and ε of level "net"
        self.problem, self.level, self.heuristic = problem, level, heuristic
        self.checkpoint, self.checkpoint_every = checkpoint, checkpoint_every
        self.k_grid, self.options = k_grid, options or Options(gap=OPTIMAL_GAP)
        self.m, self.k = problem.n_components, problem.n_features_to_select
        self.monitor = Monitor(level, callback, time_limit)
        self.forced: Mask = np.zeros(problem.n_features, dtype=bool)
        self.forced[problem.include] = True
        self.allowed = problem.allowed
        self.features = np.flatnonzero(self.allowed)
        self.n_samples = problem.covariance.n_samples or 0
        self.seconds_before = 0.0  # spent by the search that a checkpoint holds
        self.nonnegative = isinstance(problem, NonnegativeProblem)
        self.proof = _Proof(best)

    def run(self) -> Certificate:
        """Make the certificate."""
        self.by_trace()
        try:
            # Lymphoma m=1, k=10 takes 110 s with two threads and 50 s with one.
            with one_blas_thread():
                if not self.features.size:
                    pass  # nothing varies: the bound is zero
                elif self.level in ("fast", "net"):
                    self.closed_forms()
                    if self.level == "net":
                        self.nets()
                elif self.features.size <= DENSE_LIMIT:
                    if self.nonnegative:  # its iteration may do worse than closed forms
                        self.closed_forms()
                    self.search(max_nodes=1 if self.level == "tight" else self.options.max_nodes)
                else:
                    self.wide()
        except KeyboardInterrupt:
            self.monitor.stopped = Status.INTERRUPTED
        return self.finish()

    def note(self, *, report: bool = True) -> None:
        """Add a line to the history and, if wanted, report it."""
        proof = self.proof
        upper = max(proof.upper, proof.lower)
        proof.history.append([self.monitor.seconds, proof.lower, upper])
        if report:
            self.monitor.report(proof.lower, upper=upper)

    # --- fast

    def by_trace(self) -> None:
        """The k largest variances: always there, and where every other bound starts."""
        variances = self.problem.covariance.diagonal()[self.allowed]
        bound = trace_bound(variances, self.forced[self.allowed], self.k, self.n_samples)
        self.proof.offer(bound.value, "trace", TraceWitness())
        self.note(report=False)

    def closed_forms(self) -> None:
        """Row sums, and B = Σ(λ_i - σ)₊u_iu_i' with the best σ.

        σ = 0 is Theorem 5.1's bound, σ = λ₁ the sum of the leading eigenvalues. Ritz values only
        suggest σ; the Ky Fan sum of A - B is then computed from scratch.
        """
        covariance = self.problem.covariance
        # As in `verify`: small matrices are formed, of large ones only wide data has a spectrum.
        small = self.features.size <= DENSE_LIMIT
        X = None if small else covariance.sample_factor()
        if not small and X is None:
            self.note()
            return
        forced = self.forced[self.features]
        scale = unit_scale(float(covariance.diagonal().max()))
        pairs = covariance.leading(min(2 * self.m, covariance.n_features))
        factor = self._shifted_factor(pairs.values / scale, pairs.vectors)[self.features]
        if X is None:
            A = covariance.submatrix(self.features) / scale
            A = 0.5 * (A + A.T)
            by_rows = row_bound(A, self.m, self.k, self.n_samples)
            self.proof.offer(by_rows * scale, "row sums", RowWitness())
            bound = dual_bound(A, factor, self.m, self.k, forced, n_samples=self.n_samples)
        else:
            X = X[:, self.features] / np.sqrt(scale)
            bound = low_rank_dual_bound(X, factor, self.m, self.k, forced)
        witness = DualWitness(scale, self.features, factor)
        self.proof.offer(bound.value * scale, "shifted eigenvalues", witness)
        self.proof.n_eigensolves += 1
        self.note()

    def _shifted_factor(self, values: FloatArray, vectors: FloatArray) -> FloatArray:
        """Factor of Σ_{i≤m}(λ_i - σ)₊u_iu_i', for the σ that looks best."""
        m = self.m
        values = np.maximum(values, 0.0)
        leading, rest = values[:m], values[m:]
        squares = vectors[:, :m] ** 2
        best, best_shift = np.inf, np.zeros(m)
        for sigma in (*np.linspace(0.0, leading[-1], 13), leading[0]):
            shift = np.maximum(leading - sigma, 0.0)
            left = np.sort(np.concatenate([leading - shift, rest]))[::-1][:m].sum()
            scores = np.sort(squares @ shift)[::-1][: self.k].sum()
            if left + scores < best:
                best, best_shift = left + scores, shift
        used = best_shift > 0
        return vectors[:, :m][:, used] * np.sqrt(best_shift[used])

    def nets(self) -> None:
        """The bound of the spannogram's paper, the best of several ranks."""
        assert isinstance(self.problem, NonnegativeProblem)
        scale = unit_scale(float(self.problem.covariance.diagonal().max()))
        for witness in net_witnesses(self.problem, scale, *self.net):
            try:
                bound = net_bound(self.problem, witness)
            except FloatingPointError:
                break
            self.proof.n_eigensolves += 1
            self.proof.offer(bound.value * scale, "net", witness, confidence(witness))
            self.note()
            if self.monitor.out_of_time():
                break

    # --- tight and exact, as long as A fits

    def search(self, max_nodes: int) -> None:
        """Relaxation, screening, strengthening; more nodes than one are branch and bound."""
        every = np.arange(self.problem.n_features)
        A, scale = dense_matrix(self.problem, every)
        keeper = None
        found = None
        if self.checkpoint is not None:
            keeper = Keeper(self.checkpoint, self._fingerprint(A, scale), self.checkpoint_every)
            found = keeper.load()
        proof = self.proof
        lower = (
            proof.lower / scale if self.nonnegative else value_of(A, np.sort(proof.support), self.m)
        )
        search = start_search(
            A, scale, self.m, self.k, self.forced, self.features, proof.support, lower
        )
        if found is not None:
            if search.lower > found.lower:  # the caller knows better by now
                found.support, found.lower = search.support, search.lower
            search = found
            proof.history.clear()  # the first line of the resumed history is the first of all
        earlier = search.seconds
        options = replace(self.options, max_nodes=max_nodes)
        kind = NonnegativeBranchAndBound if self.nonnegative else BranchAndBound
        solver = kind(
            search, A, self.m, self.k, n_samples=self.n_samples, heuristic=self.heuristic,
            options=options, monitor=self.monitor, keeper=keeper,
        )  # fmt: skip
        solver.run()
        self.seconds_before = earlier
        self.consider(search.support)
        method = "relaxation" if search.n_nodes <= 1 else "branch and bound"
        proof.offer(search.upper * scale, method, search.proof())
        if proof.method == method:
            proof.proved_in, proof.proved_out = search.settled_at_root()
        proof.n_nodes, proof.n_eigensolves = search.n_nodes, search.n_eigensolves
        proof.history += search.history
        whole = [
            (witness.factor, witness.cones)
            for witness in search.witnesses
            if witness.factor is not None
            and witness.strengthening < 0
            and witness.features.size == self.features.size
        ]
        self.keep_path(A, scale, whole[-1] if whole else None)

    def consider(self, support: Index) -> None:
        """Take the best point on a support if it is better."""
        found = self.problem.refit(np.sort(support))
        if found.objective > self.proof.lower:
            self.proof.best = found

    def _fingerprint(self, A: FloatArray, scale: float) -> str:
        """Identify the problem and how it is searched, but for the budget of nodes."""
        sha = hashlib.sha256(np.ascontiguousarray(A).tobytes())
        include, exclude = (np.asarray(part).tolist() for part in
                            (self.problem.include, self.problem.exclude))  # fmt: skip
        options = replace(self.options, max_nodes=0)
        asked = (scale, self.m, self.k, include, exclude, options, self.nonnegative)
        sha.update(repr(asked).encode())
        return sha.hexdigest()

    def keep_path(
        self, A: FloatArray, scale: float, own: tuple[FloatArray, Cones | None] | None
    ) -> None:
        """Keep full-size witnesses: B = 0, the search's own at this k, and those of the grid."""
        A = A[np.ix_(self.features, self.features)]
        forced = self.forced[self.features]
        found: list[tuple[FloatArray, Cones | None]] = [(np.zeros((self.features.size, 0)), None)]
        wanted = {*self.k_grid}
        if own is None:  # settled without the relaxation
            wanted.add(self.k)
        else:
            found.append(own)
            wanted.discard(self.k)
        for k in sorted(wanted):
            n_free = k - int(forced.sum())
            if not (self.m < k and 0 < n_free < int((~forced).sum())):
                continue
            if self.monitor.out_of_time():
                break
            if self.nonnegative:
                cones = ConeRelaxation(A, 1, k, forced=forced, nonnegative=True)
                for _ in range(PATH_CONE_ITER):
                    cones.step()
                self.proof.n_eigensolves += cones.n_eigensolves
                found.append(cones.witness())
                continue
            relax = Relaxation(A, self.m, k, forced)
            relax.run(PATH_ITER, precision=1e-4 * max(relax.upper, 0.0))
            self.proof.n_eigensolves += relax.n_eigensolves
            factor = relax.witness()
            if factor is not None:
                found.append((factor, None))
        for factor, shared in found:
            try:
                bound = full_bound(A, factor, shared, self.m, self.k, forced, self.n_samples)
            except FloatingPointError:
                continue
            self.proof.path.append(
                PathWitness(scale, self.features, factor, bound.scores, bound.ky_fan, shared)
            )

    # --- tight, when A is too large

    def wide(self) -> None:
        """The sample-space bound when there are few samples; the split bound when m > 1 or not."""
        covariance = self.problem.covariance
        variances = covariance.diagonal()
        scale = unit_scale(float(variances.max()))
        proof = self.proof
        asked: dict[str, Any] = {
            "scale": scale,
            "forced": self.forced,
            "allowed": self.allowed,
            "lower": proof.lower / scale,
            "target": proof.lower / scale,
            "monitor": self.monitor,
        }
        X = covariance.sample_factor()
        if X is not None:
            outcome = Outcome()
            try:
                solve_sample_space(
                    X / np.sqrt(scale), self.m, self.k, support=proof.support,
                    max_iter=SAMPLE_ITER, outcome=outcome, **asked,
                )  # fmt: skip
            finally:  # whatever was reached before an interrupt counts
                self.take("sample space", outcome, scale)
        split = X is None or self.m > 1
        if split and not self.monitor.out_of_time():
            inside = choose_inside(variances, N_INSIDE, proof.support, self.forced, self.allowed)
            A = covariance.submatrix(inside) / scale
            outcome = Outcome()
            try:
                solve_split(
                    0.5 * (A + A.T), variances / scale, self.m, self.k, inside=inside,
                    n_samples=self.n_samples, nonnegative=self.nonnegative,
                    max_iter=SPLIT_ITER, outcome=outcome, **asked,
                )  # fmt: skip
            finally:
                self.take("split", outcome, scale)
            if self.heuristic is not None and outcome.scores is not None:
                self.improve(outcome.scores)

    def take(self, method: str, outcome: Outcome, scale: float) -> None:
        """Keep what a solver found."""
        self.proof.n_eigensolves += outcome.n_eigensolves
        if outcome.witness is not None:
            self.proof.offer(outcome.upper * scale, method, outcome.witness)
        self.note(report=False)

    def improve(self, scores: FloatArray) -> None:
        """Ask the heuristic for a better support, led by the relaxed selection."""
        assert self.heuristic is not None
        support = self.heuristic(scores, np.flatnonzero(self.forced), np.flatnonzero(~self.allowed))
        before = self.proof.lower
        self.consider(support)
        if self.proof.lower > before:
            self.note(report=False)

    # --- the end

    def finish(self) -> Certificate:
        """Put the certificate together."""
        proof, problem = self.proof, self.problem
        upper = max(proof.upper, proof.lower)
        gap = (upper - proof.lower) / upper if upper > 0 else 0.0
        status = CertificateStatus.BOUNDED
        if gap <= OPTIMAL_GAP:
            status = CertificateStatus.OPTIMAL
        elif self.monitor.stopped is not None:
            status = _STATUS[self.monitor.stopped]
        seconds = self.seconds_before + self.monitor.seconds
        history = [*proof.history, [seconds, proof.lower, upper]]
        return Certificate(
            lower=proof.lower, upper=upper, status=status, level=self.level,
            method=proof.method, support=proof.support, proved_in=proof.proved_in,
            proved_out=proof.proved_out, n_components=self.m, n_features_to_select=self.k,
            n_features=problem.n_features, include=np.asarray(problem.include, dtype=np.intp),
            exclude=np.asarray(problem.exclude, dtype=np.intp), witness=proof.witness,
            path=proof.path, n_eigensolves=proof.n_eigensolves, n_nodes=proof.n_nodes,
            seconds=seconds, history=np.array(history, dtype=np.float64),
            problem="nonnegative" if self.nonnegative else "row-sparse",
            weights=proof.best.weights, confidence=proof.confidence,
        )  # fmt: skip
