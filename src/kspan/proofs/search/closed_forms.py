"""Bounds without a search, from what a fit has computed already: closed forms, and nets.

The nets are those of the spannogram's paper (`kspan.proofs.check.net_bound`).
"""

import numpy as np

from kspan.arrays import FloatArray
from kspan.linalg.directions import direction_count
from kspan.linalg.eigen import mean_of_rest
from kspan.problem import Choice
from kspan.proofs.check.bounds import LARGEST
from kspan.proofs.check.claims import Problem
from kspan.proofs.check.known import data_scale
from kspan.proofs.check.net_bound import NetWitness, net_bound
from kspan.proofs.check.witnesses import DualWitness, TraceWitness
from kspan.proofs.search.proof import Proof
from kspan.proofs.search.tree_state import Budgets


def prove_by_trace(proof: Proof) -> None:
    """The k largest variances: always there, and where every other bound starts."""
    witness = TraceWitness()
    proof.offer(witness.evaluate(proof.problem), witness)
    proof.note()


def prove_by_closed_forms(proof: Proof, budgets: Budgets) -> None:
    """B = Σ(λ_i - σ)₊u_iu_i' with the best σ.

    σ = 0 is Theorem 5.1's bound, σ = λ₁ the sum of the leading eigenvalues; the σ of noise proves
    Remark 4.4's optimum. Ritz values only
    suggest σ; the Ky Fan sum of A - B is then computed from scratch.
    """
    problem, covariance = proof.problem, proof.problem.covariance
    on_data = uses_data(problem, budgets)
    if proof.monitor.out_of_time() or on_data is None:
        proof.report()
        return
    scale, features = data_scale(problem), problem.choice.features
    pairs = covariance.leading(min(2 * problem.n_components, covariance.n_features))
    with np.errstate(over="ignore"):  # features that may not be chosen may be too large
        values = np.minimum(pairs.values / scale, LARGEST)
        variances = np.minimum(covariance.diagonal() / scale, LARGEST)
    noise = mean_of_rest(values[: problem.n_components], variances)
    factor = shifted_factor(values, pairs.vectors, problem.n_components, problem.choice, noise)
    dual = DualWitness(scale, features, factor[features], on_data)
    if on_data:
        proof.offer(dual.evaluate(problem), dual)
    else:
        proof.offer(dual.bound(proof.known.on(features), problem), dual)
    proof.n_eigensolves += 1
    proof.note()
    proof.report()


# The spectrum comes from the samples when there are so many times more features.
MUCH_WIDER = 8


def uses_data(problem: Problem, budgets: Budgets) -> bool | None:
    """Whether bounds are computed from samples and not from a matrix; None if neither is small.

    Small matrices are formed, unless there are much fewer samples; of large ones only wide data has
    a spectrum.
    """
    size, covariance = problem.choice.features.size, problem.covariance
    if covariance.is_wide and MUCH_WIDER * (covariance.n_samples or 0) < size:
        return True
    if size <= budgets.dense_limit:
        return False
    return True if covariance.is_wide else None


def eigenvalue_witness(problem: Problem, budgets: Budgets) -> DualWitness | None:
    """B = 0: the sum of the m leading eigenvalues; None where the spectrum is out of reach."""
    on_data, features = uses_data(problem, budgets), problem.choice.features
    if on_data is None:
        return None
    return DualWitness(data_scale(problem), features, np.zeros((features.size, 0)), on_data)


def shifted_factor(
    values: FloatArray, vectors: FloatArray, m: int, choice: Choice, noise: float
) -> FloatArray:
    """Factor of Σ_{i≤m}(λ_i - σ)₊u_iu_i', for the σ that looks best.

    Those that are tried include λ_{m+1} and the mean of all eigenvalues from there on (`noise`).
    If these are all alike, nothing but σI is left of A, and the bound is the value of the k largest
    entries of diag(B): what Go finds with ``shift="auto"``. For any A the bound with that mean is
    the one that `kspan.solvers.rowsparse.go` states and proves.
    """
    values = np.maximum(values, 0.0)
    leading, rest = values[:m], values[m:]
    squares = vectors[:, :m] ** 2
    best, best_shift = np.inf, np.zeros(m)
    for sigma in (*np.linspace(0.0, leading[-1], 13), leading[0], *rest[:1], noise):
        shift = np.maximum(leading - sigma, 0.0)
        left = np.sort(np.concatenate([leading - shift, rest]))[::-1][:m].sum()
        value = float(left) + choice.best_sum(squares @ shift)
        if value < best:
            best, best_shift = value, shift
    used = best_shift > 0
    factor: FloatArray = vectors[:, :m][:, used] * np.sqrt(best_shift[used])
    return factor


# Ranks of which the best is taken, and the directions of those whose net is not random.
RANKS = (1, 2, 3, 4, 5)
N_DIRECTIONS = {1: 1, 2: 400}
SEED = 0


def prove_by_nets(proof: Proof, budgets: Budgets, rank: int | None, epsilon: float | None) -> None:
    """Take the best of several nets, or one of the rank and the loss that were asked for."""
    for witness in net_witnesses(proof.problem, rank, epsilon, budgets):
        if proof.monitor.out_of_time():
            break
        try:
            bound = net_bound(proof.problem, witness, proof.monitor.out_of_time)
        except (FloatingPointError, TimeoutError):
            break
        proof.n_eigensolves += 1
        proof.offer(bound.value * witness.scale, witness)
        proof.note()
        if proof.report():
            break


def net_witnesses(
    problem: Problem, rank: int | None, epsilon: float | None, budgets: Budgets
) -> list[NetWitness]:
    """Return the nets to try: of one rank, with the sharp count for an ε, or of several."""
    n, scale = problem.n_features, data_scale(problem)
    ranks = [r for r in RANKS if r <= n] if rank is None else [min(rank, n)]
    n_random = sum(r > 2 for r in ranks)
    delta = 1 / max(n, 2) / max(n_random, 1)
    pairs = problem.covariance.leading(ranks[-1])
    V = pairs.vectors * np.sqrt(np.maximum(pairs.values, 0.0) / scale)
    on_data = n > budgets.tail_limit
    if on_data and not problem.covariance.is_wide:
        return []  # too many features and samples for the tail
    found = []
    for r in ranks:
        count = N_DIRECTIONS.get(r, budgets.n_draws)
        if epsilon is not None:
            count = direction_count(epsilon, r, delta)
        found.append(NetWitness(scale, V[:, :r].copy(), count, SEED, delta, n_random, on_data))
    return found
