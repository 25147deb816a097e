"""The fuzzer: its oracle against plain formulas, a lie that it catches, a few seconds of it."""

import json
import subprocess
import sys
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from benchmarks.soundness import counts, fuzz, mutations, oracle, reduce
from benchmarks.soundness.all_routes import ROUTES
from benchmarks.soundness.claims import Judgement, check_joint, check_nonnegative, check_shared
from benchmarks.soundness.examine import examine
from benchmarks.soundness.joint_oracle import JointTruth, Limits, all_patterns, interval
from benchmarks.soundness.joint_routes import JOINT, SHORT, JointTrial, Question, n_patterns
from benchmarks.soundness.problems import KINDS, Case, draw
from benchmarks.soundness.routes import Trial
from kspan.proofs.check.witnesses import SplitPathWitness
from kspan.proofs.search.tree_state import Budgets
from tests.oracles import best_by_enumeration, nonnegative_optimum

HERE = Path(counts.__file__).parent

pytestmark = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 63, reason="long doubles are doubles on this machine"
)


def plain_case(rng, **changes):
    return Case("dense", rng.standard_normal((20, 6)), **{"m": 2, "k": 3, **changes})


# --- the oracle


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("kind", ["dense", "float32", "integers", "sparse"])
def test_covariances_are_those_of_numpy(rng, scale, kind):
    X = rng.standard_normal((15, 5)) * 10
    X = {"float32": X.astype(np.float32), "integers": X.astype(int)}.get(kind, X)
    given = scipy.sparse.csr_array(X) if kind == "sparse" else X
    wanted = np.corrcoef(X.T.astype(float)) if scale else np.cov(X.T.astype(float))
    np.testing.assert_allclose(
        oracle.covariance(given, scale=scale).astype(float), wanted, rtol=1e-12, atol=1e-13
    )


def test_a_large_mean_costs_the_oracle_no_digits():
    X = np.array([[1.0, 4.0], [2.0, 1.0], [4.0, 3.0], [5.0, 0.0]])
    A = oracle.covariance(X)
    np.testing.assert_array_equal(oracle.covariance(X + 2.0**50), A)
    assert A[0, 0] == np.longdouble(10) / 3
    assert A[0, 1] == -2


def test_constant_columns_have_no_variance(rng):
    X = rng.standard_normal((9, 3))
    X[:, 1] = 0.1
    for scale in (False, True):
        A = oracle.covariance(X, scale=scale)
        assert not A[1].any()
        assert not A[:, 1].any()


def test_eigenvalues_of_extreme_sizes():
    """λ of [[a, b], [b, c]], by the formula."""
    for size in (1e-300, 1.0, 1e300):
        a, b, c = np.longdouble(3) * size, np.longdouble(1) * size, np.longdouble(2) * size
        values = np.sort(oracle.eigensystems(np.array([[[a, b], [b, c]]]))[0][0])
        root = np.sqrt(((a - c) / 2) * ((a - c) / 2) + b * b)
        np.testing.assert_allclose(values, [(a + c) / 2 - root, (a + c) / 2 + root], rtol=1e-18)


def test_optima_are_those_of_enumeration(rng):
    X = rng.standard_normal((15, 6))
    A, truth = np.cov(X.T), oracle.Truth(oracle.covariance(X))
    for m, k in ((1, 1), (1, 3), (2, 2), (2, 4), (3, 6)):
        assert float(truth.optimum(m, k)) == pytest.approx(best_by_enumeration(A, m, k), rel=1e-12)
    wanted = best_by_enumeration(A, 2, 3, [0], [4])
    assert float(truth.optimum(2, 3, [0], [4])) == pytest.approx(wanted, rel=1e-12)
    for k in (1, 3, 6):
        points, values = truth.nonnegative_points(k)
        assert (points >= 0).all()
        assert ((points > 0).sum(axis=1) <= k).all()
        assert float(values.max()) == pytest.approx(nonnegative_optimum(A, k), rel=1e-12)


def test_ties_are_all_found():
    truth = oracle.Truth(oracle.exact(np.eye(4)))
    assert len(truth.optimal_supports(1, 2)) == 6
    small = np.longdouble("1e-18")  # what rounding leaves of a tie
    truth = oracle.Truth(np.diag([1 + small, np.longdouble(1), 1 - small]))
    assert len(truth.optimal_supports(1, 1)) == 3


