"""`budget_path`: what more money would buy, and what no panel of that price can exceed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.choosing_k.band import checked, free_bounds, least_of_more
from kspan.choosing_k.begin import begin
from kspan.choosing_k.features import Features
from kspan.choosing_k.panel import Panel
from kspan.choosing_k.result import AnyPath
from kspan.covariance import Covariance
from kspan.covariance.matrix import Psd
from kspan.linalg.machine import one_blas_thread
from kspan.problem import Candidate, RowSparseProblem, RuledChoice
from kspan.progress import Callback, Monitor, Status
from kspan.proofs import Certificate
from kspan.proofs.search.prover import ProofOptions
from kspan.solvers.method import AnyMethod
from kspan.solvers.registry import as_method
from kspan.solving import RandomState, generator, prove_point, run_method

# Budgets beside the one that was asked for.
SHARES = (0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5)


@dataclass(frozen=True, repr=False)
class BudgetPath(AnyPath):
    """What the best panels for several budgets explain, with a band that holds the optimum.

    ``objective[i] ≤ (best possible for budget[i]) ≤ upper[i]``; neither ever falls.

    Attributes
    ----------
    budget : (t,) ascending
    spent : (t,) what the chosen features cost
    objective : (t,) variance that they explain with m components
    upper : (t,) what no choice within the budget can exceed
    supports : list of t index arrays
    n_components, n_features : int
    full : float
        What plain PCA explains with as many components and all features.
    total_variance : float
    feature_names : list of str, or None
    status : str
        When stopped early, `budget` has what was done by then.
    certificates : list of Certificate
        One for each budget, where it was proved.
    seconds : float
    asked : float
        The budget of the panel.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kspan import Panel, budget_path
    >>> wine = load_wine()
    >>> panel = Panel(costs=[1.0 + i % 3 for i in range(13)], budget=8.0)
    >>> path = budget_path(wine.data, 2, panel=panel, scale=True, random_state=0)
    >>> bool((path.spent <= path.budget).all() and (path.objective <= path.upper).all())
    True
    """

    budget: FloatArray
    spent: FloatArray
    asked: float

    called: ClassVar[str] = "budget path"

    def gain(self, more: float = 0.1) -> float:
        """Return how much more variance a larger budget explains, as a share of what `asked` does.

        Parameters
        ----------
        more : share of the budget that comes on top; the path must have that budget
        """
        base = self.objective[self.place(self.asked)]
        larger = self.objective[self.place(self.asked * (1 + more))]
        return float(larger / base - 1) if base > 0 else 0.0

    def place(self, budget: float) -> int:
        """Return the place of a budget; `ValueError` if the path does not have it."""
        nearest = int(np.abs(self.budget - budget).argmin())
        if not np.isclose(self.budget[nearest], budget):
            raise ValueError(f"The path has no budget of {budget:g}: {self.budget.tolist()}.")
        return nearest

    def _ends(self) -> str:
        return f"Budgets of {self.budget[0]:g} to {self.budget[-1]:g}"

    def columns(self) -> dict[str, FloatArray | Index]:
        """Return the numbers as columns of a table."""
        return {
            "budget": self.budget, "spent": self.spent, "features": self._sizes(),
            "explained_variance": self.objective, "share_of_pca": self.explained,
            "at_most": self.upper, "gap": self.gap,
        }  # fmt: skip


def budget_path(
    X: Any,
    n_components: int = 2,
    *,
    panel: Panel,
    budgets: Sequence[float] | None = None,
    n_features_to_select: int | None = None,
    include: Features | None = None,
    exclude: Features | None = None,
    scale: bool = False,
    covariance: str | None = None,
    sample_weight: Any = None,
    missing: str = "raise",
    psd: Psd = "mend",
    solver: str | AnyMethod = "auto",
    certify: bool | str = True,
    random_state: RandomState = None,
    callback: Callback | None = None,
    time_limit: float | None = None,
    verbose: int | bool = 0,
) -> BudgetPath:
    """Choose the best panel for every budget, and bound what is possible for each.

    A panel that can be paid for with less can be paid for with more: each budget knows what those
    below it found, and what is proved of a larger one holds for the smaller ones.

    Parameters
    ----------
    X : array, DataFrame, sparse array, path, or `Covariance`
    n_components : int, default=2
        m.
    panel : Panel
        With costs and a budget, and any other rules.
    budgets : sequence of float, optional
        By default shares of the panel's budget, from one half to one and a half.
    n_features_to_select : int, optional
        The most features, whatever they cost.
    include, exclude : names, indices or masks, optional
    scale, covariance, sample_weight, missing, psd, solver : see `sparsity_path`
    random_state, callback, time_limit, verbose : see `sparsity_path`
    certify : bool or {"fast", "tight", "exact"}, default=True
        True is "tight"; False leaves the bounds that come for free.

    Returns
    -------
    BudgetPath
    """
    if panel.budget is None:
        raise ValueError("A budget path needs a panel with costs and a budget.")
    method = as_method(RowSparseProblem, solver, {})
    begun = begin(
        X, "budgets", method, certify, scale=scale, covariance=covariance, missing=missing, psd=psd,
        sample_weight=sample_weight, callback=callback, time_limit=time_limit, verbose=verbose,
    )  # fmt: skip
    A, names, level, monitor = begun.covariance, begun.names, begun.level, begun.monitor
    inside, outside = begun.indices("include", include), begun.indices("exclude", exclude)
    rules = panel.resolved(A.n_features, names)
    wanted = _checked_budgets(budgets, panel.budget)
    first = rules.problem(A, n_components, n_features_to_select, include=inside, exclude=outside)
    choice = first.choice
    assert isinstance(choice, RuledChoice)
    choices = [(choice.with_budget(budget), budget) for budget in wanted]
    possible = [
        (RowSparseProblem(A, n_components, each), budget)
        for each, budget in choices
        if each.has_supports
    ]
    if not possible:
        raise ValueError("No budget of the path buys as many features as there are components.")
    A.prepare()
    with one_blas_thread():
        best, certificates = _walk(possible, method, level, generator(random_state), monitor)
    done = possible[: len(best)]
    costs = np.asarray(rules.costs)
    return _summary(A, done, best, certificates, costs, panel.budget, names, monitor)


def _checked_budgets(budgets: Sequence[Any] | None, own: float) -> list[float]:
    """Return the budgets, ascending, the panel's own among them."""
    if budgets is None:
        return [share * own for share in SHARES]
    for budget in budgets:
        if not (isinstance(budget, int | float | np.number) and 0 < budget < np.inf):
            raise ValueError(f"every one of budgets must be a positive number, got {budget!r}.")
    return sorted({own, *(float(budget) for budget in budgets)})


