"""Routes of features that tell all others, with an oracle of their own."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from benchmarks.soundness.claims import (
    check_bounds,
    check_settled,
    check_upper_at,
    check_verified,
)
from benchmarks.soundness.oracle import TIED, Array, eigensystems
from benchmarks.soundness.problems import scratch_file
from benchmarks.soundness.routes import LEVELS, Route, Trial
from benchmarks.soundness.ruled_routes import Asked
from kspan import Certificate, FeatureSparsePCA, RepresentProblem, certify, solve, verify
from kspan.progress import Monitor, Status
from kspan.proofs import CertificateError
from kspan.proofs.search import telling_search
from kspan.proofs.search.prover import ProofOptions
from kspan.solving import prove_point

RIDGES = (1e-5, 1e-5, 1e-3, 0.1, 30.0, 0.0)

# Without a ridge: below this share a feature adds nothing that the oracle can tell from rounding.
DEPENDENT = np.longdouble("1e-8")


class TellingTruth:
    """What supports tell, in extended precision, by the definition.

    Parameters
    ----------
    A : (d, d) extended, symmetric
    ridge : float
    """

    def __init__(self, A: Array, ridge: float):
        size = np.diagonal(A).max()
        self.size = size if size > 0 else np.longdouble(1)
        self.A, self.d, self.ridge = A / self.size, len(A), np.longdouble(ridge)
        self.dropped = False
        self._values: dict[tuple[int, ...], Array] = {}

    def values(self, support: tuple[int, ...]) -> Array:
        """Return the eigenvalues of the pencil, falling."""
        if support not in self._values:
            S = [i for i in support if self.A[i, i] > 0]
            deviations = np.sqrt(np.diagonal(self.A)[S])
            C = self.A[S] / deviations[:, None]  # the whitened covariances, one row a feature
            K = C[:, S] / deviations
            K = (K + K.T) / 2 + self.ridge * np.eye(len(S), dtype=np.longdouble)
            rows = [row.copy() for row in C]
            K, kept = K.copy(), []
            for i in range(len(S)):  # Gram and Schmidt, in the metric of K
                pivot = K[i, i]
                if pivot <= DEPENDENT:
                    self.dropped = True
                    K[i:, i], K[i, i:] = 0, 0
                    continue
                row = rows[i] / np.sqrt(pivot)
                column = K[:, i] / np.sqrt(pivot)
                for j in range(i + 1, len(S)):
                    rows[j] = rows[j] - column[j] * row
                K = K - np.outer(column, column)
                kept.append(row)
            values = np.zeros(len(support), dtype=np.longdouble)
            if kept:
                F = np.array(kept)
                found = np.sort(eigensystems((F @ F.T)[None])[0][0])[::-1]
                values[: len(found)] = np.maximum(found, 0)
            self._values[support] = values * self.size
        return self._values[support]

    def table(self, asked: Asked, k: int) -> list[tuple[Array, Any]]:
        """Return all supports of up to k features that keep the rules, and what they tell."""
        sizes = range(asked.m, k + 1)
        every = (S for size in sizes for S in combinations(range(self.d), size))
        return [(np.array(S), self.values(S)[: asked.m].sum()) for S in every if asked.keeps(S, k)]


class TellingTrial:
    """A trial that asks which features tell the others."""

    def __init__(self, trial: Trial, *, ruled: bool = False):
        case, self.rng, self.judge = trial.case, trial.rng, trial.judge
        self.trial = trial
        self.ridge = float(self.rng.choice(RIDGES))
        plain = Asked(case.d, case.m, case.k, tuple(case.include), tuple(case.exclude))
        if self.rng.random() < 0.4:
            plain.m = plain.k
        self.asked = replace(Asked.draw(trial), m=plain.m) if ruled else plain
        self.truth = TellingTruth(trial.truth.A, self.ridge)
        self.exactly = not ruled
        self.table = self.supports(self.asked.k)
        self.problem: RepresentProblem | None = None
        if ruled:
            try:
                choice = self.asked.choice()
            except ValueError as refusal:
                self.judge.need(not self.table, "refused", f"there are supports: {refusal}")
                return
            if self.table:
                covariance = case.covariance()
                self.problem = RepresentProblem(covariance, plain.m, choice, ridge=self.ridge)
        else:
            self.problem = RepresentProblem(
                case.covariance(), plain.m, case.k, case.include, case.exclude, ridge=self.ridge
            )

    def supports(self, k: int) -> list[tuple[Array, Any]]:
        """Return feasible supports and what they tell."""
        found = self.truth.table(self.asked, k)
        return [row for row in found if len(row[0]) == k] if self.exactly else found

    def prove(self, level: str) -> Certificate | None:
        """Prove any support, or a found one; None where kspan says that it proves nothing."""
        problem, rng = self.problem, self.rng
        assert problem is not None
        try:
            if rng.random() < 0.3:
                solver = str(rng.choice(["forward", "auto"]))
                return certify(problem, solve(problem, solver, random_state=0), level)
            support = self.table[rng.integers(len(self.table))][0]
            point = problem.refit(np.array(support, dtype=np.intp))
            return prove_point(problem, point, level, Monitor(level), ProofOptions())
        except CertificateError as refusal:
            if "nothing is proved of a covariance" not in str(refusal):
                raise
            self.judge.refused += 1
            return None

    def check(self, certificate: Certificate | None) -> None:
        """Hold a certificate against the truth."""
        if certificate is None:
            return
        judge, m = self.judge, self.asked.m
        judge.certificates += 1
        optimum = max(value for _, value in self.table)
        # What dependent features tell is known from below: lower bounds are not judged then.
        error = optimum if self.truth.dropped else 0.0
        support = np.sort(certificate.support)
        reached = [value for other, value in self.table if np.array_equal(other, support)]
        judge.need(bool(reached), "support", f"support {support} is not feasible")
        judge.ordered("upper", optimum, certificate.upper, optimum)
        if reached and not self.truth.dropped:
            check_bounds(certificate, reached[0], optimum, judge)
        if not self.truth.dropped:
            best = [other for other, value in self.table if value >= optimum * (1 - TIED)]
            check_settled(certificate, best, judge)
        for size in range(m, certificate.choice.largest_size + 1):
            rows = self.supports(size)
            if rows and (certificate.witness.any_size or size == self.asked.k):
                check_upper_at(certificate, size, max(v for _, v in rows), judge)
        check_verified(certificate, self.problem, optimum, judge, above=optimum + error)


@contextmanager
def branching(few: int) -> Iterator[None]:
    """Let nodes be enumerated only when they have so few supports."""
    usual = telling_search.FEW_SUPPORTS
    telling_search.FEW_SUPPORTS = few
    try:
        yield
    finally:
        telling_search.FEW_SUPPORTS = usual


def telling_at(trial: Trial, level: str, *, ruled: bool = False, few: int = 5000) -> None:
    """Prove a support at a level."""
    telling = TellingTrial(trial, ruled=ruled)
    if telling.problem is not None and telling.table:
        with branching(few):
            telling.check(telling.prove(level))


def telling_saved(trial: Trial) -> None:
    """A certificate that was written to a file and read again."""
    telling = TellingTrial(trial)
    with branching(2):
        certificate = telling.prove("exact")
    if certificate is not None:
        path = scratch_file(".npz")
        certificate.save(path)
        telling.check(Certificate.load(path))


def telling_estimator(trial: Trial) -> None:
    """Fit, and check the certificate."""
    telling, case = TellingTrial(trial), trial.case
    if case.form in ("stream", "sketch"):
        return
    try:
        estimator = FeatureSparsePCA(
            telling.asked.m, case.k, criterion="represent", ridge=telling.ridge,
            include=list(case.include) or None, exclude=list(case.exclude) or None,
            solver=str(trial.rng.choice(["forward", "auto", "exact"])),
            certify=str(trial.rng.choice(LEVELS)), **trial.parameters(),
        ).fit(case.source())  # fmt: skip
    except CertificateError as refusal:
        if "nothing is proved of a covariance" not in str(refusal):
            raise
        trial.judge.refused += 1
        return
    telling.check(estimator.certificate_)


def forged_telling(trial: Trial) -> None:
    """Numbers and arrays of an honest certificate changed: refused, or true all the same."""
    from benchmarks.soundness.mutations import FORGERIES, changed, leaves, spoiled

    telling, rng = TellingTrial(trial), trial.rng
    with branching(2):
        honest = telling.prove(str(rng.choice(["tight", "exact"])))
    if honest is None:
        return
    optimum = max(value for _, value in telling.table)
    for _ in range(FORGERIES):
        trial.judge.forgeries += 1
        places = list(leaves(honest.witness))
        place, value = places[rng.integers(len(places))]
        forged = replace(
            honest, witness=changed(honest.witness, place, spoiled(rng, value)),
            upper=4 * honest.upper, status=Status.BOUNDED, digest="",
            proved_in=honest.proved_in[:0], proved_out=honest.proved_out[:0],
        )  # fmt: skip
        try:
            _, upper = verify(telling.problem, forged)
        except CertificateError:
            continue
        trial.judge.accepted += 1
        trial.judge.ordered("forged upper", optimum, upper, optimum)


TELLING: dict[str, Route] = {
    "represent fast": Route(partial(telling_at, level="fast"), 2, True),
    "represent tight": Route(partial(telling_at, level="tight"), 2, True),
    "represent exact": Route(partial(telling_at, level="exact"), 2, True),
    "represent branches": Route(partial(telling_at, level="exact", few=2), 2, True),
    "represent rules": Route(partial(telling_at, level="exact", ruled=True), 1, True),
    "represent rule branches": Route(
        partial(telling_at, level="exact", ruled=True, few=2), 0.5, True
    ),
    "represent saved": Route(telling_saved, 0.5, True),
    "represent estimator": Route(telling_estimator, 0.5, True),
    "forged represent": Route(forged_telling, 1, True),
}