def test_deflations(rng):
    X = rng.standard_normal((15, 4))
    A = oracle.covariance(X)
    x, y = np.array([0.6, 0.8, 0, 0]), np.array([0, 0.8, 0.6, 0])
    removed = oracle.deflated(A, [x], "remove")
    assert not removed[:2].any()
    np.testing.assert_array_equal(removed[2:, 2:], A[2:, 2:])
    for how in ("projection", "orthogonalized"):
        left = oracle.deflated(A, [x, y], how).astype(float)
        np.testing.assert_allclose(left @ y, 0, atol=1e-15)
    np.testing.assert_allclose(left @ x, 0, atol=1e-15)
    assert oracle.deflated(A, [x, x], "orthogonalized") is None
    left = oracle.deflated(A, [x], "schur").astype(float)
    np.testing.assert_allclose(left @ x, 0.0, atol=1e-12 * float(np.abs(A).max()))
    assert oracle.deflated(A, [x, x], "schur") is None


@pytest.mark.parametrize(
    "limits",
    [
        Limits(5, (3, 3), 6), Limits(5, (3, 2), 4), Limits(5, (5, 5), 5), Limits(4, (3, 3, 3), 9),
        Limits(5, (2, 2, 2), 6), Limits(5, (1, 2, 2), 5), Limits(6, (3, 3), 6, True),
        Limits(6, (6, 6, 6), 5, True),
    ],
    ids=str,
)  # fmt: skip
def test_joint_optima_are_those_of_a_search_over_cells(rng, limits):
    """That has bounds on both sides, in doubles."""
    X = rng.standard_normal((12, limits.n_features))
    A = np.cov(X.T)
    truth = JointTruth(oracle.Truth(oracle.covariance(X)), limits)
    low, high = (value * np.diag(A).max() for value in interval(A, limits))
    assert low * (1 - 1e-11) <= truth.reached <= high * (1 + 1e-11)
    assert truth.reached <= truth.above * (1 + 1e-18)
    assert truth.above >= low * (1 - 1e-11)
    if limits.disjoint or max(limits.limits) == 2:
        assert truth.above == pytest.approx(truth.reached, rel=1e-17)
        assert truth.optimal()


def test_a_feature_that_two_share_is_used_by_one():
    """Supports {0, 1} and {1, 2}: 3.5 on the first two, where 1 is worth more, and 1."""
    A = np.array([[2.0, 1.5, 0.0], [1.5, 2.0, 0.0], [0.0, 0.0, 1.0]])
    truth = JointTruth(oracle.Truth(oracle.exact(A)), Limits(3, (2, 2), 4))
    assert truth.settle(((0, 1), (1, 2))) == pytest.approx((4.5, 4.5), rel=1e-18)
    assert (truth.reached, truth.above) == pytest.approx((4.5, 4.5), rel=1e-18)
    assert sorted(truth.optimal()) == [((0, 1), (0, 2)), ((0, 1), (1, 2))]
    loadings = np.sqrt([[0.5, 0.5], [0.5, 0.5], [0.0, 0.0]]) * [[1, 1], [1, -1], [0, 0]]
    assert truth.value(loadings, ((0, 1), (0, 1))) == pytest.approx(4, rel=1e-18)


def test_what_limits_allow():
    limits = Limits(4, (2, 1), 3)
    apart = np.array([[1, 0], [1, 0], [0, 1], [0, 0]], dtype=bool)
    shared = np.array([[1, 0], [1, 1], [0, 0], [0, 0]], dtype=bool)
    assert limits.allow(apart)
    assert limits.allow(shared)
    assert not limits.allow(apart[:, ::-1])
    assert not limits.allow(apart[:, [0, 0]] & ~apart)
    assert not replace(limits, total=2).allow(apart)
    assert not replace(limits, disjoint=True).allow(shared)
    assert n_patterns(limits) == len(all_patterns(limits)) == 24


# --- what it catches


def test_lies_are_caught(rng):
    trial = Trial(plain_case(rng), 0)
    honest = trial.prove("exact", Budgets())
    supports = {frozenset(s) for s in combinations(range(6), 3)} - {frozenset(honest.support)}
    other = np.array(sorted(next(iter(supports))))
    lies = {
        "upper": {"upper": honest.upper * (1 - 1e-9), "lower": honest.lower * (1 - 1e-8)},
        "lower": {"lower": honest.lower * (1 + 1e-10), "upper": 2 * honest.upper},
        "optimal": {"support": other},
        "proved_in": {"proved_in": np.arange(6)},
        "proved_out": {"proved_out": np.arange(6)},
    }
    for claim, changes in lies.items():
        judge = Judgement()
        check_shared(replace(honest, **changes), trial.problem, trial.truth, judge)
        assert claim in {found for found, _ in judge.wrong}
    judge = Judgement()
    check_shared(honest, trial.problem, trial.truth, judge)
    assert judge.wrong == []
    assert judge.certificates == 1
    assert judge.values == 5