def _walk(
    problems: Sequence[tuple[RowSparseProblem, float]], method: AnyMethod, level: str | None,
    rng: np.random.Generator, monitor: Monitor,
) -> tuple[list[Candidate], list[Certificate]]:  # fmt: skip
    """Return the best point for each budget, or for some of them, and the proofs."""
    seed = int(rng.integers(2**31))
    best: list[Candidate] = []
    certificates: list[Certificate] = []
    with monitor.interruptible():
        for place, (problem, budget) in enumerate(problems):
            # One share of the time for both, so that the last has as much as the first.
            turn = monitor.inner(quiet=True, share=1 / (len(problems) - place))
            part = turn.inner(method.name)
            solution = run_method(problem, method.searching(), part, np.random.default_rng(seed))
            point = problem.refit(np.sort(solution.support))
            if best and best[-1].objective > point.objective:
                point = best[-1]
            if level:
                proof = prove_point(problem, point, level, turn.inner(level), ProofOptions())
                certificates.append(proof)
                if proof.lower > point.objective:
                    point = problem.refit(proof.support)
            best.append(point)
            monitor.solver = f"budget {budget:g}"
            if monitor.report(point.objective):
                break
    return best, certificates


def _summary(
    A: Covariance, done: Sequence[tuple[RowSparseProblem, float]], best: list[Candidate],
    certificates: list[Certificate], costs: FloatArray, own: float, names: list[str] | None,
    monitor: Monitor,
) -> BudgetPath:  # fmt: skip
    """Put the path together, with the band that holds the optima."""
    problems = [problem for problem, _ in done]
    objective = np.maximum.accumulate([point.objective for point in best])
    upper = free_bounds(problems)
    for place, proof in enumerate(certificates):
        upper[place] = min(upper[place], proof.upper)

    def at_least(place: int) -> float:
        point = best[place]
        return problems[place].claimed_value(point.support, point.weights)

    budget = np.array([each for _, each in done])
    status = monitor.stopped or Status.COMPLETED
    return BudgetPath(
        budget=budget, spent=np.array([float(costs[point.support].sum()) for point in best]),
        objective=objective, upper=checked(objective, least_of_more(upper), at_least),
        supports=[point.support for point in best], n_components=problems[0].n_components,
        n_features=A.n_features, full=float(A.leading(problems[0].n_components).values.sum()),
        total_variance=A.trace(), feature_names=names, status=status.value,
        certificates=certificates, seconds=monitor.seconds, asked=own,
    )  # fmt: skip
