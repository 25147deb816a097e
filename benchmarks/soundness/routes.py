"""What is run on a problem: every way in which kspan makes a certificate.

A route gets a `Trial`, makes certificates, and hands each to the claims. The same seed does the
same again, which is what reducing a failure needs.
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse

import kspan.estimators.shared_features as shared_features
import kspan.proofs.search.along as proofs_along
from benchmarks.soundness import oracle
from benchmarks.soundness.claims import (
    ORACLE_ERROR,
    Judgement,
    check_nonnegative,
    check_shared,
)
from benchmarks.soundness.problems import SKETCH_ROWS, Case, scratch_file, with_data
from kspan import (
    Certificate,
    ElementSparsePCA,
    FeatureSparsePCA,
    FeatureSparseSelector,
    FitRecord,
    NonnegativeProblem,
    NonnegativeSparsePCA,
    certify,
    solve,
    sparsity_path,
)
from kspan.covariance import streamed
from kspan.problem import ElementSparseProblem
from kspan.progress import Monitor
from kspan.proofs.search.prover import ProofOptions
from kspan.proofs.search.tree_state import Budgets
from kspan.solvers.rowsparse.moves import polish
from kspan.solving import component_problems, prove_point

LEVELS = ("fast", "tight", "exact")
QUICK_SOLVERS = ("ipu", "go", "srt", "soap", "cssp", "brute-force")

# Nothing is enumerated: every node is relaxed, (the second) only branched, or (the third, without
# row sums before it) given cones, and given others as soon as it has fewer features.
RELAX = Budgets(enumerate_cost=0)
BRANCH = Budgets(enumerate_cost=0, strengthen_gap=2.0, row_sweeps=0)
STRENGTHEN = Budgets(enumerate_cost=0, strengthen_gap=0.0, strengthen_again=0.9, row_sweeps=0)

# No matrix of all features: closed forms on the data, the sample-space bound, the split bound.
WIDE = Budgets(dense_limit=2, n_inside=3, split_iter=8, sample_iter=6)
WIDE_LONG = Budgets(dense_limit=2, n_inside=3, split_iter=60)

# Nonnegative searches in few steps: their bounds are loose, and must hold all the same.
SHORT_CONES = Budgets(
    enumerate_cost=0, cone_iter=20, cone_node_iter=6, path_cone_iter=10, max_nodes=400
)  # fmt: skip
CONES = Budgets(max_nodes=200)


@dataclass
class Trial:
    """One problem on one route.

    Parameters
    ----------
    case : the problem
    seed : of all that the route draws
    known : the truth about the case, if someone has it already
    """

    case: Case
    seed: int
    known: oracle.Truth | None = None

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.judge = Judgement()

    @cached_property
    def truth(self) -> oracle.Truth:
        """All supports and what they explain."""
        return self.case.truth() if self.known is None else self.known

    @cached_property
    def problem(self) -> Any:
        """kspan's problem of shared features."""
        return self.case.problem()

    @cached_property
    def nonnegative(self) -> NonnegativeProblem:
        """kspan's problem of one nonnegative component."""
        return self.case.nonnegative()

    def check(self, certificate: Certificate) -> None:
        """Hold a certificate of the problem against the truth."""
        check_shared(certificate, self.problem, self.truth, self.judge)

    def check_nonnegative(self, certificate: Certificate) -> None:
        """Hold a certificate of the nonnegative problem against the truth."""
        check_nonnegative(certificate, self.nonnegative, self.truth, self.judge)

    def start(self) -> Any:
        """Return a point to prove: any, or the best there is."""
        case = self.case
        free = [j for j in range(case.d) if j not in (*case.include, *case.exclude)]
        rest = self.rng.permutation(free)[: case.k - len(case.include)].tolist()
        support = sorted([*case.include, *rest])
        if self.rng.random() < 0.4:
            best = self.truth.optimal_supports(case.m, case.k, case.include, case.exclude)
            support = best[self.rng.integers(len(best))]
        return self.problem.refit(np.array(support, dtype=np.intp))

    def start_nonnegative(self) -> Any:
        """Return one feature that varies, or the best vector there is."""
        problem = self.nonnegative
        x = np.zeros(self.case.d)
        x[self.rng.choice(problem.choice.features)] = 1.0
        if self.rng.random() < 0.4:
            points, values = self.truth.nonnegative_points(self.case.k)
            best = points[values.argmax()].astype(np.float64)
            x = best if best.any() else x
        return problem.best_from(x)

    def prove(
        self, level: str, budgets: Budgets, *, callback: Any = None, time_limit: Any = None,
        **options: Any,
    ) -> Certificate:  # fmt: skip
        """Prove a point at a level."""
        monitor = Monitor(level, callback, time_limit)
        options = {"budgets": budgets, **options}
        return prove_point(self.problem, self.start(), level, monitor, ProofOptions(**options))

    def prove_nonnegative(self, level: str, budgets: Budgets, **options: Any) -> Certificate:
        """Prove a nonnegative vector at a level."""
        options = {"budgets": budgets, **options}
        return prove_point(
            self.nonnegative, self.start_nonnegative(), level, Monitor(level),
            ProofOptions(**options),
        )  # fmt: skip

    def some_k(self) -> tuple[int, ...]:
        """Return up to three numbers of features that the problem can have."""
        case = self.case
        sizes = np.arange(max(case.m, len(case.include)), case.d - len(case.exclude) + 1)
        return tuple(int(k) for k in self.rng.permutation(sizes)[: self.rng.integers(0, 4)])

    def parameters(self) -> dict[str, Any]:
        """Return those of an estimator that ask what the case asks."""
        case = self.case
        return {
            "scale": case.scale,
            "covariance": "precomputed" if case.given else None,
            "missing": "mean" if case.form == "measured" else "raise",
            "random_state": self.seed % 2**31,
        }


