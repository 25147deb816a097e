"""From a problem and a point to a certificate, at one of several levels.

- fast: closed forms, from what the fit computed
- tight: the relaxation with screening and strengthening; beyond ``Budgets.newton_limit``
  features the split bound and (wide data) the sample-space bound, and where variances are
  too alike for them the relaxation of up to ``Budgets.dense_limit`` features with cones alone
- exact: the same with larger splits, then branch and bound until the gap is closed or a budget is
  spent, on all features or on those that the bounds leave
- net: for nonnegative components, the bound of the spannogram's paper

A level is a list of steps, each of which may lower the bound of a `Proof`. What differs between
kinds of problems is which steps there are, and which relaxation they use: a `Prover` of each.
Orthonormal components with supports of their own are bounded by proofs about shared features, and
relaxed: on all features, or on those that may be worth a place.
Bounds for loadings of either sign hold for nonnegative ones too.
"""

import hashlib
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.linalg.machine import one_blas_thread
from kspan.linalg.rounding import IMPROVEMENT
from kspan.problem import (
    Candidate,
    Choice,
    ElementSparseProblem,
    NonnegativeProblem,
    Patterns,
    RepresentProblem,
    RowSparseProblem,
    StiefelProblem,
)
from kspan.progress import Monitor, relative_gap
from kspan.proofs.check.bounds import Cones
from kspan.proofs.check.certificate import Certificate
from kspan.proofs.check.claims import Problem, Witness
from kspan.proofs.check.known import KnownMatrix, data_scale
from kspan.proofs.check.partly_known import PartlyKnown
from kspan.proofs.check.pattern_tree import PatternTreeWitness, counted_patterns, other_counts
from kspan.proofs.check.pattern_witnesses import (
    SharedWitness,
    SumWitness,
    shared_problem,
    single_problem,
    single_sizes,
)
from kspan.proofs.check.row_sums import MATRIX_LIMIT, AbsoluteRows, row_levels
from kspan.proofs.check.screened import ScreenedWitness, rest_of
from kspan.proofs.check.telling import (
    KnownWhole,
    RelaxedWitness,
    about_telling,
    is_scannable,
)
from kspan.proofs.check.tree import NodeWitness
from kspan.proofs.check.witnesses import PathWitness
from kspan.proofs.search.branch_and_bound import BranchAndBound
from kspan.proofs.search.closed_forms import prove_by_closed_forms, prove_by_nets, prove_by_trace
from kspan.proofs.search.cone_relaxation import ConeRelaxation
from kspan.proofs.search.inside_search import choose_relaxed, choose_wider
from kspan.proofs.search.node_steps import NodeSteps, value_of
from kspan.proofs.search.nonnegative_search import NonnegativeSteps
from kspan.proofs.search.pattern_tree_search import (
    PatternGiven,
    PatternNode,
    PatternState,
    PatternSteps,
)
from kspan.proofs.search.proof import Heuristic, Proof
from kspan.proofs.search.relaxation import Relaxation
from kspan.proofs.search.row_search import prove_by_rows
from kspan.proofs.search.team_relaxation import TeamsSnapshot
from kspan.proofs.search.telling_search import (
    TellingSearch,
    can_relax,
    prove_by_relaxation,
    prove_by_samples_spectrum,
    prove_by_scan,
    prove_by_spectrum,
    spectrum_witness,
)
from kspan.proofs.search.tree_state import Budgets, Keeper, TreeState
from kspan.proofs.search.wide_search import prove_by_samples, prove_by_split
from kspan.storage import digest, require_writable

# A factor of B, and cones that go with it.
Factor = tuple[FloatArray, Cones | None]
Step = Callable[[], None]

# Variances are even when the middle one is this share of the largest.
EVEN_SHARE = 0.25

# Features up to which all rows of A are read: sweeps take O(nd²).
LARGEST_ROWS = 30_000