def test_lies_about_nonnegative_components_are_caught(rng):
    trial = Trial(plain_case(rng), 0)
    honest = trial.prove_nonnegative("fast", Budgets())
    for changes in ({"upper": honest.lower * 0.9, "lower": 0.0}, {"weights": -honest.weights}):
        judge = Judgement()
        check_nonnegative(replace(honest, **changes), trial.nonnegative, trial.truth, judge)
        assert judge.wrong


def joint_trial(case, seeds=range(50), **wanted):
    """A trial whose question has these counts."""
    for seed in seeds:
        trial = Trial(case, seed)
        limits = Question.draw(trial).limits
        if all(getattr(limits, name) == value for name, value in wanted.items()):
            return JointTrial(Trial(case, seed))
    raise AssertionError("no such question")


@pytest.mark.parametrize("disjoint", [False, True])
def test_lies_about_joint_certificates_are_caught(rng, disjoint):
    joint = joint_trial(plain_case(rng, k=2), limits=(2, 2), total=4, disjoint=disjoint)
    honest = joint.prove("exact", Budgets())
    assert honest.status.value == "optimal"
    single = {"support": np.array([0, 1]), "weights": np.eye(2)}
    used, best = np.unique(joint.truth.optimal()[0]), float(joint.truth.reached)
    lies = {
        "upper": {"upper": best * (1 - 1e-9), "lower": best * (1 - 1e-8)},
        "lower": {"lower": best * (1 + 1e-10), "upper": 2 * best},
        "optimal": single,
        "weights": {"support": np.arange(3), "weights": np.linalg.qr(np.ones((3, 2)))[0]},
        "proved_in": {"proved_in": np.arange(6)},
        "proved_out": {"proved_out": used[:1]},
        "verify refuses": {"upper": 2 * honest.upper},  # with the digest of another one
    }
    for claim, changes in lies.items():
        judge = Judgement()
        check_joint(replace(honest, **changes), joint.problem, joint.truth, judge)
        assert claim in {found for found, _ in judge.wrong}
    judge = Judgement()
    check_joint(honest, joint.problem, joint.truth, judge)
    assert judge.wrong == []
    assert judge.certificates == 1


def test_joint_searches_branch(rng):
    case = plain_case(rng, k=3)
    found = [JointTrial(Trial(case, seed)).prove("exact", SHORT) for seed in range(6)]
    assert sum(certificate.method == "joint branch and bound" for certificate in found) >= 2
    assert any(record.kind == "open" for one in found for record in records_of(one))
    assert any(record.cuts for one in found for record in records_of(one))


def records_of(certificate):
    return getattr(certificate.witness, "records", [])


def test_questions_have_all_kinds_of_counts(rng):
    case = plain_case(rng, k=3)
    counts = [Question.draw(Trial(case, seed)).counts for seed in range(60)]
    for name in ("n_nonzero_coefs", "n_nonzero_total"):
        assert {type(one[name]) for one in counts} >= {int, type(None)}
    assert any(isinstance(one["n_nonzero_coefs"], list) for one in counts)
    assert {one["disjoint"] for one in counts} == {False, True}


@pytest.mark.parametrize("route", JOINT)
def test_joint_certificates_hold(rng, route):
    found = [examine(plain_case(rng, m=m, k=3), route, seed=m) for m in (2, 3)]
    assert [judgement.wrong for judgement in found] == [[], []]
    assert sum(judgement.certificates for judgement in found) >= 2


def test_proofs_along_a_split_are_tried(rng, monkeypatch):
    """Small as the problems are, some splits say more than variances; a lie is found out."""
    cases = [replace(plain_case(rng, m=1, k=2), data=rng.standard_normal((20, 7))) for _ in "abc"]
    found = [examine(case, "along", seed) for case in cases for seed in range(5)]
    assert [judgement.wrong for judgement in found] == [[]] * 15
    assert sum(judgement.certificates for judgement in found) >= 40
    assert sum(judgement.values for judgement in found) >= 120
    honest = SplitPathWitness.upper_at
    monkeypatch.setattr(
        SplitPathWitness, "upper_at", lambda self, choice, k: 0.6 * honest(self, choice, k)
    )
    judged = [examine(case, "along", seed) for case in cases for seed in range(5)]
    claims = {claim for judgement in judged for claim, _ in judgement.wrong}
    assert "upper_at" in claims


