"""`verify` accepts what follows from the data and the witness, and nothing else."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan import RowSparseProblem, as_covariance
from kspan.progress import Status
from kspan.proofs import Certificate, CertificateError, verify
from kspan.proofs.check.row_sums import RowWitness
from kspan.proofs.check.screened import ScreenedWitness
from kspan.proofs.check.tree import NodeWitness, Record, Reduction, TreeWitness
from kspan.proofs.check.witnesses import (
    DualWitness,
    SampleWitness,
    SplitWitness,
    TraceWitness,
)
from kspan.proofs.search.tree_state import Budgets
from tests.effort import examples
from tests.proofs.helpers import (
    JUNK,
    RELAX,
    ROUNDING,
    changed,
    first_support,
    leaves,
    matrix_problem,
    optimum,
    prove,
    random_psd,
)

# Row sums settle nothing.
TREE = Budgets(enumerate_cost=0.0, row_sweeps=0)

# Enumerate nothing and strengthen nothing: what is left is branching.
BRANCH = Budgets(enumerate_cost=0.0, strengthen_gap=2.0, row_sweeps=0)

# No matrix of all features, and no problem of what is left of them.
WIDE = Budgets(dense_limit=0, split_iter=60, row_sweeps=0, narrower=0.0)


@cache
def case(name):
    """A problem, its matrix and an honest certificate whose witness has the named form."""
    rng = np.random.default_rng(1)
    A = random_psd(rng, 12, "gaussian")
    budgets = RELAX
    if name == "trace":
        A = np.diag([5.0, 1.0, 2.0, 4.0, 3.0])
        problem, level = matrix_problem(A, 2, 2), "fast"
    elif name == "rows":
        A = np.diag(np.linspace(1.0, 1.1, 8)) + 0.05
        problem, level = matrix_problem(A, 1, 2), "fast"
    elif name == "dual":
        problem, level = matrix_problem(A, 2, 5), "fast"
    elif name == "wide dual":
        X = rng.standard_normal((4, 3)) @ rng.standard_normal((3, 9))
        A, level = np.cov(X.T), "fast"
        problem, budgets = RowSparseProblem(as_covariance(X), 2, 7), WIDE
    elif name in ("split", "sample", "screened"):
        n, m = (30, 2) if name == "split" else (5, 1)
        X = rng.standard_normal((n, 9)) * np.linspace(0.5, 2, 9)
        A, level = np.cov(X.T), "tight"
        problem = RowSparseProblem(as_covariance(X), m, 4, [0], [8])
        budgets = WIDE if name != "screened" else replace(WIDE, narrower=0.99)
    elif name == "open tree":
        A = random_psd(np.random.default_rng(3), 12, "gaussian")
        problem, level, budgets = matrix_problem(A, 1, 5), "tight", TREE
    elif name == "tree":
        A = random_psd(np.random.default_rng(9), 12, "gaussian")
        problem, level, budgets = matrix_problem(A, 1, 5), "exact", BRANCH
    elif name == "constrained tree":
        problem, level = matrix_problem(A, 2, 5, [0], [3, 10]), "exact"
        budgets = BRANCH
    elif name == "enumerated":
        problem, level, budgets = matrix_problem(A, 1, 4), "exact", Budgets(row_sweeps=0)
    certificate = prove(problem, level, heuristic=level != "fast", budgets=budgets)
    return problem, A, certificate


WITNESS = {
    "trace": TraceWitness,
    "rows": RowWitness,
    "dual": DualWitness,
    "wide dual": DualWitness,
    "split": SplitWitness,
    "sample": SampleWitness,
    "screened": ScreenedWitness,
    "open tree": TreeWitness,
    "tree": TreeWitness,
    "constrained tree": TreeWitness,
    "enumerated": TreeWitness,
}
TREES = ("open tree", "tree", "constrained tree")
WITH_ARRAYS = ("dual", "wide dual", "split", "sample", "screened", *TREES)


def resigned(certificate, **changes):
    """A changed certificate with a digest that fits, as a forger would make it."""
    return replace(certificate, **changes, digest="")


def other_digit(array):
    """The array with one digit of its largest entry changed, or another index."""
    array = array.copy()
    place = np.unravel_index(np.abs(array).argmax(), array.shape)
    if array.dtype.kind in "iu":
        array[place] -= 1
    else:
        array[place] *= 1.1
    return array


def arrays_of(witness):
    return [(path, value) for path, value in leaves(witness) if isinstance(value, np.ndarray)]


# --- honest certificates


@pytest.mark.parametrize("name", WITNESS)
def test_honest_certificates_pass(name):
    problem, A, certificate = case(name)
    assert isinstance(certificate.witness, WITNESS[name])
    lower, upper = verify(problem, certificate)
    best, _ = optimum(problem, A)
    assert lower <= best * (1 + ROUNDING)
    assert upper >= best * (1 - ROUNDING)
    assert lower == pytest.approx(certificate.lower, rel=1e-9)
    assert upper <= certificate.upper * (1 + 1e-9)


def test_the_trees_here_have_all_that_a_tree_can_have():
    """Otherwise the tests below would test nothing."""
    records = [r for name in (*TREES, "enumerated") for r in case(name)[2].witness.records]
    assert {record.kind for record in records} == {"branched", "bound", "enumerated", "open"}
    assert any(cut.removed.size for record in records for cut in record.reductions)
    assert any(cut.fixed.size for record in records for cut in record.reductions)
    trees = [case(name)[2].witness for name in TREES]
    assert any(tree.shared_cones for tree in trees)
    assert any(w.shared >= 0 for tree in trees for w in tree.witnesses)


def test_a_second_verification_changes_nothing():
    problem, _, certificate = case("tree")
    assert verify(problem, certificate) == verify(problem, certificate)


def test_a_looser_upper_is_still_a_bound():
    problem, _, certificate = case("dual")
    verify(problem, resigned(certificate, upper=2 * certificate.upper))


# --- changed digits


@pytest.mark.parametrize("name", WITH_ARRAYS)
def test_one_digit_changed_anywhere_in_the_witness(name):
    problem, A, certificate = case(name)
    best, _ = optimum(problem, A)
    rejected = 0
    places = [(path, array) for path, array in arrays_of(certificate.witness) if array.size]
    assert places
    for path, array in places[:: 1 + len(places) // 40]:  # of a large tree a part will do
        witness = changed(certificate.witness, path, other_digit(array))
        with pytest.raises(CertificateError, match="digest: the certificate was changed"):
            verify(problem, replace(certificate, witness=witness))
        # Signed again, it passes only if what it claims still follows.
        try:
            _, upper = verify(problem, resigned(certificate, witness=witness))
        except CertificateError:
            rejected += 1
        else:
            assert upper >= best * (1 - ROUNDING)
    assert rejected > 0


@pytest.mark.parametrize("name", WITNESS)
def test_every_other_number_is_under_the_digest(name):
    problem, _, certificate = case(name)
    for entry in ("n_eigensolves", "n_nodes"):
        forged = replace(certificate, **{entry: getattr(certificate, entry) + 1})
        with pytest.raises(CertificateError, match="digest"):
            verify(problem, forged)
    with pytest.raises(CertificateError, match="digest"):
        verify(problem, replace(certificate, digest="0" * 64))


@pytest.mark.parametrize("name", WITNESS)
def test_upper_lowered_by_a_millionth(name):
    problem, _, certificate = case(name)
    # Of an open tree a little less may follow than was claimed.
    follows = min(certificate.upper, certificate.witness.evaluate(problem))
    lowered = follows * (1 - 1e-6)
    if lowered < certificate.lower:
        with pytest.raises(CertificateError, match=r"upper=.* is below lower="):
            replace(certificate, upper=lowered)
        return
    with pytest.raises(CertificateError, match="digest"):
        verify(problem, replace(certificate, upper=lowered))
    with pytest.raises(CertificateError, match=r"upper: claimed .* but only .* follows"):
        verify(problem, resigned(certificate, upper=lowered))


@pytest.mark.parametrize("name", ["dual", "sample", "open tree"])
def test_lower_raised_by_a_millionth(name):
    problem, _, certificate = case(name)
    raised = certificate.lower * (1 + 1e-6)
    with pytest.raises(CertificateError, match="digest"):
        verify(problem, replace(certificate, lower=raised))
    with pytest.raises(CertificateError, match=r"lower: claimed .* but .* follows"):
        verify(problem, resigned(certificate, lower=raised))


@pytest.mark.parametrize("name", ["dual", "split", "open tree"])
@pytest.mark.parametrize("share", [0.5, 2.0])
def test_a_witness_of_another_size_does_not_give_the_bound(name, share):
    """These witnesses are (nearly) the best of their kind along their own ray."""
    problem, _, certificate = case(name)
    witness = certificate.witness
    for path, array in arrays_of(witness):
        if path[-1] in ("factor", "vectors"):
            witness = changed(witness, path, share * array)
    with pytest.raises(CertificateError, match="follows"):
        verify(problem, resigned(certificate, witness=witness))


# --- another problem


@pytest.mark.parametrize("name", WITNESS)
def test_another_data_set(name):
    problem, A, certificate = case(name)
    rng = np.random.default_rng(99)
    other = matrix_problem(
        random_psd(rng, len(A), "gaussian"), problem.n_components,
        problem.n_features_to_select, problem.include, problem.exclude,
    )  # fmt: skip
    with pytest.raises(CertificateError, match="lower: claimed"):
        verify(other, certificate)


@pytest.mark.parametrize("name", ["trace", "dual", "open tree", "tree", "enumerated"])
def test_a_data_set_that_agrees_on_the_support_only(name):
    """The lower bound follows; the upper one must not."""
    problem, A, certificate = case(name)
    rest = np.setdiff1d(np.arange(len(A)), certificate.support)
    larger = A.copy()
    larger[rest, rest] += 100.0
    other = matrix_problem(
        larger, problem.n_components, problem.n_features_to_select, problem.include, problem.exclude
    )
    bare = resigned(certificate, path=[])
    with pytest.raises(CertificateError, match=r"(upper|level|bound): claimed .* but only"):
        verify(other, bare)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"m": 3}, "n_components: the problem has 3, the certificate 2"),
        ({"k": 6}, "n_features_to_select: the problem has 6, the certificate 5"),
        ({"include": []}, "include: differs"),
        ({"exclude": [3]}, "exclude: differs"),
        ({"d": 11}, "n_features: the problem has 11, the certificate 12"),
    ],
)
def test_another_question(changes, message):
    _, A, certificate = case("constrained tree")
    asked = {"m": 2, "k": 5, "include": [0], "exclude": [3, 10], "d": 12, **changes}
    d = asked.pop("d")
    with pytest.raises(CertificateError, match=message):
        verify(matrix_problem(A[:d, :d], **asked), certificate)


# --- the support


@pytest.mark.parametrize(
    ("support", "message"),
    [
        ([0, 1, 2, 4, 3], "support: has an excluded feature"),
        ([1, 2, 4, 5, 6], "support: lacks a feature to include"),
        ([0, 1, 2, 4], "support: has a wrong size"),
        ([0, 1, 2, 4, 4], "support: a feature is named twice"),
        ([0, 1, 2, 4, 12], "support: out of range"),
        ([0, 1, 2, 4, -1], "support: out of range"),
        ([0.0, 1.0, 2.0, 4.0, 5.0], "support: not feature numbers"),
        ([0, 1, 2, 4, 5], "lower: claimed"),
    ],
)
def test_a_support_that_is_not_one(support, message):
    problem, _, certificate = case("constrained tree")
    with pytest.raises(CertificateError, match=message):
        verify(problem, resigned(certificate, support=np.array(support)))


# --- trees


def with_record(certificate, index, **changes):
    tree = certificate.witness
    record = replace(tree.records[index], **changes)
    return resigned(certificate, witness=changed(tree, ("records", index), record))


def branched(certificate):
    return next(i for i, r in enumerate(certificate.witness.records) if r.kind == "branched")


def with_cut(certificate):
    return next(i for i, r in enumerate(certificate.witness.records) if r.reductions)


def forced_at(tree, index):
    """The features that the splits and cuts above a node have fixed."""
    record = tree.records[index]
    if record.parent < 0:
        return []
    above = tree.records[record.parent]
    fixed = [feature for cut in above.reductions for feature in cut.fixed]
    own = [record.feature] if record.included else []
    return [*own, *fixed, *forced_at(tree, record.parent)]


@pytest.mark.parametrize("name", TREES)
def test_removed_records(name):
    problem, _, certificate = case(name)
    tree = certificate.witness
    for n_left in (0, 1, len(tree.records) - 1):
        forged = resigned(certificate, witness=replace(tree, records=tree.records[:n_left]))
        with pytest.raises(CertificateError, match="missing"):
            verify(problem, forged)


@pytest.mark.parametrize("name", TREES)
def test_children_that_do_not_cover(name):
    problem, _, certificate = case(name)
    index = branched(certificate)
    first, second = certificate.witness.records[index].children
    other = certificate.witness.records[first].feature + 1
    for forged, message in (
        (with_record(certificate, first, feature=other), "the children do not cover it"),
        (with_record(certificate, second, included=True), "the children do not cover it"),
        (with_record(certificate, first, included=False), "the children do not cover it"),
        (with_record(certificate, index, children=[first, first]), "the children do not cover it"),
        (with_record(certificate, index, children=[first]), "must have two children"),
        (with_record(certificate, index, children=[]), "must have two children"),
        (with_record(certificate, index, children=[first, 10**6]), "a child is missing"),
        (with_record(certificate, index, children=[first, 0]), "a child is missing"),
        (with_record(certificate, first, parent=second), "a child has another parent"),
    ):
        with pytest.raises(CertificateError, match=f"node {index}: {message}"):
            verify(problem, forged)


def test_a_split_on_a_feature_that_is_not_free():
    problem, _, certificate = case("constrained tree")
    index = branched(certificate)
    tree = certificate.witness
    for feature in (0, 3):  # to include, excluded
        forged = tree
        for child in tree.records[index].children:
            forged = changed(forged, ("records", child, "feature"), feature)
        with pytest.raises(CertificateError, match="is split on a feature that is settled"):
            verify(problem, resigned(certificate, witness=forged))


@pytest.mark.parametrize("name", TREES)
def test_claims_of_a_leaf(name):
    problem, _, certificate = case(name)
    records = certificate.witness.records
    leaf = next(i for i, r in enumerate(records) if r.kind in ("bound", "open"))
    lowered = 0.5 * certificate.lower / certificate.witness.scale  # its parent's bound is loose
    for forged, message in (
        (with_record(certificate, leaf, bound=lowered), "bound: claimed .* but only .* follows"),
        (with_record(certificate, leaf, bound=np.nan), "bound: claimed nan"),
        (with_record(certificate, leaf, bound=np.inf), "bound: claimed inf"),
        (with_record(certificate, leaf, witness=10**6), "there is no witness 1000000"),
        (with_record(certificate, leaf, witness=-1), "there is no witness -1"),
        (with_record(certificate, leaf, kind="trust me"), "unknown kind 'trust me'"),
    ):
        with pytest.raises(CertificateError, match=f"node {leaf}.*{message}"):
            verify(problem, forged)


@pytest.mark.parametrize("name", TREES)
def test_claims_of_a_cut(name):
    problem, _, certificate = case(name)
    index = with_cut(certificate)
    tree = certificate.witness
    cut = tree.records[index].reductions[0]
    # What the cut leaves open: it bounds neither the supports with it nor those without.
    settled = [*problem.include, *forced_at(tree, index), *cut.fixed, *cut.removed]
    free = np.setdiff1d(tree.witnesses[cut.witness].features, settled)
    lowered = cut.level * (1 - 1e-6)

    def forged(**changes):
        path = ("records", index, "reductions", 0)
        return resigned(
            certificate, witness=changed(certificate.witness, path, replace(cut, **changes))
        )

    for forgery, message in (
        (forged(level=lowered), "level: claimed .* but only"),
        (forged(level=np.nan), "level: claimed nan"),
        (forged(removed=np.append(cut.removed, free[-1]), fixed=cut.fixed[:0]), "level: claimed"),
        (forged(fixed=np.append(cut.fixed, free[0])), "level: claimed"),
        (forged(removed=np.array([99])), "removed: out of range"),
        (forged(removed=np.append(cut.removed, cut.removed)), "named twice")
        if cut.removed.size
        else (forged(fixed=np.append(cut.fixed, cut.fixed)), "named twice"),
        (forged(witness=10**6), "there is no witness 1000000"),
    ):
        with pytest.raises(CertificateError, match=message):
            verify(problem, forgery)


def test_removing_a_feature_to_include():
    problem, _, certificate = case("constrained tree")
    index = with_cut(certificate)
    path = ("records", index, "reductions", 0, "removed")
    forged = changed(certificate.witness, path, np.array([0]))
    with pytest.raises(CertificateError, match="removes a forced feature"):
        verify(problem, resigned(certificate, witness=forged))


def test_fixing_an_excluded_feature():
    problem, _, certificate = case("constrained tree")
    index = with_cut(certificate)
    path = ("records", index, "reductions", 0, "fixed")
    forged = changed(certificate.witness, path, np.array([3]))
    with pytest.raises(CertificateError, match="fixes what is not allowed"):
        verify(problem, resigned(certificate, witness=forged))


def test_a_node_witness_that_lacks_a_feature():
    problem, _, certificate = case("open tree")
    tree = certificate.witness
    for i, witness in enumerate(tree.witnesses):
        if witness.factor is not None and i == 0:
            short = NodeWitness(witness.features[1:], witness.factor[1:], witness.shared)
            forged = resigned(certificate, witness=changed(tree, ("witnesses", i), short))
            with pytest.raises(CertificateError, match="the witness lacks a feature"):
                verify(problem, forged)
            return
    pytest.fail("the first witness of this tree has no factor: choose another tree")


def test_too_many_supports_to_enumerate():
    """A record that claims to have tried everything cannot keep the verifier busy for ever."""
    A = np.eye(60)
    problem = matrix_problem(A, 1, 30)
    certificate = prove(problem, "tight", heuristic=False, time_limit=1e-9)
    assert isinstance(certificate.witness, TraceWitness | TreeWitness)
    record = Record(-1, -1, False, kind="enumerated", bound=1.0)
    tree = TreeWitness(1.0, [record], [], [])
    with pytest.raises(CertificateError, match="too many supports to enumerate"):
        verify(problem, resigned(certificate, witness=tree))


# --- numbers that are none


@pytest.mark.parametrize("name", WITH_ARRAYS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_not_a_number_in_a_witness(name, bad):
    problem, _, certificate = case(name)
    used = 0
    for path, array in arrays_of(certificate.witness):
        if array.dtype.kind != "f" or not array.size:
            continue
        spoilt = array.copy()
        spoilt.flat[-1] = bad
        forged = resigned(certificate, witness=changed(certificate.witness, path, spoilt))
        used += 1
        with pytest.raises(CertificateError, match="finite"):
            verify(problem, forged)
    assert used


@pytest.mark.parametrize("name", ["dual", "wide dual", "split", "sample", "tree"])
@pytest.mark.parametrize("scale", [2.0, 3.0, 0.0, -4.0, np.inf, np.nan])
def test_a_scale_that_is_not_a_power_of_four(name, scale):
    problem, _, certificate = case(name)
    forged = resigned(certificate, witness=replace(certificate.witness, scale=scale))
    with pytest.raises(CertificateError, match="the scale is not a power of four"):
        verify(problem, forged)


@pytest.mark.parametrize("name", ["dual", "wide dual", "split", "sample", "tree", "enumerated"])
@pytest.mark.parametrize("scale", [4.0**-530, 4.0**-300, 4.0**300, 4.0**511])
def test_a_scale_far_from_the_data(name, scale):
    """There numbers under- or overflow, and rounding margins in units of u say nothing."""
    problem, _, certificate = case(name)
    forged = resigned(certificate, witness=replace(certificate.witness, scale=scale))
    with pytest.raises(CertificateError, match="scale"):
        verify(problem, forged)


def test_an_empty_cut_of_a_strange_shape():
    """A clear error or a true bound, no other exception."""
    problem, A, certificate = case("open tree")
    assert certificate.witness.records[0].reductions
    for part in ("removed", "fixed"):
        path = ("records", 0, "reductions", 0, part)
        forged = changed(certificate.witness, path, np.empty((0, 0)))
        try:
            _, upper = verify(problem, resigned(certificate, witness=forged))
        except CertificateError:
            continue
        assert upper >= optimum(problem, A)[0] * (1 - ROUNDING)


@pytest.mark.parametrize("name", ["dual", "split", "sample", "open tree"])
@pytest.mark.parametrize("factor", [16.0, 1 / 16])
def test_a_wrong_scale(name, factor):
    """In other units the stored arrays belong to a matrix 16 times smaller or larger."""
    problem, _, certificate = case(name)
    witness = replace(certificate.witness, scale=factor * certificate.witness.scale)
    with pytest.raises(CertificateError, match=r"claimed .* follows"):
        verify(problem, resigned(certificate, witness=witness))


def test_a_witness_of_no_known_kind():
    problem, _, certificate = case("dual")
    node = NodeWitness(np.arange(12), None)
    with pytest.raises(CertificateError, match="unknown kind NodeWitness"):
        verify(problem, resigned(certificate, witness=node))


def test_cones_without_a_weight():
    """Rows with no weight carry no cone, and the bound that was claimed does not follow."""
    problem, _, certificate = case("open tree")
    tree = certificate.witness
    for alpha in (0.0, -1.0):
        forged = tree
        for i, shared in enumerate(tree.shared_cones):
            spoilt = np.full_like(shared.cones.alpha, alpha)
            forged = changed(forged, ("shared_cones", i, "cones", "alpha"), spoilt)
        with pytest.raises(CertificateError, match=r"claimed .* but only .* follows"):
            verify(problem, resigned(certificate, witness=forged))


@pytest.mark.parametrize("name", ["dual", "split", "sample", "tree"])
def test_a_factor_that_overflows(name):
    """Finite numbers whose squares are not give no bound, and no warning either."""
    problem, _, certificate = case(name)
    path, array = next(
        (path, array)
        for path, array in arrays_of(certificate.witness)
        if path[-1] in ("factor", "vectors") and array.size
    )
    forged = changed(certificate.witness, path, np.full_like(array, 1e200))
    with pytest.raises(CertificateError):
        verify(problem, resigned(certificate, witness=forged))


# --- what goes with the bounds


@pytest.mark.parametrize("name", ["open tree", "tree"])
def test_path_witnesses(name):
    problem, _, certificate = case(name)
    place = len(certificate.path) - 1
    path = certificate.path[place]
    for changes, message in (
        ({"scores": path.scores * 0.9}, r"at k=\d+: claimed"),
        ({"scores": path.scores[:-1]}, "not one score for each feature"),
        ({"scores": np.full_like(path.scores, np.nan)}, r"at k=\d+: claimed nan"),
        ({"ky_fan": path.ky_fan - 1e-3}, r"at k=\d+: claimed"),
        ({"ky_fan": path.ky_fan - 1e-10}, r"at k=\d+: claimed"),
        ({"ky_fan": np.nan}, r"at k=\d+: claimed nan"),
        ({"factor": np.full_like(path.factor, np.nan)}, "not finite"),
        ({"scale": 3.0}, "not a power of four"),
        ({"features": path.features[:-1]}, "lacks a feature"),
    ):
        forged = changed(certificate.path, (place,), replace(path, **changes))
        with pytest.raises(CertificateError, match=message):
            verify(problem, resigned(certificate, path=forged))


def test_features_that_were_never_proved():
    """`proved_in` and `proved_out` are claims like any other."""
    problem, _, certificate = case("open tree")
    every = np.arange(12)
    unsettled = np.setdiff1d(every, [*certificate.proved_in, *certificate.proved_out])
    for claim in ("proved_in", "proved_out"):
        more = np.sort(np.append(getattr(certificate, claim), unsettled[0]))
        with pytest.raises(CertificateError, match=claim):
            verify(problem, resigned(certificate, **{claim: more}))


def test_a_gap_that_is_called_optimal():
    problem, _, certificate = case("dual")
    assert certificate.gap > 0.01
    with pytest.raises(CertificateError, match="status"):
        verify(problem, resigned(certificate, status=Status.OPTIMAL))


def test_a_false_dual_witness_for_data_with_fewer_samples_than_components():
    """The matrix A - B has zeros beside the eigenvalues of the small one it is reduced to."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3, 9))  # rank 2 once centred
    problem = RowSparseProblem(as_covariance(X), 3, 4)
    A = np.cov(X.T)
    best, supports = optimum(problem, A)
    honest = prove(problem, "fast", supports[0])
    for size in (0.1, 0.5, 1.0, 2.0):
        factor = np.ones((9, 3)) @ np.diag(rng.uniform(0.5, 1.0, 3)) * np.sqrt(size)
        factor += 0.1 * rng.standard_normal((9, 3))
        forged = resigned(
            honest,
            upper=best,
            lower=best,
            witness=DualWitness(1.0, np.arange(9), factor, on_data=True),
        )
        try:
            _, upper = verify(problem, forged)
        except CertificateError:
            continue
        assert upper >= best * (1 - ROUNDING)


