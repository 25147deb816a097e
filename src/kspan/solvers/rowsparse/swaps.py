r"""Pair swaps: one chosen feature out, another one in, as long as that helps.

For a candidate with loadings W on the support S, a swap (i out, j in) is scored without an
eigensolve: the m best directions inside the span of W (with row i taken away) and e_j explain

.. math:: \mathrm{tr}\,Γ_i + a_{jj} - μ_{ij}, \qquad
          μ_{ij} = λ_{\min}\begin{pmatrix} Γ_i & c_{ij} \\ c_{ij}' & a_{jj} \end{pmatrix}

where Γ_i are the Ritz values left when row i is gone and c_ij is the coupling of e_j to them.
By Rayleigh-Ritz this is a lower bound on what the swapped support explains, so a positive gain
is a certain one. The same bound for adding j alone, and Γ_i for removing i alone, cost O(dm)
and O(km³): only the features that do best in these two are paired. The best few pairs are then
tried exactly. Where rules say which features go together, `kspan.solvers.insertions` does the work.

Passes over the data: two a sweep, for the columns of A at the support and the new features.

Guarantee: every accepted swap raises the objective. Not from a paper; the derivation is above.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg.lapack import dpotrf

from kspan.arrays import FloatArray, Index, Mask
from kspan.linalg.eigen import leading_values, power_of_two, smallest_arrowhead_eigenvalue
from kspan.linalg.rounding import IMPROVEMENT
from kspan.linalg.selection import top_k
from kspan.problem import Candidate, RowSparseProblem
from kspan.problem.problems import STACK_LIMIT
from kspan.progress import Monitor
from kspan.solvers.insertions import improve_by_insertions, insertion_keys

# How many features are paired in a sweep, at most.
MAX_OUT, MAX_IN = 32, 192

# Large supports that are tried in one call.
LARGE_AT_ONCE = 4


@dataclass(frozen=True)
class Swaps:
    """Exchanges of one feature each, best first: take ``out[i]`` away, put ``into[i]`` there.

    `gain` is what each explains more, at least.
    """

    out: Index
    into: Index
    gain: FloatArray

    def __len__(self) -> int:
        return self.out.size

    def __getitem__(self, which: slice | Mask) -> "Swaps":
        return Swaps(self.out[which], self.into[which], self.gain[which])

    def among(self, support: Index) -> "Swaps":
        """Return those that a support admits."""
        return self[np.isin(self.out, support) & ~np.isin(self.into, support)]

    def applied(self, support: Index) -> Index:
        """Return the sorted support after each of them, a row for each."""
        trials = np.repeat(support[None], len(self), axis=0)
        trials[np.arange(len(self)), np.searchsorted(support, self.out)] = self.into
        trials.sort(axis=1)
        return trials


def improve_by_swaps(
    problem: RowSparseProblem,
    candidate: Candidate,
    *,
    max_sweeps: int,
    n_trials: int = 32,
    monitor: Monitor,
) -> tuple[Candidate, bool]:
    """Swap until no tried swap helps. Returns the candidate and whether that point was reached.

    Parameters
    ----------
    problem : RowSparseProblem
    candidate : where to start
    max_sweeps : number of times that all swaps are scored
    n_trials : how many of the best-scored swaps are tried exactly in a sweep
    monitor : told after every sweep, asked after every trial whether to stop
    """
    if problem.choice.has_rules:
        return improve_by_insertions(
            problem.choice, candidate, problem.refit_all, partial(_keys, problem),
            max_sweeps=max_sweeps, n_trials=n_trials, monitor=monitor,
        )  # fmt: skip
    for _ in range(max_sweeps):
        better = sweep(problem, candidate, n_trials, monitor)
        if better is None:
            return candidate, monitor.stopped is None
        candidate = better
        if monitor.report(candidate.objective):
            return candidate, False
    return candidate, False


def sweep(
    problem: RowSparseProblem, candidate: Candidate, n_trials: int, monitor: Monitor
) -> Candidate | None:
    """Score all swaps, try the best ones exactly, take each that helps; None if none did."""
    if monitor.out_of_time():
        return None
    rows = problem.covariance.columns(candidate.support).T
    swaps = rank_swaps(problem, candidate, rows, n_trials)
    if not len(swaps):
        return None
    pool, A = _within_reach(problem, candidate, rows, swaps)
    support, objective = candidate.support, candidate.objective
    # Small eigenproblems are solved all at once, large ones some at a time: the first that helps
    # changes all that come after it.
    at_once = len(swaps) if support.size <= STACK_LIMIT else LARGE_AT_ONCE
    while not monitor.out_of_time():
        # An earlier swap of this sweep may have used one of the two.
        swaps = swaps.among(support)
        tried = swaps[:at_once]
        if not len(tried):
            break
        trials = tried.applied(support)
        values = _trial_values(A, np.searchsorted(pool, trials), problem.n_components, objective)
        helpful = np.flatnonzero(values > objective * (1 + IMPROVEMENT))
        n_done = len(tried)
        if helpful.size:
            first = int(helpful[0])
            support, objective, n_done = trials[first], float(values[first]), first + 1
        swaps = swaps[n_done:]
    if support is candidate.support:
        return None
    better = problem.refit(support)
    # The trial was computed from another route than the refit; only a real gain counts.
    return better if better.objective > candidate.objective else None


def _within_reach(
    problem: RowSparseProblem, candidate: Candidate, rows: FloatArray, swaps: Swaps
) -> tuple[Index, FloatArray]:
    """Return all features that the trials can touch, old and new, and A on them."""
    incoming = np.unique(swaps.into)
    pool = np.sort(np.concatenate([candidate.support, incoming]))
    A = np.empty((pool.size, pool.size))
    old, new = np.searchsorted(pool, candidate.support), np.searchsorted(pool, incoming)
    A[old] = rows[:, pool]
    A[np.ix_(new, old)] = A[np.ix_(old, new)].T
    A[np.ix_(new, new)] = problem.covariance.submatrix(incoming)
    return pool, A


def _is_below(A: FloatArray, places: Index, bound: float) -> bool:
    """Say whether all eigenvalues of A on some places are below a bound.

    Then the bound times the identity has a Cholesky decomposition with A taken out: a small part of
    the price of an eigenvalue, and most trials do not help.
    """
    left = -A[np.ix_(places, places)]
    left[np.diag_indices_from(left)] += bound
    return int(dpotrf(left.T, overwrite_a=True)[1]) == 0


def _trial_values(A: FloatArray, places: Index, m: int, known: float) -> FloatArray:
    """Return `_explained`; zero, for one component, where that is below what is known."""
    if m > 1 or places.shape[1] <= STACK_LIMIT:
        return _explained(A, places, m)
    values = np.zeros(len(places))
    hopeful = [i for i, each in enumerate(places) if not _is_below(A, each, known)]
    if hopeful:
        values[hopeful] = _explained(A, places[hopeful], m)
    return values


def _explained(A: FloatArray, places: Index, m: int) -> FloatArray:
    """Return the sum of the m leading eigenvalues of A on each row of `places`."""
    values = leading_values(A[places[:, :, None], places[:, None, :]], m)
    total: FloatArray = np.maximum(values, 0.0).sum(axis=1)
    return total


def rank_swaps(
    problem: RowSparseProblem, candidate: Candidate, rows: FloatArray, n_trials: int
) -> Swaps:
    """Return the swaps with the largest certain gains, best first."""
    covariance = problem.covariance
    variances = covariance.diagonal()
    ins = np.flatnonzero(problem.choice.coming(candidate.support) & (variances > 0))
    outs = problem.choice.leaving(candidate.support)
    if not ins.size or not outs.size:
        return Swaps(outs[:0], ins[:0], np.zeros(0))
    # What may come in can be far larger than all that is chosen.
    scale = power_of_two(max(candidate.objective, float(variances[ins].max())))
    W, ritz = candidate.weights, candidate.variances / scale
    if ins.size > MAX_IN:
        B = rows[:, ins].T @ W / scale
        ins = ins[top_k(_added_variance(ritz, B, variances[ins] / scale), MAX_IN)]
    corner = variances[ins] / scale
    rows = rows[:, ins] / scale
    B = rows.T @ W  # (AW)_j for every j that may come in

    poles, mixing = _without_each(W[outs], ritz, variances[candidate.support[outs]] / scale)
    kept = poles.sum(axis=1) - ritz.sum()  # what taking i away costs, at most: negative
    cheapest = top_k(kept, MAX_OUT)
    outs, poles, mixing, kept = outs[cheapest], poles[cheapest], mixing[cheapest], kept[cheapest]
    # c_ij = M_i' (b_j - a_ij w_i)
    pulled = np.einsum("il,ilr->ir", W[outs], mixing)
    coupling = B @ mixing - rows[outs, :, None] * pulled[:, None, :]
    gains = kept[:, None] + _added_variance(poles[:, None, :], coupling, corner)
    return _best_swaps(gains, candidate.support[outs], ins, n_trials)


def _added_variance(poles: FloatArray, coupling: FloatArray, corner: FloatArray) -> FloatArray:
    """Lower bound on what a feature adds to directions with the given Ritz values."""
    poles = np.broadcast_to(poles, coupling.shape)
    corner = np.broadcast_to(corner, coupling.shape[:-1])
    return corner - smallest_arrowhead_eigenvalue(poles, coupling, corner)


def _without_each(
    W: FloatArray, ritz: FloatArray, variances: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Ritz values of span(W) with one row taken away, and the maps to their vectors.

    With w the row and λ the Ritz values, the basis that is left has the inner products
    ``N = I - ww'`` and the form ``G = Λ - wb' - bw' + a ww'``, b = Λw. Returns, for each row,
    the eigenvalues Γ of ``N^{-1/2} G N^{-1/2}`` and ``M = N^{-1/2} Q``.
    """
    length = np.einsum("ij,ij->i", W, W)
    outer = W[:, :, None] * W[:, None, :]
    lengths = np.maximum(length, np.finfo(float).tiny)[:, None, None]
    # A row of length one takes a whole direction with it: that direction counts for nothing.
    left = 1.0 - length
    factor = np.where(left > 1e-10, 1.0 / np.sqrt(np.maximum(left, 1e-10)), 0.0)
    whiten = np.eye(W.shape[1]) + (factor - 1.0)[:, None, None] * outer / lengths
    b = W * ritz
    G = (
        np.diag(ritz)
        - W[:, :, None] * b[:, None, :]
        - b[:, :, None] * W[:, None, :]
        + variances[:, None, None] * outer
    )
    poles, Q = np.linalg.eigh(whiten @ G @ whiten)
    return np.maximum(poles, 0.0), whiten @ Q