# --- certificates


def at_level(trial: Trial, level: str, budgets: Budgets, *, grid: bool = False) -> None:
    """Prove a point, with more witnesses for other k at times."""
    options = {"k_grid": trial.some_k()} if grid else {}
    trial.check(trial.prove(level, budgets, **options))


def as_users_do(trial: Trial, level: str) -> None:
    """`solve`, then `certify`; or any point, as the solution may be too good."""
    if trial.rng.random() < 0.5:
        at_level(trial, level, Budgets(), grid=True)
        return
    solver = str(trial.rng.choice(QUICK_SOLVERS))
    solution = solve(trial.problem, solver, random_state=trial.seed)
    trial.check(certify(trial.problem, solution, level, k_grid=trial.some_k()))


def nonnegative_at(trial: Trial, level: str, budgets: Budgets) -> None:
    """`certify` of a nonnegative component."""
    if trial.nonnegative.choice.features.size:
        trial.check_nonnegative(trial.prove_nonnegative(level, budgets))


def stopped(trial: Trial) -> None:
    """Whatever comes back when a callback or the clock stops a proof."""
    budgets = [RELAX, BRANCH, WIDE, Budgets()][trial.rng.integers(4)]
    level = str(trial.rng.choice(["tight", "exact"]))
    if trial.rng.random() < 0.3:
        seconds = 10 ** trial.rng.uniform(-5, -2)
        trial.check(trial.prove(level, budgets, time_limit=seconds))
        return
    trial.check(trial.prove(level, budgets, callback=StopAfter(int(trial.rng.integers(1, 8)))))


@dataclass
class StopAfter:
    """A callback that stops after a number of steps."""

    steps: int

    def __call__(self, progress: Any) -> bool:
        """Count."""
        self.steps -= 1
        return self.steps <= 0


def saved(trial: Trial) -> None:
    """A certificate that was written to a file and read again."""
    certificate = trial.prove("exact", BRANCH)
    path = scratch_file(".npz")
    certificate.save(path)
    loaded = Certificate.load(path)
    trial.judge.need(loaded.digest == certificate.digest == loaded.compute_digest(),
                     "saved", "the digest of a loaded certificate differs")  # fmt: skip
    trial.check(loaded)