@examples(150)
@given(st.data())
def test_junk_anywhere_gives_a_clear_error_or_a_true_bound(data):
    """A file can hold anything. No other exception, no warning, no false bound."""
    name = data.draw(st.sampled_from((*WITH_ARRAYS, "enumerated")))
    problem, A, certificate = case(name)
    everything = list(leaves(certificate.witness))
    path, value = data.draw(st.sampled_from(everything))
    kinds = [*JUNK]
    if isinstance(value, np.ndarray):
        kinds += [value[:-1], value.T, -value, value * np.float64(1e180)]
        kinds += [value.astype(float) + 0.5, value.astype(np.float32), value.astype(np.float16)]
    junk = data.draw(st.sampled_from(kinds))
    forged = resigned(certificate, witness=changed(certificate.witness, path, junk))
    try:
        _, upper = verify(problem, forged)
    except CertificateError:
        return
    assert upper >= optimum(problem, A)[0] * (1 - ROUNDING)


# --- a certificate that contradicts itself cannot exist


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        (2.0, 1.0, r"upper=1\.0 is below lower=2\.0"),
        (1.0, np.inf, "not finite"),
        (np.nan, 1.0, "not finite"),
        (1.0, np.nan, "not finite"),
        (-np.inf, 1.0, "not finite"),
    ],
)
def test_contradictions_cannot_be_made(lower, upper, message):
    _, _, honest = case("dual")
    with pytest.raises(CertificateError, match=message):
        replace(honest, lower=lower, upper=upper, digest="")


