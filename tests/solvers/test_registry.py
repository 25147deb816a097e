"""Methods by name: found where they are, described, with typed options, and those of one's own."""

import subprocess
import sys
import textwrap
from dataclasses import MISSING, dataclass, fields
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import kspan.solvers
import kspan.solvers.rowsparse
from kspan import NonnegativeProblem, RowSparseProblem, as_covariance, solve
from kspan.problem import ElementSparseProblem, Solution, StiefelProblem
from kspan.progress import Status
from kspan.solvers import registry
from kspan.solvers.method import RowSparseMethod
from kspan.solvers.registry import as_method, methods_for

KINDS = (RowSparseProblem, ElementSparseProblem, StiefelProblem, NonnegativeProblem)
METHODS = [method for kind in KINDS for method in methods_for(kind).values()]
NAMES = {
    RowSparseProblem: {
        "auto", "exact", "go", "ipu", "soap", "srt", "streaming-srt", "cssp", "tpower", "fps",
        "brute-force",
    },
    ElementSparseProblem: {
        "auto", "exact", "tpower", "gpower-l0", "gpower-l1", "gpower-l0-block", "gpower-l1-block",
        "grqi", "ipm", "spannogram", "matching",
    },
    StiefelProblem: {"exact", "auto", "sadmm", "admm", "deflation", "two-stage"},
    NonnegativeProblem: {"auto", "spannogram", "net", "em", "nspca"},
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class LargestVariances(RowSparseMethod):
    """A method from outside the package: the k features with the largest variances.

    Parameters
    ----------
    power : float
        Of the standard deviations, by which they are compared.
    """

    name = "largest-variances"
    summary = "the largest variances"

    power: float = 2.0

    def check_options(self):
        if not self.power > 0:
            raise ValueError(f"power must be positive, got {self.power!r}.")

    def run(self, problem, monitor, rng):
        best = problem.refit(problem.select(problem.covariance.diagonal() ** (self.power / 2)))
        monitor.report(best.objective)
        return Solution.from_candidate(
            best, n_features=problem.n_features, solver=self.name,
            status=monitor.stopped or Status.COMPLETED, history=[best.objective], n_iter=1,
        )  # fmt: skip


@pytest.fixture
def problem(rng):
    return RowSparseProblem(as_covariance(rng.standard_normal((30, 8)) * np.arange(1, 9)), 2, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_the_names(kind):
    """Each has one class, "auto" first; no two classes in all have the same name."""
    assert set(methods_for(kind)) >= NAMES[kind]
    assert [name for name in methods_for(kind) if name in ("auto", "exact")] == list(
        methods_for(kind)
    )[: len({"auto", "exact"} & NAMES[kind])]
    classes = [method.__name__ for method in METHODS]
    assert len(set(classes)) == len(classes)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_every_method_says_what_it_is(method):
    assert method.summary
    assert not method.summary.endswith(".")
    assert method.guarantee
    assert "Parameters\n" in method.__doc__
    made = method()  # every option has a default
    assert isinstance(made.makes_many_products, bool)
    for field in fields(method):
        assert field.default is not MISSING
        assert field.type is not None
        assert field.name in method.__doc__, "an option without a word about it"
    if "init" in method.options():
        assert made.init is None or made.init in method.starts
        with pytest.raises(ValueError, match=r"init must be one of \[.*\] or an array, got 'warm'"):
            method(init="warm")
    assert getattr(kspan.solvers, method.__name__) is method
    assert method.__name__ in dir(kspan.solvers)


def test_what_a_method_is_made_from_is_there():
    """In an interpreter that has imported nothing else."""
    names = "Exact, RowSparseMethod, NonnegativeMethod, OneByOneMethod, checked, counted"
    subprocess.run([sys.executable, "-c", f"from kspan.solvers import {names}"], check=True)


def test_what_is_not_there():
    with pytest.raises(AttributeError, match="has no attribute 'Nope'"):
        kspan.solvers.Nope  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'nope'"):
        kspan.solvers.nope  # noqa: B018


@pytest.mark.parametrize(
    ("solver", "options", "message"),
    [
        ("magic", {}, r"solver must be one of \['auto', 'exact', 'brute-force', .*\] or a method"),
        ("go", {"max_iter": 3}, r"solver 'go' has no option 'max_iter'; it takes \['refine', 'sh"),
        (kspan.solvers.IPU(), {"shift": 1.0}, r"'shift' is an option of a named .* IPU\(\.\.\.\)"),
        (kspan.solvers.EM(), {}, "EM is not for a RowSparseProblem"),
    ],
)
def test_wrong_names_and_options(solver, options, message):
    with pytest.raises(ValueError, match=message):
        as_method(RowSparseProblem, solver, options)


def test_few_products_need_no_covariance():
    few = [method for method in METHODS if not method().makes_many_products]
    assert {method.__name__ for method in few} == {"Go", "IPU"}
    assert kspan.solvers.IPU(init="random", n_restarts=2).makes_many_products


def test_an_object_and_its_name_are_the_same(problem):
    named = solve(problem, "ipu", init="random", n_restarts=3, random_state=0)
    made = solve(problem, kspan.solvers.IPU(init="random", n_restarts=3), random_state=0)
    assert np.array_equal(named.history, made.history)
    assert (named.solver, made.solver) == ("ipu", "ipu")


def test_a_method_from_outside(problem):
    told = []
    solution = solve(problem, LargestVariances(power=1.0), callback=told.append)
    assert solution.support.tolist() == [5, 6, 7]
    assert solution.solver == told[0].solver == "largest-variances"
    assert "largest-variances" not in methods_for(RowSparseProblem)
    with pytest.raises(ValueError, match="power must be positive"):
        LargestVariances(power=0.0)


def test_a_new_file_is_all_it_takes(tmp_path, monkeypatch, problem):
    """A module in the folder, found without another edit."""
    (tmp_path / "as_they_come.py").write_text(
        textwrap.dedent('''
            """As they come."""
            from dataclasses import dataclass

            import numpy as np

            from kspan.problem import Solution
            from kspan.progress import Status
            from kspan.solvers.method import RowSparseMethod

            @dataclass(frozen=True, eq=False)
            class AsTheyCome(RowSparseMethod):
                """The first features."""

                name = "as-they-come"
                summary = "the first features"

                def run(self, problem, monitor, rng):
                    best = problem.refit(problem.select(np.zeros(problem.n_features)))
                    return Solution.from_candidate(
                        best, n_features=problem.n_features, solver=self.name,
                        status=Status.COMPLETED, history=[best.objective], n_iter=1,
                    )
        ''')
    )
    folder = str(Path(kspan.solvers.rowsparse.__file__).parent)
    monkeypatch.setattr(kspan.solvers.rowsparse, "__path__", [folder, str(tmp_path)])
    registry._all.cache_clear()
    try:
        assert "as-they-come" in methods_for(RowSparseProblem)
        assert solve(problem, "as-they-come").support.tolist() == [0, 1, 2]
        made = import_module("kspan.solvers").AsTheyCome
        assert made.__name__ == "AsTheyCome"
    finally:
        registry._all.cache_clear()
        sys.modules.pop("kspan.solvers.rowsparse.as_they_come", None)


def test_a_method_for_loadings_of_either_sign_is_not_for_nonnegative_ones(rng):
    problem = NonnegativeProblem(as_covariance(rng.standard_normal((30, 8))), 2, 3)
    with pytest.raises(ValueError, match="TPowerDeflated is not for a NonnegativeProblem"):
        solve(problem, kspan.solvers.TPowerDeflated())