@dataclass(frozen=True)
class ProofOptions:
    """What is asked of a proof beside its level; see `kspan.certify`."""

    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_every: float = 60.0
    k_grid: tuple[int, ...] = ()
    rank: int | None = None
    epsilon: float | None = None
    n_jobs: int | None = None
    budgets: Budgets = field(default_factory=Budgets)

    def __post_init__(self) -> None:
        if self.n_jobs == 0:  # now, not when the first nodes are sent to workers
            raise ValueError("n_jobs must not be 0: None is one, -1 is all cores.")
        if not isinstance(self.budgets, Budgets):
            raise ValueError(f"budgets must be a Budgets, got {self.budgets!r}.")


def prove(
    problem: Problem,
    best: Candidate,
    level: str,
    *,
    heuristic: Heuristic | None,
    monitor: Monitor,
    options: ProofOptions,
) -> Certificate:
    """Prove how good a point is.

    Parameters
    ----------
    problem : RowSparseProblem, or NonnegativeProblem with one component
    best : a feasible point; a better one found on the way takes its place in the certificate
    level : one of `levels_of` the problem's type
    heuristic : callable, optional
        From the problem, scores of its features, which of them may be chosen and a monitor to a
        support: asked for better points, led by relaxed ones.
    monitor : reports, and when to stop
    options : ProofOptions
    """
    proof = Proof(problem, best, monitor, heuristic)
    return PROVERS[type(problem)](proof, options).run(level)


def level_of(certify: bool | str, problem_type: type) -> str | None:
    """Return the level that a parameter `certify` asks for: True is "tight", False is none."""
    if isinstance(certify, bool | np.bool_):
        return "tight" if certify else None
    if certify not in levels_of(problem_type):
        known = list(levels_of(problem_type))
        raise ValueError(f"certify must be a bool or one of {known}, got {certify!r}.")
    return certify


def levels_of(problem_type: type) -> tuple[str, ...]:
    """Return the levels of proof that there are for a kind of problem."""
    # What is proved of components with features of their own is one at a time.
    prover = PROVERS.get(RowSparseProblem if problem_type is ElementSparseProblem else problem_type)
    return () if prover is None else prover.levels