def test_what_a_route_raises_is_judged(rng, monkeypatch):
    def raises(trial):
        raise np.linalg.LinAlgError("no eigenvalues")

    monkeypatch.setitem(ROUTES, "broken", replace(ROUTES["fast"], run=raises))
    for kind in ("dense", "any scale"):  # a crash is no refusal
        case = replace(plain_case(rng), kind=kind)
        assert examine(case, "broken", 0).wrong[0][0] == "raises LinAlgError"
    refuses = replace(ROUTES["fast"], run=lambda trial: [][0] if trial is None else int("no"))
    monkeypatch.setitem(ROUTES, "refuses", refuses)
    assert examine(replace(plain_case(rng), kind="any scale"), "refuses", 0).refused == 1
    assert examine(plain_case(rng), "refuses", 0).wrong


def test_a_verify_that_believes_everything_is_found_out(rng, monkeypatch):
    monkeypatch.setattr(mutations, "verify", lambda problem, certificate: None)
    case = plain_case(rng)
    for route in ("forged certificate", "forged nonnegative", "forged joint"):
        found = [examine(case, route, seed) for seed in range(5)]
        assert sum(judgement.forgeries for judgement in found) >= 20
        assert any("accepted" in claim for judgement in found for claim, _ in judgement.wrong)


@pytest.mark.parametrize("route", ["checkpoint", "interrupt", "kill", "stopped"])
def test_faults_do_no_harm(rng, route):
    for seed in range(3):
        assert examine(plain_case(rng), route, seed).wrong == []


def test_failures_are_reduced_to_scripts_that_show_them(rng, monkeypatch, tmp_path, capsys):
    """A route that fails whenever column 0 has a positive number."""

    def fails(trial):
        if (trial.case.data[:, 0] > 0).any():
            trial.judge.complain("positive", "there is a positive number")

    monkeypatch.setitem(ROUTES, "fails", replace(ROUTES["fast"], run=fails))
    found = reduce.Failure(plain_case(rng, include=(1,)), "fails", 3, "positive", "")
    small = reduce.reduced(found, seconds=5)
    assert small.case.data.shape == (2, 1)
    assert (small.case.m, small.case.k, small.case.include) == (1, 1, ())
    place = reduce.save(small, tmp_path)
    exec(compile(place.read_text(), place, "exec"), {})
    assert capsys.readouterr().out == "there is a positive number\n"


# --- fuzzing


def test_every_kind_makes_problems():
    rng = np.random.default_rng(0)
    for kind in KINDS:
        for _ in range(20):
            case = draw(rng, (kind,))
            assert 1 <= case.m <= case.k <= case.d - len(case.exclude)
            assert len(case.include) <= case.k
            assert not {*case.include} & {*case.exclude}
            assert case.truth().A.max() > 0


def test_plain_problems_pass_on_plain_routes():
    found, failures = fuzz.fuzz(
        3.0, seed=1, kinds=("dense", "wide", "given", "integers"),
        routes=("fast", "tight", "exact", "branch and bound", "saved", "nonnegative fast"),
    )  # fmt: skip
    assert [failure.sentence for failure in failures] == []
    whole = found.total()
    assert whole.certificates > 30
    assert whole.wrong == 0


def test_the_command_prints_its_seed_and_its_counts(tmp_path):
    command = [sys.executable, "-m", "benchmarks.soundness", "--seconds", "0.5", "--seed", "12"]
    only = ["--kind", "dense", "--route", "exact", "--failures", str(tmp_path)]
    done = subprocess.run(
        command + only, cwd=HERE.parents[1], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("seed 12\n")
    assert " 0 wrong" in done.stdout
    assert not list(tmp_path.iterdir())


def test_features_that_tell_under_rules_that_end_a_greedy_choice():
    data = np.array([[0.2, -2.0, -2.0, -2.0, 2.0], [0.1, -0.4, 0.5, -2.0, -4.0]])
    found = examine(Case("dense", data, m=3, k=3), "represent rules", 1790581277)
    assert not found.wrong


# --- the committed table


def test_counts_add_up(tmp_path):
    once = counts.Counts()
    once.note("dense", "fast", Judgement(certificates=2, worst=1e-15), 0.5)
    once.runs.append({"seed": "1"})
    counts.add_to_files(once, tmp_path)
    counts.add_to_files(once, tmp_path)
    record = json.loads((tmp_path / "soundness.json").read_text())
    whole = counts.Counts.from_record(record).total()
    assert (whole.cases, whole.certificates, whole.worst, whole.seconds) == (2, 4, 1e-15, 1.0)
    assert len(record["runs"]) == 2
    assert (tmp_path / "soundness.md").read_text() == counts.markdown(record)


def test_the_committed_table_says_that_nothing_is_wrong():
    record = json.loads((HERE / "soundness.json").read_text())
    assert (HERE / "soundness.md").read_text() == counts.markdown(record)
    whole = counts.Counts.from_record(record)
    assert whole.n_open == 0
    assert whole.net_is_honest()
    assert counts.summary(record) in counts.PAGE.read_text()
