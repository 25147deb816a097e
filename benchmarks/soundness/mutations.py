"""False certificates and records, as a forger would make them: signed again, and offered.

Each must be refused with a `ValueError` (`CertificateError` is one), or be true all the same.
"""

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from benchmarks.soundness import oracle
from benchmarks.soundness.claims import (
    TOLERANCE,
    Judgement,
    check_bounds,
    check_joint_claims,
    check_settled,
    check_upper_at,
    check_weights,
    violation,
)
from benchmarks.soundness.joint_oracle import JointTruth
from benchmarks.soundness.joint_routes import LONGER, SHORT, JointTrial
from benchmarks.soundness.problems import scratch_file
from benchmarks.soundness.routes import (
    BRANCH,
    RELAX,
    SHORT_CONES,
    STRENGTHEN,
    WIDE,
    Trial,
    path,
    shared_estimator,
)
from kspan import Certificate, FitRecord, verify
from kspan.progress import Status
from kspan.proofs.check.known import KnownMatrix
from kspan.proofs.check.witnesses import PathWitness
from kspan.proofs.search.tree_state import Budgets

Generator = np.random.Generator

# Numbers of a record hold to so many digits, as its documentation says, bounds to `TOLERANCE`.
RECORD_TOLERANCE = {"float64": 1e-6, "float32": 1e-3}

# Forgeries of each certificate or record: making an honest one is what takes time.
FORGERIES = 6


# --- any number or array, wherever it is