class Prover(ABC):
    """Makes one certificate: the plan of its steps, and those that all kinds of problems share."""

    levels: ClassVar[tuple[str, ...]] = ("fast", "tight", "exact")
    node_steps: ClassVar[type[NodeSteps]]

    def __init__(self, proof: Proof, options: ProofOptions):
        self.proof, self.options, self.budgets = proof, options, options.budgets
        self.problem, self.choice = proof.problem, proof.problem.choice
        self.m = proof.problem.n_components
        self.narrowed = self.split_helped = False

    def run(self, level: str) -> Certificate:
        """Make the certificate."""
        if self.options.checkpoint is not None:
            require_writable(self.options.checkpoint)  # now, before any work is done
        self.begin()
        # Lymphoma m=1, k=10 takes 110 s with two threads and 50 s with one.
        with self.proof.monitor.interruptible(), one_blas_thread():
            self.work(level)
            if (
                level in ("tight", "exact")
                and self.is_dense
                and not self.proof.path
                and self.choice.features.size
            ):
                self.keep_path(self.proof.known.on(self.choice.features), [])
        return self.proof.certificate(level)

    def begin(self) -> None:
        """Prove what is always there, and where every other bound starts."""
        prove_by_trace(self.proof)

    def work(self, level: str) -> None:
        """Take the steps of a level, as long as there is something left to prove."""
        # Without features that vary the bound is zero, and proved.
        for step in self.plan(level) if self.choice.features.size else []:
            if self.is_done or self.proof.monitor.out_of_time():
                break
            try:
                step()
            except (np.linalg.LinAlgError, FloatingPointError) as error:
                # Whatever a search meets, the bounds found so far hold.
                warnings.warn(
                    f"A step of the proof was given up ({error}); its best bound so far holds.",
                    RuntimeWarning,
                    stacklevel=2,
                )

    @property
    def is_done(self) -> bool:
        """Whether the gap is closed, or what is left was proved as a problem of its own."""
        proof = self.proof
        return self.narrowed or relative_gap(proof.lower, proof.upper) <= 0.1 * self.budgets.gap

    @abstractmethod
    def plan(self, level: str) -> list[Step]:
        """Return the steps of a level, after the trace bound."""

    @abstractmethod
    def lower_bound(self, known: KnownMatrix) -> float:
        """Return what the best point explains at least, as the search computes it, in its units."""

    @abstractmethod
    def path_factor(self, known: KnownMatrix, choice: Choice) -> Factor | None:
        """Return a good full-size factor for another number of features."""

    # --- steps

    def closed_forms(self) -> None:
        """Shifted eigenvalues."""
        prove_by_closed_forms(self.proof, self.budgets)

    def quick_rows(self) -> None:
        """Row sums, with few sweeps."""
        if self.reads_rows:
            prove_by_rows(self.proof, AbsoluteRows.of(self.problem), self.budgets.fast_sweeps)

    def whole(self, level: str) -> None:
        """Relax all features: the root of a search, and for exact proofs the search."""
        self.tree(self.budgets.tight_nodes if level == "tight" else self.budgets.max_nodes)

    def samples(self) -> None:
        """The sample-space bound, when there are few samples."""
        if self.problem.covariance.is_wide:
            prove_by_samples(self.proof, self.budgets)

    def split(self) -> None:
        """The split bound; for one component the sample-space bound is better, if there is one."""
        if not self.problem.covariance.is_wide or self.m > 1:
            prove_by_split(self.proof, self.budgets)

    @property
    def is_dense(self) -> bool:
        """Whether A is relaxed as a whole."""
        return self.choice.features.size <= self.budgets.dense_limit

    @property
    def is_small(self) -> bool:
        """Whether Newton's method relaxes A as a whole."""
        return self.choice.features.size <= min(self.budgets.newton_limit, self.budgets.dense_limit)

    @property
    def reads_rows(self) -> bool:
        """Whether the rows of A can be had: of a matrix, or from few samples."""
        n_features = self.choice.features.size
        wide = self.problem.covariance.is_wide and n_features <= LARGEST_ROWS
        return n_features <= MATRIX_LIMIT or wide

    @property
    def rows_may_pay(self) -> bool:
        """Whether row sums may say more than variances do, or are read in no time."""
        variances = self.problem.covariance.diagonal()[self.choice.features]
        few = variances.size <= self.budgets.newton_limit
        return few or bool(np.median(variances) >= EVEN_SHARE * variances.max(initial=0.0))

    # --- the search, and witnesses for other numbers of features

    def tree(self, max_nodes: int) -> None:
        """Search up to a number of nodes, from a checkpoint if there is one."""
        proof = self.proof
        known = proof.known
        keeper = self.keeper(known)
        state = self.state(known, keeper)
        proof.seconds_before = state.seconds
        search = BranchAndBound(
            self.problem, state, known, self.node_steps, heuristic=proof.heuristic,
            monitor=proof.monitor, budgets=replace(self.budgets, max_nodes=max_nodes),
            keeper=keeper, ceiling=min(proof.upper, proof.ceiling), n_jobs=self.options.n_jobs,
        )  # fmt: skip
        state = search.run()
        proof.hurried = search.hurried
        proof.consider(state.support)
        proof.offer(state.upper * known.scale, state.witness())
        proof.n_nodes = state.n_nodes
        proof.n_eigensolves += state.n_eigensolves
        proof.history += state.history
        self.keep_path(known.on(self.choice.features), state.witnesses)

    def state(self, known: KnownMatrix, keeper: Keeper | None) -> TreeState:
        """Return where to begin, or where a checkpoint left off."""
        proof = self.proof
        lower = self.lower_bound(known)
        state = TreeState.start(known, self.m, self.choice, proof.support, lower)
        found = None if keeper is None else keeper.load()
        if found is None:
            return state
        if state.lower > found.lower:  # the caller knows better by now
            found.support, found.lower = state.support, state.lower
        proof.history.clear()  # the first line of the resumed history is the first of all
        return found

    def keeper(self, known: KnownMatrix | None) -> Keeper | None:
        """Return what writes checkpoints of this problem and this way to search it.

        Where there is no matrix, its diagonal and a product with it stand for it. The budget of
        nodes may differ from one run to the next.
        """
        if self.options.checkpoint is None:
            return None
        budgets = replace(self.budgets, max_nodes=0, tight_nodes=0)
        if known is None:
            covariance = self.problem.covariance
            some = np.cos(np.arange(covariance.n_features, dtype=np.float64))[:, None]
            data = digest([covariance.diagonal(), covariance.matmat(some)])
        else:
            data = digest(known)
        asked = (data, self.m, digest(self.choice), budgets, self.problem.kind)
        sha = hashlib.sha256(repr(asked).encode())
        return Keeper(self.options.checkpoint, sha.hexdigest(), self.options.checkpoint_every)

    def keep_path(self, known: KnownMatrix, witnesses: list[NodeWitness]) -> None:
        """Keep full-size witnesses: B = 0, the search's own at this k, and those of the grid."""
        own: list[Factor] = [
            (witness.factor, witness.cones)
            for witness in witnesses
            if witness.factor is not None
            and witness.shared < 0
            and witness.features.size == known.n_features
        ]
        nothing: list[Factor] = [(np.zeros((known.n_features, 0)), None)]
        wanted = {*self.options.k_grid} - {self.choice.size}
        if not own:  # settled without the relaxation
            wanted.add(self.choice.size)
        for factor, cones in [*nothing, *own[-1:], *self.path_factors(known, sorted(wanted))]:
            try:
                path = PathWitness.of(self.problem, known, factor, cones)
            except FloatingPointError:
                continue
            self.proof.path.append(path.with_room(known, self.m))

    def path_factors(self, known: KnownMatrix, sizes: list[int]) -> list[Factor]:
        """Return a factor for every number of features that leaves something to choose."""
        found = []
        for size in sizes:
            choice = self.choice.on(self.choice.features).resized(size)
            if self.proof.monitor.out_of_time():
                break
            small = known.n_features <= self.budgets.newton_limit
            if small and self.m < size and choice.has_options:
                factor = self.path_factor(known, choice)
                found += [] if factor is None else [factor]
        return found