def checkpoint(trial: Trial) -> None:
    """A search that is stopped, and goes on from its file."""
    path = scratch_file(".checkpoint")
    path.unlink(missing_ok=True)
    stop = StopAfter(int(trial.rng.integers(1, 6)))
    trial.check(trial.prove("exact", BRANCH, callback=stop, checkpoint=path, checkpoint_every=0.0))
    trial.check(trial.prove("exact", BRANCH, checkpoint=path))
    path.unlink(missing_ok=True)


def along(trial: Trial) -> None:
    """One k after another on one split of the features; features differ in variance at times.

    Without those that are made to differ, few splits say more than the variances.
    """
    if trial.rng.random() < 0.6 and not (trial.case.given or trial.case.form != "array"):
        trial = uneven(trial)
    problem, rng = trial.problem, trial.rng
    if problem.choice.features.size < 2:
        return
    problem.covariance.ensure_psd()  # bounds rely on it
    problem.covariance.prepare()
    sizes = np.arange(problem.choice.size, problem.choice.largest_size + 1)
    ks = np.unique(np.append(rng.choice(sizes, min(3, sizes.size), replace=False), sizes[0]))
    problems = [problem.at(int(k)) for k in ks]
    points = [each.refit(any_support(each, rng)) for each in problems]
    stop = StopAfter(int(rng.integers(1, 5))) if rng.random() < 0.2 else None
    steps, inside = proofs_along.ALONG, proofs_along.LEAST_INSIDE
    try:
        proofs_along.LEAST_INSIDE = int(rng.integers(1, 6))
        proofs_along.ALONG = replace(steps, split_iter=int(rng.choice([8, 20, 60])))
        walk = proofs_along.Along(
            problems[-1], [point.support for point in points], heuristic=polish,
            monitor=Monitor("along", stop),
        )  # fmt: skip
        for each, point in zip(problems, points, strict=True):
            certificate = walk.prove(each, point, int(rng.choice(sizes)))
            check_shared(certificate, each, trial.truth, trial.judge)
    finally:
        proofs_along.ALONG, proofs_along.LEAST_INSIDE = steps, inside


def uneven(trial: Trial) -> Trial:
    """Return a trial of the same data with features of uneven variance, of which few matter."""
    case, rng = trial.case, trial.rng
    sizes = np.ldexp(1.0, -rng.integers(0, 5, case.d))  # without rounding
    if scipy.sparse.issparse(case.data) or case.data.dtype.kind != "f" or case.scale:
        return trial
    other = Trial(with_data(case, case.data * sizes.astype(case.data.dtype)), trial.seed)
    other.judge = trial.judge
    return other


def any_support(problem: Any, rng: np.random.Generator) -> Any:
    """Return a support that nobody thought about."""
    return problem.choice.select(rng.random(problem.n_features))


# --- estimators


def shared_estimator(trial: Trial, solvers: tuple[str, ...] = QUICK_SOLVERS) -> Any:
    """Fit, and check the certificate; return the estimator."""
    case, rng = trial.case, trial.rng
    make = FeatureSparsePCA if rng.random() < 0.8 else FeatureSparseSelector
    estimator = make(
        case.m, case.k, certify=str(rng.choice(LEVELS)), solver=str(rng.choice(solvers)),
        include=list(case.include) or None, exclude=list(case.exclude) or None,
        **trial.parameters(),
    )  # fmt: skip
    if case.form in ("stream", "sketch"):
        fit_in_blocks(estimator, case)
    else:
        estimator.fit(case.source())
    if hasattr(estimator, "certificate_"):
        trial.check(estimator.certificate_)
        same = np.array_equal(
            np.sort(estimator.certificate_.support), estimator.get_support(indices=True)
        )
        trial.judge.need(same, "estimator", "its features are not those of its certificate")
    return estimator


