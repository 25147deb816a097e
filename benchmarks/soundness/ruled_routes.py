"""Routes of choices that keep rules: groups, limits, costs, features that do not go together."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.soundness.claims import (
    Judgement,
    check_bounds,
    check_settled,
    check_upper_at,
    check_verified,
    check_weights,
)
from benchmarks.soundness.oracle import TIED, Truth
from benchmarks.soundness.problems import scratch_file
from benchmarks.soundness.routes import BRANCH, LEVELS, RELAX, STRENGTHEN, WIDE, Route, Trial
from kspan import Certificate, FeatureSparsePCA, FitRecord, RowSparseProblem
from kspan.problem import RuledChoice
from kspan.progress import Monitor
from kspan.proofs.search.prover import ProofOptions
from kspan.proofs.search.tree_state import Budgets
from kspan.solving import prove_point


@dataclass
class Asked:
    """Rules as they are given, and as they are read."""

    d: int
    m: int
    k: int
    include: tuple[int, ...]
    exclude: tuple[int, ...]
    groups: list[str | None] | None = None
    together: bool = False
    n_groups: int | None = None
    max_per_group: int | None = None
    costs: list[float] | None = None
    budget: float | None = None
    conflicts: list[tuple[int, int]] | None = None

    @classmethod
    def draw(cls, trial: Trial) -> "Asked":
        """Draw some rules for a case."""
        case, rng = trial.case, trial.rng
        asked = cls(case.d, case.m, case.k, tuple(case.include), tuple(case.exclude))
        ways = rng.random(4) < (0.4, 0.3, 0.4, 0.4)
        if ways[0] or ways[1]:
            labels = rng.integers(0, max(2, case.d // 2), case.d)
            asked.groups = [None if label == 0 else str(label) for label in labels]
            asked.together = bool(ways[1])
            if ways[1]:
                asked.n_groups = int(rng.integers(1, 5)) if rng.random() < 0.5 else None
            else:
                asked.max_per_group = int(rng.integers(1, 3))
        if ways[2]:
            asked.costs = (rng.integers(0, 20, case.d) / 10 ** rng.integers(0, 3)).tolist()
            asked.budget = float(max(sum(asked.costs) * rng.uniform(0.2, 0.9), 1e-3))
        if ways[3]:
            pairs = [(i, j) for j in range(case.d) for i in range(j) if rng.random() < 0.3]
            asked.conflicts = pairs
        return asked

    def keeps(self, support: Any, k: int) -> bool:
        """Whether a support keeps the rules, word by word."""
        chosen = {int(j) for j in support}
        if not self.m <= len(chosen) <= k or not set(self.include) <= chosen:
            return False
        if chosen & set(self.exclude):
            return False
        if self.groups is not None:
            own: dict[Any, set[int]] = {}
            for j, label in enumerate(self.groups):
                own.setdefault(("alone", j) if label is None else label, set()).add(j)
            used = {label: chosen & members for label, members in own.items()}
            if self.together:
                if any(part and part != own[label] for label, part in used.items()):
                    return False
                if self.n_groups and sum(bool(part) for part in used.values()) > self.n_groups:
                    return False
            elif any(len(part) > (self.max_per_group or 0) for part in used.values()):
                return False
        # 0.1 + 0.2 is not above 0.3.
        most = np.inf if self.budget is None else self.budget * (1 + 1e-11)
        if self.costs is not None and sum(self.costs[j] for j in chosen) > most:
            return False
        return not any(i in chosen and j in chosen for i, j in self.conflicts or ())

    def choice(self) -> RuledChoice:
        """kspan's own."""
        pairs = np.array(self.conflicts or [], dtype=np.intp).reshape(-1, 2)
        return RuledChoice.of(
            self.d, self.k, self.include, self.exclude, least=self.m, groups=self.groups,
            together=self.together, n_groups=self.n_groups, max_per_group=self.max_per_group,
            costs=self.costs, budget=self.budget, conflicts=pairs,
        )  # fmt: skip


def table(asked: Asked, truth: Truth, k: int) -> list[tuple[Any, Any]]:
    """Return all supports that keep the rules, and what they explain."""
    found = []
    for size in range(asked.m, k + 1):
        supports, values = truth.supports(asked.m, size)
        rows = zip(supports, np.maximum(values, 0), strict=True)
        found += [(support, value) for support, value in rows if asked.keeps(support, k)]
    return found