class RowSparseProver(Prover):
    """Proofs about features that all components share."""

    node_steps = NodeSteps

    def plan(self, level: str) -> list[Step]:
        """See `Prover.plan`."""
        if level == "fast":
            return [self.closed_forms, self.quick_rows]
        if level == "early":  # no certificate is made of it
            return [self.closed_forms, partial(self.tree, self.budgets.max_nodes)]
        # A checkpoint is about all features: the next run may know better what to take out.
        resumes = self.is_dense and self.options.checkpoint is not None
        rows = [partial(self.rows, level)] if self.m == 1 and not resumes else []
        if resumes or self.is_small:
            return [*rows, partial(self.whole, level)]
        samples = [self.samples] if self.m == 1 else []  # for more the split bound is better
        splits = [partial(self.split_and_narrow, level, size) for size in self.split_sizes(level)]
        # The iterations begin anew, and may do worse than closed forms when they are cut short.
        return [
            *rows, self.closed_forms, *samples, *splits, partial(self.without_split, level),
        ]  # fmt: skip

    def split_sizes(self, level: str) -> list[int]:
        """Return how many features the split bound relaxes, one after the other."""
        sizes = [self.budgets.n_inside]
        largest = min(self.choice.features.size - 1, self.budgets.dense_limit)
        while level == "exact" and 2 * sizes[-1] <= largest:
            sizes.append(2 * sizes[-1])
        return sizes

    def without_split(self, level: str) -> None:
        """What is left to do where the split bound says nothing, or not enough."""
        if self.is_dense and (level == "exact" or not self.split_helped):
            self.whole(level)
        elif self.m > 1 and not self.split_helped:
            self.samples()

    def rows(self, level: str) -> None:
        """Row sums, and the problem on the features they leave."""
        if not self.reads_rows or (level == "tight" and not self.rows_may_pay):
            return
        rows = AbsoluteRows.of(self.problem)
        witness = prove_by_rows(self.proof, rows, self.budgets.row_sweeps)
        if witness is None or self.is_done:
            return
        try:
            stop = self.proof.monitor.out_of_time
            levels = row_levels(rows, witness.weights, stop)
        except TimeoutError:
            return
        self.narrow(level, witness, levels)

    def split_and_narrow(self, level: str, n_inside: int) -> None:
        """The split bound, and the problem on the features it leaves."""
        patience = self.budgets.split_patience if level == "tight" else self.budgets.alone_patience
        budgets = replace(self.budgets, n_inside=n_inside, split_patience=patience)
        witness = prove_by_split(self.proof, budgets)
        self.split_helped = self.split_helped or witness is not None
        if witness is not None and not self.is_done:
            self.narrow(level, witness, witness.levels(self.problem))

    def narrow(self, level: str, first: Witness, levels: FloatArray) -> None:
        """Take out what a witness settles, and prove the rest as a problem of its own."""
        proof, choice = self.proof, self.choice
        removed = np.setdiff1d(choice.free[levels[choice.free] < proof.lower], proof.support)
        kept = np.setdiff1d(choice.features, removed)
        if kept.size > self.budgets.narrower * choice.features.size:
            return
        if level == "tight" and self.split_helped and kept.size > self.budgets.n_inside:
            return  # relaxing so many takes minutes, and gains little over the split
        rest = rest_of(self.problem, removed)
        if rest is None:
            return
        best = rest.refit(np.searchsorted(kept, np.sort(proof.support)))
        inner = Proof(
            rest, best, proof.monitor, proof.heuristic, seconds_before=proof.seconds_before,
            ceiling=min(proof.upper, proof.ceiling),
        )  # fmt: skip
        prove_by_trace(inner)
        RowSparseProver(inner, replace(self.options, k_grid=())).work(level)
        proof.consider(kept[inner.support])
        gone = max(float(levels[removed].max()), 0.0)  # they may have no support at all
        proof.offer(max(gone, inner.upper), ScreenedWitness(first, removed, gone, inner.witness))
        proof.take_counts(inner)
        self.narrowed = True

    def lower_bound(self, known: KnownMatrix) -> float:
        """See `Prover.lower_bound`."""
        value = value_of(known, np.sort(self.proof.support), self.m)
        return value - known.value_error(self.m, self.choice)

    def path_factor(self, known: KnownMatrix, choice: Choice) -> Factor | None:
        """See `Prover.path_factor`."""
        relax = Relaxation(known.A, self.m, choice, monitor=self.proof.monitor)
        relax.run(self.budgets.path_iter, precision=1e-4 * max(relax.upper, 0.0))
        self.proof.n_eigensolves += relax.n_eigensolves
        factor = relax.witness()
        return None if factor is None else (factor, None)