def _best_swaps(gains: FloatArray, outs: Index, ins: Index, n_trials: int) -> Swaps:
    """Take the best swaps, at most a few with the same feature so that trials stay diverse."""
    # The best partner of each incoming feature, then each leaving one, covers more ground than
    # the plain top of the list, which is one strong feature with every partner.
    order = np.argsort(-gains, axis=0, kind="stable")[:2]
    columns = np.broadcast_to(np.arange(ins.size), order.shape)
    picked = gains[order, columns].ravel()
    best = np.argsort(-picked, kind="stable")[:n_trials]
    return Swaps(outs[order.ravel()[best]], ins[columns.ravel()[best]], picked[best])


def _keys(problem: RowSparseProblem, candidate: Candidate) -> FloatArray:
    """Return scores for insertions, by what the present directions explain of other features."""
    covariance, support = problem.covariance, candidate.support
    variances = covariance.diagonal()
    scale = power_of_two(max(candidate.objective, float(variances.max())))
    ritz, W = candidate.variances / scale, candidate.weights
    product = covariance.matmat(W, support) / scale
    corner = np.maximum(variances, 0.0) / scale
    added = np.minimum(np.sum(product**2, axis=1) / max(float(ritz.max()), 1e-300), corner)
    added = np.maximum(added, 1e-3 * corner)
    return insertion_keys(added, (W**2) @ ritz, support, variances > 0)