def test_the_gap_is_a_share_of_the_upper_bound():
    _, _, honest = case("dual")
    certificate = resigned(honest, lower=3.0, upper=4.0)
    assert certificate.gap == 0.25
    assert resigned(honest, lower=0.0, upper=0.0).gap == 0.0
    assert isinstance(certificate, Certificate)


def test_every_status_has_advice():
    for status in Status:
        assert status.advice.endswith(".")


def test_feature_numbers_of_any_integer_type(tmp_path):
    """A problem in NumPy integers has a certificate that survives a file."""
    A = random_psd(np.random.default_rng(0), 6, "gaussian")
    problem = matrix_problem(A, np.int64(1), np.int32(3))
    certificate = prove(problem, "tight", first_support(problem).astype(np.int32))
    certificate.save(tmp_path / "c.npz")
    verify(problem, Certificate.load(tmp_path / "c.npz"))


def test_what_is_cut_off_counts():
    """A cut that takes the best feature away is true, and its level is then the bound."""
    A = np.diag([5.0, 3.0, 2.0, 1.0])
    problem = RowSparseProblem(as_covariance(A, kind="covariance"), 1, 2)
    features = np.arange(4)
    # In units of 4. By the trace, supports with the best feature explain at most 5 + 3.
    cut = Reduction(0, removed=np.array([0]), fixed=features[:0], level=8.1 / 4)
    root = Record(-1, -1, False, [cut], kind="enumerated", bound=3.1 / 4)
    tree = TreeWitness(4.0, [root], [NodeWitness(features, None)], [])
    assert tree.evaluate(problem) >= 5.0