class NonnegativeProver(Prover):
    """Proofs about one nonnegative component."""

    levels = ("fast", "net", "tight", "exact")
    node_steps = NonnegativeSteps

    def plan(self, level: str) -> list[Step]:
        """See `Prover.plan`."""
        if level == "fast":
            return [self.closed_forms, self.quick_rows]
        if level == "net":
            return [self.closed_forms, self.nets]
        if not self.is_dense:
            return [self.samples, self.split]
        # The iteration may do worse than closed forms.
        return [self.closed_forms, partial(self.whole, level)]

    def nets(self) -> None:
        """The bound of the spannogram's paper, the best of several ranks."""
        prove_by_nets(self.proof, self.budgets, self.options.rank, self.options.epsilon)

    def lower_bound(self, known: KnownMatrix) -> float:
        """See `Prover.lower_bound`."""
        return self.proof.lower / known.scale

    def path_factor(self, known: KnownMatrix, choice: Choice) -> Factor | None:
        """See `Prover.path_factor`."""
        relax = ConeRelaxation(known.A, 1, choice, nonnegative=True)
        for _ in range(self.budgets.path_cone_iter):
            relax.step()
            if self.proof.monitor.out_of_time():
                break
        self.proof.n_eigensolves += relax.n_eigensolves
        return relax.witness()