def leaves(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield all numbers, texts and arrays in dataclasses and lists, with the way to them."""
    if is_dataclass(value):
        for entry in fields(value):
            yield from leaves(getattr(value, entry.name), (*place, entry.name))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from leaves(item, (*place, i))
    else:
        yield place, value


def changed(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    """Return the tree with another value at the end of the way."""
    if not place:
        return new
    first, rest = place[0], place[1:]
    if isinstance(value, list):
        return [changed(item, rest, new) if i == first else item for i, item in enumerate(value)]
    return replace(value, **{first: changed(getattr(value, first), rest, new)})


def spoiled_array(rng: Generator, array: np.ndarray) -> np.ndarray:
    """Return an array with something wrong in it, or about it."""
    if array.dtype.kind in "iu":
        ways = [
            array[:0], array + 1, array[::-1], np.zeros_like(array), array.astype(float),
            array.astype(np.int8), np.append(array, 0).astype(array.dtype), -array - 1,
            array.reshape(-1, 1), array.astype(np.uint64),
        ]  # fmt: skip
        return ways[rng.integers(len(ways))]
    if array.dtype.kind == "b":
        return ~array
    if array.dtype.kind != "f":
        return array
    with np.errstate(all="ignore"):
        other = array * (1 + 10 ** rng.uniform(-9, 0) * rng.standard_normal(array.shape))
        one = array.copy()
        if one.size:
            one.flat[rng.integers(one.size)] = rng.choice(
                [np.nan, np.inf, 0.0, 1e9, -1e300, 1e-300]
            )
        ways = [
            other, other, one, one, array * 10 ** rng.uniform(-9, 9), -array, array * 0,
            array + 1j, array.astype(np.float32), (array * 100 % 100).astype(np.int8),
            array[..., :0], array[:1], np.concatenate([array, array], axis=-1),
            np.zeros(array.shape[:1] + (2000,)), array.astype(str), array.astype(np.float16),
        ]  # fmt: skip
    return ways[rng.integers(len(ways))]


def spoiled(rng: Generator, value: Any) -> Any:
    """Return another value in the place of one."""
    if isinstance(value, np.ndarray):
        return spoiled_array(rng, value)
    if isinstance(value, bool | np.bool_):
        return not value
    if isinstance(value, int | np.integer):
        return int(rng.choice([value + 1, value - 1, 0, -1, 10**9]))
    if isinstance(value, float | np.floating):
        smaller = value - abs(value) * 10 ** rng.uniform(-12, 0)
        return float(rng.choice([smaller, smaller, 4 * value, -value, np.nan, np.inf, 0.0]))
    if isinstance(value, str):
        return str(rng.choice(["", "void", "enumerated", "bound", "open", "nonnegative"]))
    if isinstance(value, Status):
        return Status.OPTIMAL
    return [None, 0.0, np.zeros(2), "", []][rng.integers(5)]


# --- certificates


def any_change(certificate: Certificate, problem: Any, rng: Generator) -> Certificate:
    """One value somewhere is another one."""
    places = [(p, v) for p, v in leaves(certificate) if p[0] not in ("digest", "history")]
    place, value = places[rng.integers(len(places))]
    return replace(changed(certificate, place, spoiled(rng, value)), digest="")


def lower_upper(certificate: Certificate, problem: Any, rng: Generator) -> Certificate:
    """A better bound than there is, by a little or by much."""
    upper = certificate.upper * (1 - 10 ** rng.uniform(-11.5, -0.5))
    lower = min(certificate.lower, upper)
    return replace(certificate, upper=upper, lower=lower, status=Status.OPTIMAL, digest="")


def raise_lower(certificate: Certificate, problem: Any, rng: Generator) -> Certificate:
    """A better value than was reached."""
    lower = certificate.lower * (1 + 10 ** rng.uniform(-11.5, -0.5))
    return replace(certificate, lower=lower, upper=max(lower, certificate.upper), digest="")


def call_optimal(certificate: Certificate, problem: Any, rng: Generator) -> Certificate:
    """Say that nothing is better."""
    return replace(certificate, status=Status.OPTIMAL, digest="")


def settle(certificate: Certificate, problem: Any, rng: Generator) -> Certificate:
    """Features that were never proved in or out."""
    features = rng.permutation(certificate.n_features)[: rng.integers(1, 3)]
    name = str(rng.choice(["proved_in", "proved_out"]))
    return replace(certificate, **{name: np.sort(features)}, digest="")


def other_support(certificate: Certificate, problem: Any, rng: Generator) -> Certificate:
    """Other features, said to explain as much."""
    support = np.sort(rng.permutation(certificate.n_features)[: certificate.support.size])
    return replace(certificate, support=support, digest="")


def other_witness(certificate: Certificate, problem: Any, rng: Generator) -> Certificate:
    """A spoiled witness, with the bound that follows from it: it may be loose, never false."""
    witness = certificate.witness
    for _ in range(int(rng.integers(1, 4))):
        places = [(p, v) for p, v in leaves(witness) if isinstance(v, np.ndarray | float)]
        if not places:
            break
        place, value = places[rng.integers(len(places))]
        if isinstance(value, float):
            new: Any = value * rng.choice([0.25, 0.9, 4.0, 1 - 1e-9])
        else:
            new = spoiled_array(rng, value)
        witness = changed(witness, place, new)
    try:
        follows = float(witness.evaluate(problem))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        follows = certificate.upper
    upper = min(follows, certificate.upper)
    return replace(
        certificate, witness=witness, upper=upper, lower=min(certificate.lower, upper), digest=""
    )


def other_cones(certificate: Certificate, problem: Any, rng: Generator) -> Certificate:
    """One entry of some cones is another one, and the bound the same or a better one."""
    arrays = [(p, v) for p, v in leaves(certificate.witness) if isinstance(v, np.ndarray)]
    places = [(p, v) for p, v in arrays if "cones" in p and v.size]
    if not places:
        return other_witness(certificate, problem, rng)
    place, value = places[rng.integers(len(places))]
    new = value.copy()
    entry = int(rng.integers(new.size))
    new.flat[entry] *= value.dtype.type(rng.choice([0.0, -1.0, 0.5, 1 - 1e-6, 1.1, 10.0, 1e6]))
    witness = changed(certificate.witness, place, new)
    upper = certificate.upper * (1 - rng.choice([0.0, 10 ** rng.uniform(-11, -1)]))
    lower = min(certificate.lower, upper)
    return replace(certificate, witness=witness, upper=upper, lower=lower, digest="")


def huge_path(certificate: Certificate, problem: Any, rng: Generator) -> Certificate:
    """A witness B = t·I for other k, whose scores hide what is lacking in its rounding."""
    features = problem.choice.features
    known = KnownMatrix.of(problem, features)
    factor = np.eye(features.size) * 10 ** rng.uniform(0, 5)
    made = PathWitness.of(problem, known, factor, None)
    size = float(made.scores.max()) + abs(made.ky_fan)
    less = size * 10 ** rng.uniform(-12, -9)
    forged = replace(made, scores=made.scores - less, ky_fan=made.ky_fan - less)
    return replace(certificate, path=[*certificate.path, forged], digest="")


def less_path(certificate: Certificate, problem: Any, rng: Generator) -> Certificate:
    """The numbers of a witness for other k, made smaller."""
    if not certificate.path:
        return huge_path(certificate, problem, rng)
    place = int(rng.integers(len(certificate.path)))
    old = certificate.path[place]
    less = 10 ** rng.uniform(-12, -1)
    new = replace(old, ky_fan=old.ky_fan - less * abs(old.ky_fan), scores=old.scores * (1 - less))
    return replace(changed(certificate, ("path", place), new), digest="")


def other_records(certificate: Certificate, problem: Any, rng: Generator) -> Certificate:
    """A tree with records that are missing, or of another kind, or claim less."""
    records = getattr(certificate.witness, "records", None)
    if not records:
        return lower_upper(certificate, problem, rng)
    i = int(rng.integers(len(records)))
    old = records[i]
    ways: list[dict[str, Any]] = [
        {"kind": str(rng.choice(["void", "enumerated", "bound", "open", "branched"]))},
        {"bound": old.bound * (1 - 10 ** rng.uniform(-11, 0))}, {"children": []}, {"witness": 0},
        {"children": old.children[::-1]}, {"witness": -1},
    ]  # fmt: skip
    if hasattr(old, "included"):
        ways += [{"reductions": []}, {"included": not old.included}]
    else:  # of patterns
        ways += [{"cuts": []}, {"team": old.team + 1}, {"feature": old.feature + 1}]
        ways += [{"cuts": [replace(cut, removed=cut.fixed, fixed=cut.removed) for cut in old.cuts]}]
    changes = ways[rng.integers(len(ways))]
    witness = changed(certificate.witness, ("records", i), replace(old, **changes))
    if rng.random() < 0.2:
        witness = replace(witness, records=witness.records[:i])
    lower = certificate.lower
    upper = max(lower, certificate.upper * (1 - 10 ** rng.uniform(-11, 0)))
    return replace(certificate, witness=witness, upper=upper, digest="")


Change = Callable[[Certificate, Any, Generator], Certificate]
CHANGES: tuple[Change, ...] = (
    any_change, any_change, lower_upper, raise_lower, call_optimal, settle, other_support,
    other_witness, other_witness, other_cones, other_cones, huge_path, less_path, other_records,
)  # fmt: skip


def offer(
    change: Change, certificate: Certificate, problem: Any, truth: oracle.Truth | JointTruth,
    trial: Trial,
) -> None:  # fmt: skip
    """Forge a certificate, and see that `verify` refuses it or that it is true."""
    judge_forgery(
        f"forgery {change.__name__}", trial.judge,
        make=lambda: change(certificate, problem, trial.rng),
        check=lambda forged: verify(problem, forged),
        false=lambda forged: false_claims(forged, problem, truth),
    )  # fmt: skip


def judge_forgery(
    name: str, judge: Judgement, make: Callable[[], Any], check: Callable[[Any], Any],
    false: Callable[[Any], Judgement],
) -> None:  # fmt: skip
    """Offer a forgery: it must be refused, or be true all the same.

    Parameters
    ----------
    name : of the forgery
    make : makes it; what refuses to be made of such values by a `ValueError` has refused it, what
        cannot be made at all is not counted
    check : what must refuse it, by a `ValueError` and nothing else
    false : what is not true about it
    """
    try:
        forged = make()
    except ValueError:
        judge.forgeries += 1
        return
    except (ArithmeticError, AttributeError, LookupError, TypeError):
        return
    judge.forgeries += 1
    try:
        check(forged)
    except Exception as error:  # nothing but a ValueError may reach whoever verifies
        if isinstance(error, ValueError) and not isinstance(error, np.linalg.LinAlgError):
            return
        judge.complain(f"{name} raises {type(error).__name__}", f"{name}: {error!r}")
        return
    try:
        wrong = false(forged).wrong
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        wrong = [("malformed", f"what it holds cannot be used: {error!r}")]
    judge.accepted += not wrong
    for claim, sentence in wrong:
        judge.complain(f"{name} accepted, {claim}", f"{name} is accepted: {sentence}")


def false_claims(
    certificate: Certificate, problem: Any, truth: oracle.Truth | JointTruth
) -> Judgement:
    """Return what an accepted forgery says that is not true."""
    judge = Judgement()
    if isinstance(truth, JointTruth):
        check_joint_claims(certificate, truth, judge)
        return judge
    m, k = problem.n_components, problem.choice.size
    if problem.nonnegative:
        points, values = truth.nonnegative_points(k)
        reached = truth.nonnegative_value(certificate.support, certificate.weights)
        check_bounds(certificate, reached, values.max(), judge)
        best = points[values >= values.max() * (1 - oracle.TIED)]
        check_settled(certificate, [np.flatnonzero(x) for x in best], judge)
        return judge
    rules = problem.choice.include.tolist(), problem.choice.exclude.tolist()
    reached = truth.value(m, np.asarray(certificate.support, dtype=np.intp))
    check_bounds(certificate, reached, truth.optimum(m, k, *rules), judge)
    check_weights(certificate, truth, judge)
    check_settled(certificate, truth.optimal_supports(m, k, *rules), judge)
    for size in range(max(m, len(rules[0])), truth.d - len(rules[1]) + 1):
        check_upper_at(certificate, size, truth.optimum(m, size, *rules), judge)
    return judge


def forged_certificate(trial: Trial) -> None:
    """Change an honest certificate of shared features in some ways."""
    level, budgets = [
        ("fast", Budgets()), ("fast", WIDE), ("tight", RELAX), ("exact", BRANCH),
        ("exact", Budgets()), ("tight", WIDE), ("tight", STRENGTHEN), ("exact", STRENGTHEN),
    ][trial.rng.integers(8)]  # fmt: skip
    honest = trial.prove(level, budgets)
    if false_claims(honest, trial.problem, trial.truth).wrong:
        return  # other routes tell of it
    for _ in range(FORGERIES):
        change = CHANGES[trial.rng.integers(len(CHANGES))]
        offer(change, honest, trial.problem, trial.truth, trial)


def forged_nonnegative(trial: Trial) -> None:
    """The same for a nonnegative component."""
    if not trial.nonnegative.choice.features.size:
        return
    level = str(trial.rng.choice(["fast", "fast", "tight", "exact"]))
    honest = trial.prove_nonnegative(level, SHORT_CONES)
    if false_claims(honest, trial.nonnegative, trial.truth).wrong:
        return
    for _ in range(2 * FORGERIES):
        change = CHANGES[trial.rng.integers(len(CHANGES))]
        offer(change, honest, trial.nonnegative, trial.truth, trial)


def forged_joint(trial: Trial) -> None:
    """The same for components with counts of their own."""
    joint = JointTrial(trial)
    level = str(trial.rng.choice(["fast", "tight", "exact", "exact"]))
    honest = joint.prove(level, (SHORT, LONGER)[trial.rng.integers(2)])
    if false_claims(honest, joint.problem, joint.truth).wrong:
        return
    for _ in range(2 * FORGERIES):
        change = CHANGES[trial.rng.integers(len(CHANGES))]
        offer(change, honest, joint.problem, joint.truth, trial)


# --- files


def damaged_file(trial: Trial) -> None:
    """A file with other bytes: it is refused in a sentence, or holds what is true."""
    rng, place = trial.rng, scratch_file(".damaged.npz")
    honest = trial.prove(str(rng.choice(["fast", "exact"])), BRANCH)
    if false_claims(honest, trial.problem, trial.truth).wrong:
        return
    honest.save(place)
    whole = place.read_bytes()

    def damaged() -> Any:
        data = bytearray(whole)
        for _ in range(int(rng.integers(1, 4))):
            data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
        if rng.random() < 0.3:
            del data[rng.integers(len(data)) :]
        place.write_bytes(data)
        return place

    for _ in range(FORGERIES):
        judge_forgery(
            "damaged file", trial.judge, make=damaged,
            check=lambda path: verify(trial.problem, Certificate.load(path)),
            false=lambda path: false_claims(Certificate.load(path), trial.problem, trial.truth),
        )  # fmt: skip


# --- records


def forged_record(trial: Trial) -> None:
    """Change the record of a fit: parameters, numbers, certificates, bounds of its path."""
    case, rng = trial.case, trial.rng
    if case.form in ("stream", "sketch"):
        return
    quiet = Trial(case, trial.seed, trial.truth)
    estimator = shared_estimator(quiet)
    if not hasattr(estimator, "components_"):
        return  # a selector has none, and no record
    band = path(quiet) if rng.random() < 0.5 else None
    source = case.source()
    honest = FitRecord.from_estimator(estimator, source, path=band)
    if quiet.judge.wrong or false_record(honest, trial).wrong:
        return  # other routes tell of it
    for _ in range(2 * FORGERIES):
        change = RECORD_CHANGES[rng.integers(len(RECORD_CHANGES))]
        judge_forgery(
            f"record {change.__name__}", trial.judge,
            make=lambda change=change: change(honest, trial),
            check=lambda forged: forged.verify(source),
            false=lambda forged: false_record(forged, trial),
        )  # fmt: skip


def change_parameter(record: FitRecord, trial: Trial) -> FitRecord:
    """Say that something else was asked for."""
    names = sorted(record.parameters)
    name = names[trial.rng.integers(len(names))]
    new = spoiled(trial.rng, record.parameters[name])
    return replace(record, parameters={**record.parameters, name: new})


def change_number(record: FitRecord, trial: Trial) -> FitRecord:
    """Another number, or array, in the record itself."""
    names = (
        "support", "loadings", "mean", "scale", "explained_variance", "pca_variance",
        "total_variance", "objective", "scores", "samples", "n_samples", "n_features",
        "fingerprint", "estimator", "status",
    )  # fmt: skip
    name = names[trial.rng.integers(len(names))]
    return replace(record, **{name: spoiled(trial.rng, getattr(record, name))})


def change_type(record: FitRecord, trial: Trial) -> FitRecord:
    """Call it float32, where four digits are enough, and change the fifth."""
    more = 1 + 10 ** trial.rng.uniform(-6, -4)
    return replace(
        record, dtype="float32", objective=record.objective * more,
        explained_variance=record.explained_variance * more,
    )  # fmt: skip


def rotate(record: FitRecord, trial: Trial) -> FitRecord:
    """Other axes of the same plane, with the variances that they have."""
    m = record.loadings.shape[1]
    Q = np.linalg.qr(trial.rng.standard_normal((m, m)))[0]
    W = record.loadings @ Q
    A = trial.truth.A[np.ix_(record.support, record.support)].astype(float)
    return replace(record, loadings=W, explained_variance=np.diagonal(W.T @ A @ W).copy())


def complex_mean(record: FitRecord, trial: Trial) -> FitRecord:
    """A mean with an imaginary part."""
    return replace(record, mean=record.mean + 1e-9j)


def change_certificate(record: FitRecord, trial: Trial) -> FitRecord:
    """A forged certificate in a record."""
    if not record.certificates:
        return change_number(record, trial)
    change = CHANGES[trial.rng.integers(len(CHANGES))]
    forged = change(record.certificates[0], trial.problem, trial.rng)
    return replace(record, certificates=[forged])


def change_path(record: FitRecord, trial: Trial) -> FitRecord:
    """Better bounds of a path than there are, with and without a forged witness behind them."""
    rng, band = trial.rng, record.path
    if band is None:
        return change_number(record, trial)
    certificates = list(band.certificates)
    if certificates and rng.random() < 0.6:
        place = int(rng.integers(len(certificates)))
        problem = trial.problem.at(certificates[place].n_features_to_select)
        change = (huge_path, less_path)[rng.integers(2)]
        certificates[place] = change(certificates[place], problem, rng)
        uppers = [
            min(float(upper), *(c.upper_at(int(k)) for c in certificates if c.path))
            if any(c.path for c in certificates)
            else float(upper)
            for k, upper in zip(band.k, band.upper, strict=True)
        ]
        return replace(
            record, path=replace(band, certificates=certificates, upper=np.array(uppers))
        )
    upper = band.upper * (1 - 10 ** rng.uniform(-11.5, -1) * (rng.random(band.k.size) < 0.5))
    name = str(rng.choice(["upper", "objective", "full", "total_variance"]))
    if name == "upper":
        return replace(record, path=replace(band, upper=upper))
    return replace(
        record, path=replace(band, **{name: getattr(band, name) * (1 + 10 ** rng.uniform(-6, 0))})
    )


RECORD_CHANGES: tuple[Callable[[FitRecord, Trial], FitRecord], ...] = (
    change_parameter, change_number, change_number, change_type, rotate, complex_mean,
    change_certificate, change_certificate, change_path, change_path,
)  # fmt: skip


def false_record(record: FitRecord, trial: Trial) -> Judgement:
    """Return what an accepted record says that is not true."""
    judge, case, truth = Judgement(), trial.case, trial.truth
    double = case.data.dtype != np.float32
    tol = RECORD_TOLERANCE["float64" if double else "float32"]
    for certificate in record.certificates:
        found = false_claims(certificate, trial.problem, truth)
        judge.wrong += found.wrong
    real = all(
        np.asarray(getattr(record, name)).dtype.kind in "fiu"
        for name in ("support", "loadings", "mean", "explained_variance", "objective")
    )
    judge.need(real, "numbers", "not made of real numbers")
    if not real:
        return judge
    W, support = oracle.exact(record.loadings), np.asarray(record.support, dtype=np.intp)
    inside = W.T @ truth.A[np.ix_(support, support)] @ W
    reached = np.trace(inside)
    small = tol * max(reached, np.longdouble(0))
    error = abs(np.longdouble(record.objective) - reached)
    judge.need(error <= small, "objective", f"objective {record.objective!r}, in truth {reached!r}")
    error = np.abs(oracle.exact(record.explained_variance) - np.diagonal(inside)).max()
    judge.need(error <= small, "explained_variance", f"explained variances are off by {error!r}")
    beside = np.abs(inside - np.diag(np.diagonal(inside))).max()
    judge.need(beside <= 10 * small, "axes", "the components are not principal axes")
    if not case.given and case.form != "measured":
        X = oracle.exact(case.data)[:, support]
        spread = np.sqrt(((X - X.mean(axis=0)) ** 2).mean(axis=0))
        off = np.abs(oracle.exact(record.mean) - X.mean(axis=0))
        close = (off <= 10 * tol * spread + 1e-12 * np.abs(X).max(axis=0)).all()
        judge.need(bool(close), "mean", "the mean is not that of the data")
    if record.status == "optimal":
        optimum = truth.optimum(case.m, case.k, case.include, case.exclude)
        short = violation(optimum, reached, optimum)
        judge.need(short <= max(2e-6, tol), "status", f"optimal, but short by {short:.3g}")
    if record.path is not None:
        _false_path(record.path, trial, judge, tol)
    return judge


def _false_path(band: Any, trial: Trial, judge: Judgement, tol: float) -> None:
    case, truth = trial.case, trial.truth
    rows = zip(band.k, band.supports, band.objective, band.upper, strict=True)
    for k, support, objective, upper in rows:
        optimum = truth.optimum(case.m, int(k), case.include, case.exclude)
        judge.ordered("path upper", optimum, upper, optimum)
        reached = truth.value(case.m, np.asarray(support, dtype=np.intp))
        short = violation(objective, reached, optimum)
        judge.need(short <= max(tol, TOLERANCE), "path objective",
                   f"{objective!r} at k={k}, in truth {reached!r}")  # fmt: skip
