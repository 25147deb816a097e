"""Routes of orthonormal components with supports of their own, under counts."""

from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import comb, prod
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.soundness.claims import check_joint, check_joint_claims
from benchmarks.soundness.joint_oracle import JointTruth, Limits
from benchmarks.soundness.problems import scratch_file
from benchmarks.soundness.routes import LEVELS, WIDE, Route, StopAfter, Trial, checked_record
from kspan import Certificate, FitRecord, StiefelSparsePCA, certify, solve
from kspan.problem import Patterns, StiefelProblem
from kspan.progress import Monitor
from kspan.proofs.search.prover import ProofOptions, prove
from kspan.proofs.search.tree_state import Budgets
from kspan.solving import prove_point

# Patterns that the oracle tries, and features of a component.
MOST_PATTERNS, MOST_FEATURES = 4000, 4

# So few steps in a node that it is split before it is settled, and few nodes: most of the
# certificates have open nodes. The second also settles many.
SHORT = Budgets(
    max_nodes=12, enumerate_cost=0, row_sweeps=0, pattern_root_iter=15, pattern_iter=15,
    pattern_leaf_iter=45,
)  # fmt: skip
LONGER = replace(SHORT, max_nodes=80, pattern_root_iter=90, pattern_leaf_iter=240)

# Some features are relaxed, at first few of them: all in the end, or never more than three or those
# of the loadings.
INSIDE = replace(SHORT, pattern_limit=0, least_inside=1, inside_iter=15, max_nodes=40)
INSIDE_ONLY = replace(INSIDE, dense_limit=3)

# Users' own budgets, but for the nodes: ties may need any number of them.
PLAIN = Budgets(max_nodes=100)


@dataclass
class Question:
    """What is asked about a case: counts as users give them, and as the oracle has them."""

    counts: dict[str, Any]
    limits: Limits
    n_components: int

    @classmethod
    def draw(cls, trial: Trial) -> "Question":
        """Ask for one number of features, one for each component, a number in all, or both."""
        case, rng = trial.case, trial.rng
        r = min(max(case.m, 2), case.d)
        disjoint, way = bool(rng.random() < 0.3), int(rng.integers(4))
        for most in range(min(case.k, MOST_FEATURES), 0, -1):
            each: Any = most if way == 0 else rng.integers(1, most + 1, r).tolist()
            total = int(rng.integers(r, r * most + 1)) if way > 1 else None
            each = None if way == 2 else each
            limits = tuple(np.broadcast_to(case.d if each is None else each, r).tolist())
            asked = Limits(case.d, limits, sum(limits) if total is None else total, disjoint)
            if n_patterns(asked) <= MOST_PATTERNS:
                break
        counts = {"n_nonzero_coefs": each, "n_nonzero_total": total, "disjoint": disjoint}
        return cls(counts, asked, r)


def n_patterns(limits: Limits) -> int:
    """Return how many patterns there are at most, in any order of the components."""
    d, most = limits.n_features, min(limits.total, sum(limits.limits))
    sizes = product(*(range(1, limit + 1) for limit in limits.limits))
    return sum(prod(comb(d, size) for size in own) for own in sizes if sum(own) == most)