class PatternProver(Prover):
    """Proofs about orthonormal components with supports of their own."""

    node_steps = NodeSteps  # of the proofs about shared features that it rests on

    @property
    def patterns(self) -> Patterns:
        """How many features each component may use."""
        return counted_patterns(self.problem)

    def plan(self, level: str) -> list[Step]:
        """See `Prover.plan`."""
        if level == "fast" or not (self.relaxes_all or self.reads_rows):
            return [partial(self.shared, level), partial(self.singles, level)]
        # Few features in all say more than each component for itself, which the search knows
        # unless there are too many features.
        singles = [] if self.is_dense else [partial(self.singles, "tight")]
        return [
            partial(self.shared, "tight"), *singles, partial(self.whole, level),
            partial(self.without_tree, level),
        ]  # fmt: skip

    @property
    def relaxes_all(self) -> bool:
        """Whether all features are relaxed, or those that count."""
        return self.is_dense and self.choice.features.size <= self.budgets.pattern_limit

    def without_tree(self, level: str) -> None:
        """What is left to do where the relaxation says nothing, or too little."""
        if level == "exact" and not isinstance(self.proof.witness, PatternTreeWitness):
            self.shared(level)
            self.singles(level)

    def shared(self, level: str) -> None:
        """A bound for as many features as all components use, if they shared them."""
        inner = self.about(shared_problem(self.problem), level)
        self.proof.offer(inner.upper, SharedWitness(inner.witness))

    def singles(self, level: str) -> None:
        """Bounds for each component by itself, without orthogonality."""
        found = [
            self.about(single_problem(self.problem, size), level)
            for size in single_sizes(self.problem)
        ]
        witness = SumWitness([inner.witness for inner in found])
        self.proof.offer(witness.evaluate(self.problem), witness)

    def about(self, problem: RowSparseProblem, level: str) -> Proof:
        """Prove what can be proved of a problem about shared features, in a part of the time."""
        proof, d = self.proof, self.problem.n_features
        monitor = proof.monitor.inner(quiet=True, share=0.25)
        heuristic = getattr(proof.heuristic, "shared", None)
        scores = np.sum(proof.best.loadings(d) ** 2, axis=1)
        support = problem.select(scores + 1e-6 * problem.covariance.diagonal() / self.known_size)
        if heuristic is not None and level != "fast":
            support = heuristic(problem, scores, problem.choice, monitor)
        inner = Proof(problem, problem.refit(np.sort(support)), monitor, heuristic)
        prove_by_trace(inner)
        options = replace(self.options, checkpoint=None, k_grid=())
        RowSparseProver(inner, options).work(level)
        proof.n_eigensolves += inner.n_eigensolves
        proof.hurried = proof.hurried or (monitor.stopped is not None and not self.is_dense)
        return inner

    @property
    def known_size(self) -> float:
        """The largest variance."""
        return float(self.problem.covariance.diagonal().max()) or 1.0

    def tree(self, max_nodes: int) -> None:
        """Search up to a number of nodes, from a checkpoint if there is one.

        Where the features that are relaxed do not settle it, once more with others beside them.
        """
        proof = self.proof
        keeper = self.keeper(proof.known if self.relaxes_all else None)
        found = None if keeper is None else keeper.load()
        state = found if isinstance(found, PatternState) else None
        if state is not None:
            proof.history.clear()
            proof.seconds_before = state.seconds
        try:
            known: KnownMatrix | PartlyKnown | None
            known, start = self.relaxed(None if state is None else state.inside)
            while known is not None:
                state = self.searched(known, state, keeper, max_nodes, start)
                known = self.wider(known, state, max_nodes)
                state = start = None
        except TimeoutError:
            return

    def searched(
        self, known: KnownMatrix | PartlyKnown, found: PatternState | None, keeper: Keeper | None,
        max_nodes: int, start: TeamsSnapshot | None = None,
    ) -> PatternState:  # fmt: skip
        """Search from the root, or from where another search left off."""
        proof, patterns = self.proof, self.patterns
        loadings = proof.best.loadings(self.problem.n_features)
        lower, ceiling = proof.lower / known.scale, min(proof.upper, proof.ceiling)
        state = PatternState.at_root(known, patterns, loadings, lower, 4 * ceiling / known.scale)
        state.seconds, state.open[0].start = proof.seconds_before, start
        if found is not None:
            if lower > found.lower:
                found.lower, found.support = lower, loadings
            state = found
        error = known.uncertainty.total(self.m, self.choice)
        budgets = replace(self.budgets, max_nodes=max_nodes)
        search = BranchAndBound(
            self.problem, state, known, PatternSteps, heuristic=None, monitor=proof.monitor,
            budgets=budgets, keeper=keeper, ceiling=ceiling, n_jobs=self.options.n_jobs,
            given=PatternGiven(known, patterns, budgets, error), ask=self.better_near,
        )  # fmt: skip
        in_part = isinstance(known, PartlyKnown) and known.inside.size < known.n_features
        if in_part and found is None:
            search.budgets = replace(budgets, max_nodes=1)
            root = search.run()
            search.budgets = budgets
            helps = root.upper * known.scale < ceiling
            done = search.run() if helps and max_nodes > 1 else root
        else:
            done = search.run()
        assert isinstance(done, PatternState)
        proof.hurried = search.hurried
        self.consider_loadings(done.support)
        if done.upper * known.scale < proof.upper:
            proof.offer(done.upper * known.scale, done.witness())
        proof.n_nodes += done.n_nodes
        proof.n_eigensolves += done.n_eigensolves
        proof.history += done.history
        return done

    def relaxed(
        self, inside: Index | None
    ) -> tuple[KnownMatrix | PartlyKnown, TeamsSnapshot | None]:
        """Return what is relaxed: all features, or some that are given or chosen here.

        And a point to begin at, if there is one.
        `TimeoutError` if there is no time for that.
        """
        if self.relaxes_all:
            return self.proof.known, None
        if inside is None:
            return choose_relaxed(self.proof, self.patterns, self.budgets)
        stop = self.proof.monitor.out_of_time
        sizes = other_counts(self.patterns)
        return PartlyKnown.of(self.problem, inside, sizes, stop=stop), None

    def wider(
        self, known: KnownMatrix | PartlyKnown, done: PatternState, max_nodes: int
    ) -> PartlyKnown | None:
        """Return what to relax next, if a search ended for want of features to split on.

        Or with its root, as that says no more than other bounds.
        """
        is_tree = isinstance(self.proof.witness, PatternTreeWitness)
        settled = self.is_done or (is_tree and bool(done.open)) or done.n_nodes >= max_nodes
        if isinstance(known, KnownMatrix) or settled or self.proof.monitor.out_of_time():
            return None
        return choose_wider(self.proof, known, self.patterns, self.budgets)

    def better_near(self, _: PatternNode, guess: FloatArray) -> tuple[float, FloatArray] | None:
        """Ask for loadings near relaxed ones; return them with what they explain at least."""
        heuristic = self.proof.heuristic
        if heuristic is None:
            return None
        monitor = self.proof.monitor.inner(quiet=True)
        loadings: FloatArray = heuristic(self.problem, guess, self.choice, monitor)
        support = np.flatnonzero(loadings.any(axis=1))
        try:
            value = self.problem.claimed_value(support, loadings[support])
        except ValueError:  # not as orthonormal as it should be
            return None
        return value / data_scale(self.problem), loadings

    def consider_loadings(self, loadings: FloatArray) -> None:
        """Take loadings as the best point if they are; alike components by their variances."""
        support = np.flatnonzero(loadings.any(axis=1))
        weights = loadings[support]
        image = self.problem.covariance.matmat(weights, support)[support]
        variances = np.maximum(np.sum(weights * image, axis=0), 0.0)
        order = np.arange(self.m)
        for limit in np.unique(self.patterns.limits):
            alike = np.flatnonzero(self.patterns.limits == limit)
            order[alike] = alike[np.argsort(-variances[alike], kind="stable")]
        found = Candidate(support, np.ascontiguousarray(weights[:, order]), variances[order])
        if found.objective > self.proof.best.objective * (1 + IMPROVEMENT):
            self.proof.best = found

    def keeper(self, known: KnownMatrix | None) -> Keeper | None:
        """See `Prover.keeper`; which patterns are searched is part of the problem."""
        keeper = super().keeper(known)
        if keeper is None:
            return None
        sha = hashlib.sha256((keeper.fingerprint + digest(self.patterns)).encode())
        return replace(keeper, fingerprint=sha.hexdigest())

    def keep_path(self, known: KnownMatrix, witnesses: list[NodeWitness]) -> None:
        """There is no path over one number of features here."""

    def lower_bound(self, known: KnownMatrix) -> float:
        """See `Prover.lower_bound`."""
        return self.proof.lower / known.scale

    def path_factor(self, known: KnownMatrix, choice: Choice) -> Factor | None:
        """See `Prover.path_factor`."""
        return None


