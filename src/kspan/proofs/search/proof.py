"""A certificate in the making: the best point, the best bound, and all that goes with them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.linalg.rounding import IMPROVEMENT
from kspan.problem import Candidate, Choice, StiefelProblem
from kspan.progress import Monitor, Status, relative_gap
from kspan.proofs.check.certificate import OPTIMAL_GAP, Certificate
from kspan.proofs.check.claims import CertificateError, Problem, Witness
from kspan.proofs.check.known import KnownMatrix
from kspan.proofs.check.telling import error_of
from kspan.proofs.check.witnesses import PathWitness, SplitPathWitness, TraceWitness

# problem, scores of all features, which of them may be chosen, monitor -> a support; or loadings
# for scores, and to loadings, where each component has features of its own
Heuristic = Callable[[Any, FloatArray, Choice, Monitor], Any]


@dataclass
class Proof:
    """What the steps of a proof add to.

    Parameters
    ----------
    problem, best : what is proved, about which point
    monitor : reports and early stops
    heuristic : asked for better points
    """

    problem: Problem
    best: Candidate
    monitor: Monitor
    heuristic: Heuristic | None = None
    upper: float = np.inf  # in the units of the problem
    witness: Witness = field(default_factory=TraceWitness)
    path: list[PathWitness | SplitPathWitness] = field(default_factory=list)
    n_eigensolves: int = 0
    n_nodes: int = 0
    history: list[list[float]] = field(default_factory=list)
    seconds_before: float = 0.0  # spent by the search that a checkpoint holds
    hurried: bool = False  # whether a part was cut short for want of time
    ceiling: float = np.inf  # a bound that holds anyway, for reports
    _lower: tuple[Candidate, float] | None = None  # what was computed for which point

    @cached_property
    def known(self) -> KnownMatrix:
        """A on all features, formed once for all steps that need it."""
        return KnownMatrix.of(self.problem, np.arange(self.problem.n_features))

    @property
    def lower(self) -> float:
        """What the best point explains, rounded downwards."""
        if self._lower is None or self._lower[0] is not self.best:
            self._lower = self.best, self.problem.claimed_value(self.support, self.best.weights)
        return self._lower[1]

    @property
    def support(self) -> Index:
        """Where the best point is."""
        return self.best.support

    def offer(self, upper: float, witness: Witness) -> None:
        """Keep a bound if it is better.

        One that is below what was reached is false: by the bad luck of a random net, or by a fault
        of kspan, which must not be passed over.
        """
        if upper < self.lower:
            if witness.confidence < 1:
                return
            raise CertificateError(
                f"The bound {upper!r} ({witness.method}) is below {self.lower!r}, which was "
                "reached: this is a bug of kspan, please report it."
            )
        if upper < self.upper:
            self.upper, self.witness = upper, witness

    def consider(self, support: Index) -> None:
        """Take the best point on a support if it is better."""
        assert not isinstance(self.problem, StiefelProblem)  # a support says too little there
        found = self.problem.refit(np.sort(support))
        if found.objective > self.best.objective * (1 + IMPROVEMENT):
            self.best = found

    def improve(self, scores: FloatArray) -> None:
        """Ask the heuristic for a better support, led by a relaxed selection."""
        if self.heuristic is None or self.monitor.out_of_time():
            return
        inner = self.monitor.inner(quiet=True)
        self.consider(self.heuristic(self.problem, scores, self.problem.choice, inner))

    def take_counts(self, other: "Proof") -> None:
        """Count what another proof did as work on this one."""
        self.n_eigensolves += other.n_eigensolves
        self.n_nodes += other.n_nodes
        self.hurried = self.hurried or other.hurried
        self.history += [
            [seconds, max(lower, self.history[-1][1]), min(upper, self.history[-1][2])]
            for seconds, lower, upper in other.history
        ]

    def report(self, n_features_left: int | None = None) -> bool:
        """Tell both bounds. Returns True when the proof must stop now."""
        upper = min(self.upper, self.ceiling)
        return self.monitor.report(self.lower, upper=upper, n_features_left=n_features_left)

    def note(self) -> None:
        """Add a line to the history."""
        self.history.append([self.seconds_before + self.monitor.seconds, self.lower, self.upper])

    def certificate(self, level: str) -> Certificate:
        """Put the certificate together."""
        problem = self.problem
        error, noise = error_of(problem, self.lower)
        lower, upper = max(self.lower - noise, 0.0), self.upper + noise
        status = self.monitor.stopped or (Status.TIME_LIMIT if self.hurried else Status.BOUNDED)
        if relative_gap(lower, upper) <= OPTIMAL_GAP:
            status = Status.OPTIMAL
        proved_in, proved_out = self.witness.settled(lower - noise)
        self.note()
        return Certificate(
            lower=lower, upper=upper, status=status, level=level, support=self.support,
            proved_in=proved_in, proved_out=proved_out, n_components=problem.n_components,
            choice=problem.choice, witness=self.witness, path=self.path,
            n_eigensolves=self.n_eigensolves, n_nodes=self.n_nodes, seconds=self.history[-1][0],
            history=np.array(self.history, dtype=np.float64), problem=problem.kind,
            weights=self.best.weights, data_error=error,
            patterns=getattr(problem, "patterns", None), ridge=getattr(problem, "ridge", None),
        )  # fmt: skip