class JointTrial:
    """A trial with a question, kspan's problem of it, and the truth."""

    def __init__(self, trial: Trial):
        self.trial, self.rng, self.judge = trial, trial.rng, trial.judge
        self.question = Question.draw(trial)
        r = self.question.n_components
        patterns = Patterns.of(trial.case.d, r, **self.question.counts)
        self.problem = StiefelProblem(trial.case.covariance(), r, patterns=patterns)
        self.truth = JointTruth(trial.truth, self.question.limits)

    def check(self, certificate: Certificate) -> None:
        """Hold a certificate against the truth."""
        check_joint(certificate, self.problem, self.truth, self.judge)

    def start(self) -> Any:
        """Return a point to prove: single features, or what a method finds."""
        if self.rng.random() < 0.4:
            return self.problem.point_of(self.solved())
        d, r = self.problem.n_features, self.problem.n_components
        loadings = np.zeros((d, r))
        loadings[self.rng.permutation(d)[:r], np.arange(r)] = 1.0
        return self.problem.point_of(SimpleNamespace(loadings=loadings))

    def solved(self) -> Any:
        """Return what a method finds, in little time."""
        options = {"n_restarts": 1, "n_kicks": 1, "n_improved": 1}
        return solve(self.problem, random_state=self.trial.seed, **options)

    def prove(
        self, level: str, budgets: Budgets, *, callback: Any = None, **options: Any
    ) -> Certificate:
        """Prove a point at a level; at times without any help to find a better one.

        A false upper bound is then less likely to meet a better point and to be refused for it.
        """
        problem, start, monitor = self.problem, self.start(), Monitor(level, callback)
        asked = ProofOptions(budgets=budgets, **options)
        if self.rng.random() < 0.7:
            return prove_point(problem, start, level, monitor, asked)
        problem.covariance.ensure_psd()
        problem.covariance.prepare()
        return prove(problem, start, level, heuristic=None, monitor=monitor, options=asked)


def joint_at(trial: Trial, level: str, budgets: Budgets) -> None:
    """Prove a point; closed forms also as users do."""
    joint = JointTrial(trial)
    if level == "fast" and joint.rng.random() < 0.5:
        joint.check(certify(joint.problem, joint.solved(), level))
        return
    joint.check(joint.prove(level, budgets))


def joint_stopped(trial: Trial) -> None:
    """A search that is stopped, goes on from its file, and is written to another one."""
    joint = JointTrial(trial)
    place, saved = scratch_file(".checkpoint"), scratch_file(".npz")
    place.unlink(missing_ok=True)
    options = {"checkpoint": place, "checkpoint_every": 0.0}
    stop = StopAfter(int(joint.rng.integers(1, 8)))
    joint.check(joint.prove("exact", LONGER, callback=stop, **options))
    certificate = joint.prove("exact", LONGER, **options)
    place.unlink(missing_ok=True)
    certificate.save(saved)
    joint.check(Certificate.load(saved))


def joint_estimator(trial: Trial) -> None:
    """Fit, and check the certificate and the record, also from a file."""
    case, rng = trial.case, trial.rng
    if case.form in ("stream", "sketch"):
        return
    joint = JointTrial(trial)
    # Ties may need any number of nodes, which the estimator has no parameter for.
    level, stop = str(rng.choice(LEVELS)), StopAfter(int(rng.integers(20, 200)))
    estimator = StiefelSparsePCA(
        joint.problem.n_components, **joint.question.counts, certify=level, callback=stop,
        **trial.parameters(),
    ).fit(case.source())  # fmt: skip
    if not hasattr(estimator, "certificate_"):  # stopped before there was one
        return
    joint.check(estimator.certificate_)
    made = checked_record(trial, FitRecord.from_estimator(estimator, case.source()))
    for certificate in made.certificates:
        check_joint_claims(certificate, joint.truth, trial.judge)


JOINT: dict[str, Route] = {
    "joint fast": Route(partial(joint_at, level="fast", budgets=Budgets()), 1, True),
    "joint tight": Route(partial(joint_at, level="tight", budgets=PLAIN), 1, True),
    "joint exact": Route(partial(joint_at, level="exact", budgets=PLAIN), 0.7, True),
    "joint wide": Route(partial(joint_at, level="tight", budgets=WIDE), 1, True),
    "joint branches": Route(partial(joint_at, level="exact", budgets=SHORT), 1, True),
    "joint longer": Route(partial(joint_at, level="exact", budgets=LONGER), 0.7, True),
    "joint inside": Route(partial(joint_at, level="exact", budgets=INSIDE), 1, True),
    "joint inside only": Route(partial(joint_at, level="exact", budgets=INSIDE_ONLY), 1, True),
    "joint stopped": Route(joint_stopped, 0.5, True),
    "StiefelSparsePCA": Route(joint_estimator, 0.5, True),
}