def fit_in_blocks(estimator: Any, case: Case) -> None:
    """`partial_fit`, exact or with a small sketch."""
    limit, kept = streamed.EXACT_LIMIT, shared_features.RowStream
    if case.form == "sketch":
        streamed.EXACT_LIMIT = 2
        shared_features.RowStream = partial(kept, sketch_rows=SKETCH_ROWS)
    try:
        *first, last = case.blocks()
        for block in first:
            estimator.partial_fit(block, refit=False)
        estimator.partial_fit(last)
    finally:
        streamed.EXACT_LIMIT, shared_features.RowStream = limit, kept


def partial_fit(trial: Trial) -> None:
    """Any data, in blocks."""
    case = trial.case
    if case.given or case.form in ("npy", "memmap", "dask", "measured"):
        return
    if case.form == "array":
        trial.case = Case(**{**vars(case), "form": "stream"})
    shared_estimator(trial)


def nonnegative_estimator(trial: Trial) -> Any:
    """Several nonnegative components, each in what those before it have left."""
    case, rng = trial.case, trial.rng
    how = str(rng.choice(["remove", "projection", "orthogonalized"]))
    level = str(rng.choice(["fast", "fast", "net", "tight", "exact"]))
    if case.form in ("stream", "sketch"):
        return None
    estimator = NonnegativeSparsePCA(
        int(rng.integers(1, min(3, case.d) + 1)), case.k, certify=level, deflation=how,
        solver=str(rng.choice(["em", "net"])), **trial.parameters(),
    ).fit(case.source())  # fmt: skip
    check_components(trial, estimator.certificates_, how, NonnegativeProblem)
    return estimator


def separate_estimator(trial: Trial) -> Any:
    """Several components of either sign, each in what those before it have left."""
    case, rng = trial.case, trial.rng
    how = str(rng.choice(["projection", "schur", "orthogonalized", "remove"]))
    if case.form in ("stream", "sketch"):
        return None
    estimator = ElementSparsePCA(
        int(rng.integers(1, min(4, case.d) + 1)), case.k, certify=str(rng.choice(LEVELS)),
        deflation=how, solver=str(rng.choice(["tpower", "grqi", "ipm"])), **trial.parameters(),
    ).fit(case.source())  # fmt: skip
    check_components(trial, estimator.certificates_, how, ElementSparseProblem)
    return estimator


def check_components(
    trial: Trial, certificates: list[Certificate], how: str, kind: type[ElementSparseProblem]
) -> None:
    """Each certificate is about what the components before it have left of A."""
    check = check_nonnegative if kind is NonnegativeProblem else check_shared
    A, case = trial.truth.A, trial.case
    vectors = []
    for certificate in certificates:
        x = np.zeros(case.d)
        x[certificate.support] = certificate.weights[:, 0]
        vectors.append(x)
    whole = kind(case.covariance(), len(vectors), case.k)
    problems = component_problems(whole, np.array(vectors).T, how)
    for j, (problem, certificate) in enumerate(zip(problems, certificates, strict=True)):
        left = oracle.deflated(A, vectors[:j], how)
        if left is None:
            return
        error = 0.0 if how == "remove" or j == 0 else ORACLE_ERROR * np.abs(A).max()
        check(certificate, problem, oracle.Truth(left), trial.judge, error)


# --- paths and records


def path(trial: Trial, solver: str | None = None) -> Any:
    """A sparsity path: its certificates, and the band at every k."""
    case, rng = trial.case, trial.rng
    if case.form in ("stream", "sketch"):
        return None
    parameters = trial.parameters()
    found = sparsity_path(
        case.source(), case.m, solver=solver or str(rng.choice(QUICK_SOLVERS)),
        certify=str(rng.choice(LEVELS)), include=list(case.include) or None,
        exclude=list(case.exclude) or None, **parameters,
    )  # fmt: skip
    for certificate in found.certificates:
        problem = trial.problem.at(certificate.n_features_to_select)
        check_shared(certificate, problem, trial.truth, trial.judge)
    check_band(trial, found)
    return found


def check_band(trial: Trial, found: Any) -> None:
    """The curve is reached, and the band never passed."""
    case, judge = trial.case, trial.judge
    for k, support, objective, upper in zip(
        found.k, found.supports, found.objective, found.upper, strict=True
    ):
        optimum = trial.truth.optimum(case.m, int(k), case.include, case.exclude)
        reached = trial.truth.value(case.m, support)
        judge.values += 1
        judge.ordered("path objective", objective, reached, optimum)
        judge.ordered("path upper", optimum, upper, optimum)