class RepresentProver(Prover):
    """Proofs about features from which all others can be told."""

    node_steps = NodeSteps  # not used: the nodes are those of `telling_search.py`

    def begin(self) -> None:
        """All variance, or what principal components explain where there is a spectrum."""
        if self.options.checkpoint is not None:
            raise ValueError("checkpoint: proofs of what features tell keep none.")
        about_telling(self.problem)
        prove_by_spectrum(self.proof, whole=True)

    def plan(self, level: str) -> list[Step]:
        """See `Prover.plan`."""
        steps: list[Step] = [partial(self.spectrum, level)]
        if level != "fast":
            steps.append(partial(self.relaxed, level))
        return steps

    def spectrum(self, level: str) -> None:
        """What m principal components explain."""
        assert isinstance(self.problem, RepresentProblem)
        if not spectrum_witness(self.problem).whole:
            prove_by_spectrum(self.proof, whole=False)
        elif level != "fast":
            prove_by_samples_spectrum(self.proof)

    def relaxed(self, level: str) -> None:
        """The relaxation, and for exact proofs the search that fits the problem."""
        proof, problem = self.proof, self.problem
        assert isinstance(problem, RepresentProblem)
        if not can_relax(proof):
            return
        known = KnownWhole.of(problem)
        if not known.kappa > 0:
            return
        if problem.choice.n_supports <= TINY:
            level = "exact"  # that is soon done
        scans = level == "exact" and is_scannable(problem)
        if scans and problem.choice.n_supports <= QUICK_SCAN:
            prove_by_scan(proof, known)
            return
        root = prove_by_relaxation(proof, known)
        if level == "tight" or self.is_done or proof.monitor.out_of_time():
            return
        if scans:
            prove_by_scan(proof, known)
        elif root is not None and (
            # Nodes say no more than principal components do where the root does not, unless they
            # are soon small.
            isinstance(proof.witness, RelaxedWitness) or problem.choice.n_supports <= FEW_NODES
        ):
            TellingSearch(proof, known, root).run()

    def keep_path(self, known: KnownMatrix, witnesses: list[NodeWitness]) -> None:
        """There are no witnesses for other numbers of features, but for principal components."""

    def lower_bound(self, known: KnownMatrix) -> float:
        """See `Prover.lower_bound`."""
        return self.proof.lower / known.scale

    def path_factor(self, known: KnownMatrix, choice: Choice) -> Factor | None:
        """See `Prover.path_factor`."""
        return None


# Supports that are looked through at once, before anything is relaxed: within a second.
QUICK_SCAN = 1e9

# Supports of problems that are proved to the end at any level but "fast".
TINY = 5000

# Supports that a search gets through by trying them, whatever its bounds say.
FEW_NODES = 300_000

PROVERS: dict[type, type[Prover]] = {
    RepresentProblem: RepresentProver,
    StiefelProblem: PatternProver,
    RowSparseProblem: RowSparseProver,
    NonnegativeProblem: NonnegativeProver,
}
