r"""Best-first branch and bound for the row-sparse problem, with a proof that can be rechecked.

In rounds: the open nodes with the largest bounds, as many as `Budgets.round_size`, are worked on
(`node_steps.py`) apart from each other, here or in other processes, and then put together in their
order. The same proof comes out, whoever did how much of it.

The proof has one record for each node that says what was cut off by which witness, so that

    OPT ≤ max(value of the support, levels of all cuts, bounds of all leaves)

follows from A alone: `kspan.proofs.check.tree` computes it again. No incumbent's value enters it.
"""

import time
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kspan.arrays import Index
from kspan.parallel import in_order
from kspan.progress import Monitor
from kspan.proofs.check.claims import Problem
from kspan.proofs.check.known import KnownMatrix
from kspan.proofs.check.partly_known import PartlyKnown
from kspan.proofs.search.node_steps import Given, advance
from kspan.proofs.search.proof import Heuristic
from kspan.proofs.search.tree_state import Budgets, Fork, Keeper, Node, TreeState


class BranchAndBound:
    """The search; all that it remembers is in a `TreeState`.

    Parameters
    ----------
    problem : what is searched
    state : where to go on
    known : A on all features of the problem, in units of ``state.scale``; for steps that are given
        what they need, on some
    steps : what is done with a node
    heuristic : asked for supports, led by the relaxation's z
    budgets, monitor : when to stop; reports
    keeper : writes checkpoints
    ceiling : a bound that holds anyway, for reports
    n_jobs : how many nodes at a time, see ``kspan.parallel``
    given, ask : what nodes share, and who is asked for better points, where the steps are others
    """

    def __init__(
        self,
        problem: Problem,
        state: TreeState,
        known: KnownMatrix | PartlyKnown,
        steps: Any,
        *,
        heuristic: Heuristic | None,
        budgets: Budgets,
        monitor: Monitor,
        keeper: Keeper | None = None,
        ceiling: float = np.inf,
        n_jobs: int | None = None,
        given: Any = None,
        ask: Any = None,
    ):
        self.problem, self.s, self.steps = problem, state, steps
        if given is None:
            assert isinstance(known, KnownMatrix)
            given = Given.of(problem, known, budgets)
        self.given = given
        self.asked = self.ask if ask is None else ask
        self.heuristic, self.budgets, self.monitor = heuristic, budgets, monitor
        self.keeper, self.ceiling, self.n_jobs = keeper, ceiling, n_jobs
        self.seconds_before = state.seconds
        self.saved_at = time.perf_counter()
        self.hurried = False  # whether a part was cut short for want of time
        self.node_seconds = 0.0  # of a node of the last round, on average

    def ask(self, node: Node, z: NDArray[Any]) -> Index:
        """Ask the heuristic for a support of a node, led by the relaxation's z."""
        if self.heuristic is None:
            return node.features[:0]
        scores = np.zeros(self.problem.n_features)
        scores[node.features] = z
        fixed = node.features[node.choice.include]
        choice = self.problem.choice.within(node.features).settled(fixed=fixed)
        if not choice.has_supports:
            return node.features[:0]
        inner = self.monitor.inner(quiet=True)
        return self.heuristic(self.problem, scores, choice, inner)

    def at(self, fork: Fork) -> Any:
        """Return the steps on a node, in this process and with a heuristic to ask."""
        return self.steps(self.given, fork, self.monitor.inner(quiet=True), self.asked)

    def round(self) -> None:
        """Work on a few nodes. When that is interrupted, nothing has happened."""
        forks = self.s.next_round(self.budgets)
        if len(forks) == 1:
            self.at(forks[0]).round()
        else:
            work = partial(advance, self.steps, self.given, self.monitor.deadline)
            forks = list(in_order(work, forks, self.n_jobs if self.sends_nodes else 1))
            self.node_seconds = sum(fork.seconds for fork in forks) / len(forks)
        for fork in forks:
            if fork.hint is not None:
                self.at(fork).improve(fork.hint)
        self.hurried = self.hurried or any(fork.hurried for fork in forks)
        self.s = self.s.after(forks)

    @property
    def sends_nodes(self) -> bool:
        """Whether it pays that others do the work; what comes of it is the same."""
        budgets, left = self.budgets, self.monitor.deadline.left
        return self.node_seconds >= budgets.worth_sending and left >= budgets.workers_start

    def report(self) -> None:
        """Bring the bounds up to date and tell them."""
        s = self.s
        s.refresh()
        best = s.best_open()
        s.seconds = self.seconds_before + self.monitor.seconds
        upper = min(s.upper * s.scale, self.ceiling)
        s.history.append([s.seconds, s.lower * s.scale, upper])
        self.monitor.report(
            s.lower * s.scale, upper=upper, n_nodes=s.n_nodes, n_open=len(s.open),
            n_features_left=0 if best is None else best.features.size,
        )  # fmt: skip
        if self.keeper is not None:
            now = time.perf_counter()
            if now - self.saved_at >= self.keeper.every:
                self.keeper.save(s)
                self.saved_at = now

    def run(self) -> TreeState:
        """Go on until the gap is closed, a budget is spent, or somebody says stop."""
        with self.monitor.interruptible():
            self.report()
            while (
                self.s.gap > self.budgets.gap
                and self.s.n_nodes < self.budgets.max_nodes
                and self.s.open
                and (self.s.n_nodes == 0 or self.s.gap <= self.budgets.hopeless)
                and not self.monitor.out_of_time()
            ):
                self.round()
                self.report()
        self.s.refresh()
        self.s.seconds = self.seconds_before + self.monitor.seconds
        if self.keeper is not None:
            with self.monitor.interruptible():  # the proof is done
                self.keeper.save(self.s)
        return self.s