def checked_record(trial: Trial, made: FitRecord) -> FitRecord:
    """Return a record, at times from a file; it must pass its own check."""
    if trial.rng.random() < 0.5:
        place = scratch_file(".record.npz")
        made.save(place)
        made = FitRecord.load(place)
    try:
        made.verify(trial.case.source())
    except ValueError as refusal:
        trial.judge.complain("record refused", f"an honest record is refused: {refusal}")
    return made


def record(trial: Trial) -> Any:
    """The record of a fit, with a path at times: it passes its own check, also from a file."""
    case, rng = trial.case, trial.rng
    if case.form in ("stream", "sketch"):
        return None
    kind = rng.random()
    own = kind < 0.4
    make = nonnegative_estimator if kind < 0.2 else separate_estimator if own else shared_estimator
    estimator = make(trial)
    band = path(trial) if rng.random() < 0.3 and not own else None
    return checked_record(trial, FitRecord.from_estimator(estimator, case.source(), path=band))


def quick_threads() -> None:
    """Skip the search for BLAS libraries before each proof: half of the time of small ones.

    Only when BLAS has one thread anyway, as `__main__` sees to.
    """
    import kspan.choosing_k.path as path_module
    import kspan.proofs.search.prover as prover

    for module in (prover, path_module, proofs_along):
        if hasattr(module, "one_blas_thread"):
            module.one_blas_thread = nullcontext


@dataclass(frozen=True)
class Route:
    """What is run, how often, and whether it takes tens of milliseconds and more."""

    run: Callable[[Trial], Any]
    weight: float
    slow: bool = False


HONEST: dict[str, Route] = {
    "fast": Route(partial(as_users_do, level="fast"), 6),
    "tight": Route(partial(as_users_do, level="tight"), 6),
    "exact": Route(partial(as_users_do, level="exact"), 6),
    "relaxed": Route(partial(at_level, level="tight", budgets=RELAX), 6),
    "branch and bound": Route(partial(at_level, level="exact", budgets=BRANCH), 6),
    "strengthened": Route(partial(at_level, level="exact", budgets=STRENGTHEN), 6),
    "wide fast": Route(partial(at_level, level="fast", budgets=WIDE), 6),
    "wide tight": Route(partial(at_level, level="tight", budgets=WIDE), 6),
    "wide long": Route(partial(at_level, level="tight", budgets=WIDE_LONG), 0.7, True),
    "stopped": Route(stopped, 6),
    "saved": Route(saved, 6),
    "checkpoint": Route(checkpoint, 3.3),
    "along": Route(along, 3),
    "FeatureSparsePCA": Route(shared_estimator, 6),
    "partial_fit": Route(partial_fit, 7.5),
    "nonnegative fast": Route(partial(nonnegative_at, level="fast", budgets=Budgets()), 6),
    "nonnegative net": Route(partial(nonnegative_at, level="net", budgets=Budgets()), 6),
    "nonnegative wide": Route(partial(nonnegative_at, level="tight", budgets=WIDE), 6),
    "nonnegative tight": Route(
        partial(nonnegative_at, level="tight", budgets=SHORT_CONES), 1, True
    ),
    "nonnegative exact": Route(partial(nonnegative_at, level="exact", budgets=CONES), 1, True),
    "nonnegative branches": Route(
        partial(nonnegative_at, level="exact", budgets=SHORT_CONES), 1, True
    ),
    "NonnegativeSparsePCA": Route(nonnegative_estimator, 0.8, True),
    "ElementSparsePCA": Route(separate_estimator, 3),
    "record": Route(record, 1.5, True),
    "path": Route(path, 1, True),
    "auto": Route(partial(shared_estimator, solvers=("auto", "exact")), 0.4, True),
    "path auto": Route(partial(path, solver="auto"), 0.2, True),
}