class RuledTrial:
    """A trial with rules, kspan's problem of it, and the truth; none where there is no support."""

    def __init__(self, trial: Trial):
        self.trial, self.rng, self.judge = trial, trial.rng, trial.judge
        self.asked = Asked.draw(trial)
        self.table = table(self.asked, trial.truth, self.asked.k)
        self.problem: RowSparseProblem | None = None
        try:
            choice = self.asked.choice()
        except ValueError as refusal:
            self.judge.need(not self.table, "refused", f"there are supports: {refusal}")
            return
        self.judge.need(bool(self.table), "not refused", "there is no support")
        if self.table:
            self.problem = RowSparseProblem(trial.case.covariance(), self.asked.m, choice)

    def prove(self, level: str, budgets: Budgets) -> Certificate:
        """Prove any support at a level."""
        assert self.problem is not None
        support = self.table[self.rng.integers(len(self.table))][0]
        options = ProofOptions(budgets=budgets)
        point = self.problem.refit(np.array(support, dtype=np.intp))
        return prove_point(self.problem, point, level, Monitor(level), options)

    def check(self, certificate: Certificate) -> None:
        """Hold a certificate against the truth."""
        judge: Judgement = self.judge
        judge.certificates += 1
        optimum = max(value for _, value in self.table)
        support = np.sort(certificate.support)
        reached = [value for other, value in self.table if np.array_equal(other, support)]
        judge.need(bool(reached), "support", f"support {support} breaks a rule")
        if reached:
            check_bounds(certificate, reached[0], optimum, judge)
            check_weights(certificate, self.trial.truth, judge)
        best = [other for other, value in self.table if value >= optimum * (1 - TIED)]
        check_settled(certificate, best, judge)
        for size in range(self.asked.m, certificate.choice.largest_size + 1):
            smaller = table(self.asked, self.trial.truth, size)
            if smaller:
                most = max(value for _, value in smaller)
                check_upper_at(certificate, size, most, judge)
        check_verified(certificate, self.problem, optimum, judge)


def ruled_at(trial: Trial, level: str, budgets: Budgets) -> None:
    """Prove a support that keeps rules."""
    ruled = RuledTrial(trial)
    if ruled.problem is not None:
        ruled.check(ruled.prove(level, budgets))


def ruled_saved(trial: Trial) -> None:
    """A certificate that was written to a file and read again."""
    ruled = RuledTrial(trial)
    if ruled.problem is None:
        return
    certificate, path = ruled.prove("exact", BRANCH), scratch_file(".npz")
    certificate.save(path)
    ruled.check(Certificate.load(path))


def ruled_estimator(trial: Trial) -> None:
    """Fit, and check the certificate and the record."""
    case, rng = trial.case, trial.rng
    if case.form in ("stream", "sketch"):
        return
    ruled = RuledTrial(trial)
    if ruled.problem is None or ruled.asked.conflicts:  # those are correlations for an estimator
        return
    asked = ruled.asked
    if asked.groups is None and asked.costs is None:  # a plain choice
        return
    estimator = FeatureSparsePCA(
        asked.m, asked.k, include=list(asked.include) or None, exclude=list(asked.exclude) or None,
        groups=asked.groups, group_rule="together" if asked.together else None,
        n_groups=asked.n_groups, max_per_group=asked.max_per_group, costs=asked.costs,
        budget=asked.budget, solver="ipu", certify=str(rng.choice(LEVELS)), **trial.parameters(),
    ).fit(case.source())  # fmt: skip
    ruled.check(estimator.certificate_)
    made = FitRecord.from_estimator(estimator, case.source())
    try:
        made.verify(case.source())
    except ValueError as refusal:
        trial.judge.complain("record refused", f"an honest record is refused: {refusal}")


RULED: dict[str, Route] = {
    "rules fast": Route(partial(ruled_at, level="fast", budgets=Budgets()), 3),
    "rules tight": Route(partial(ruled_at, level="tight", budgets=RELAX), 2, True),
    "rules exact": Route(partial(ruled_at, level="exact", budgets=Budgets()), 3),
    "rules branches": Route(partial(ruled_at, level="exact", budgets=BRANCH), 1, True),
    "rules cones": Route(partial(ruled_at, level="exact", budgets=STRENGTHEN), 0.5, True),
    "rules wide": Route(partial(ruled_at, level="tight", budgets=WIDE), 2),
    "rules saved": Route(ruled_saved, 0.5, True),
    "rules estimator": Route(ruled_estimator, 1, True),
}
