"""The upper edge of the path: certificates at a few k, and for every k the least of all bounds.

- the k largest variances (trace bound), always;
- the sum of the m leading eigenvalues, where the spectrum can be computed to the last one: up to
  `DENSE_LIMIT` features, or fewer samples than features in memory. Lanczos' values are no proof;
- every certificate: at its own k, at all fewer features, and by its full-size witnesses
  (`Certificate.upper_at`), where features are shared, at all k;
- what holds with more features holds with fewer, so the band never falls as k grows.
"""

from collections.abc import Callable, Sequence

import numpy as np

from kspan.arrays import FloatArray
from kspan.problem import Candidate, Choice, RepresentProblem, RowSparseProblem
from kspan.progress import Monitor, Status
from kspan.proofs import Certificate, CertificateError
from kspan.proofs.check.claims import Problem
from kspan.proofs.check.witnesses import TraceWitness
from kspan.proofs.search.closed_forms import eigenvalue_witness
from kspan.proofs.search.prover import ProofOptions
from kspan.proofs.search.telling_search import spectrum_witness
from kspan.proofs.search.tree_state import Budgets
from kspan.solvers.rowsparse.moves import ProblemAt
from kspan.solving import prove_point

# Up to this many features the spectrum of A is computed.
DENSE_LIMIT = Budgets().dense_limit

# How many k are proved at their own k, and how many more get a witness of their own in one of
# those certificates. A witness costs some 15 eigensolves of order d.
N_CERTIFIED, N_WITNESSES = 3, 9

# With more features than this both are done at one k only: seconds each.
MANY_FEATURES = 300


def upper_band(
    problem: RowSparseProblem | RepresentProblem,
    ks: Sequence[int],
    certificates: Sequence[Certificate],
) -> FloatArray:
    """Return what no selection of k features can exceed, for every k.

    Parameters
    ----------
    problem : with any of the k
    ks : the numbers of features, ascending
    certificates : of problems that differ in k only
    """
    problems = [problem.at(k) for k in ks]
    upper = free_bounds(problems)
    sizes = [each.choice.size for each in problems]  # under rules it may be less than k
    for certificate in certificates:
        # Without a full-size witness a certificate says nothing about more features.
        further = certificate.choice.largest_size if certificate.path else 0
        most = max(further, certificate.n_features_to_select)
        for place, k in enumerate(sizes):
            if k <= most:
                upper[place] = min(upper[place], certificate.upper_at(k))
    return least_of_more(upper)


def free_bounds(problems: Sequence[Problem]) -> FloatArray:
    """Return what the k largest variances and the leading eigenvalues say about every k.

    Parameters
    ----------
    problems : that differ in k only
    """
    if isinstance(problems[-1], RepresentProblem):
        spectral = spectrum_witness(problems[-1])
        return np.full(len(problems), spectral.evaluate(problems[-1]))
    trace = TraceWitness()
    upper = np.array([trace.evaluate(problem) for problem in problems])
    spectrum = eigenvalue_witness(problems[-1], Budgets())
    return upper if spectrum is None else np.minimum(upper, spectrum.evaluate(problems[-1]))


def least_of_more(upper: FloatArray) -> FloatArray:
    """Return the bounds of ascending k, each the least of those with as many features or more."""
    rising: FloatArray = np.minimum.accumulate(upper[::-1])[::-1]
    return rising


def checked(
    objective: FloatArray, upper: FloatArray, at_least: Callable[[int], float]
) -> FloatArray:
    """Return the band, raised by the rounding of an objective that is above it.

    The objective is as it was computed. Where that is above the bound, what was reached is computed
    once more and rounded downwards: a bound below it is a bug, and raises, as in a `Proof`. Else
    the objective is off, by no more than its distance to that value, and this much is added to the
    bound.

    Parameters
    ----------
    objective, upper : of every k, ascending
    at_least : from the place of a k to what was reached there, rounded downwards
    """
    raised = upper.copy()
    for place in np.flatnonzero(objective > upper).tolist():
        reached = at_least(place)
        if upper[place] < reached:
            raise CertificateError(
                f"The bound {upper[place]!r} is below {reached!r}, which was reached: this is a "
                "bug of kspan, please report it."
            )
        raised[place] = objective[place] + (upper[place] - reached)
    rising: FloatArray = np.maximum.accumulate(raised)
    return rising


def where_to_certify(ks: Sequence[int], n_allowed: int) -> tuple[list[int], list[int]]:
    """Return at which k to prove, and for which more k to keep witnesses.

    Both evenly spaced on a logarithmic scale: the curve bends where k is small. Without full-size
    witnesses a proof reaches down only, so the largest k is among those of large problems.

    Examples
    --------
    >>> where_to_certify(range(2, 31), 30)
    ([4, 8, 15], [2, 3, 4, 6, 8, 11, 15, 21, 30])
    """
    first, last = ks[0], ks[-1]
    if n_allowed > DENSE_LIMIT:
        return _spread(ks, np.geomspace(first, last, N_CERTIFIED + 1)[1:]), []
    count = N_CERTIFIED if n_allowed <= MANY_FEATURES else 1
    proved = _spread(ks, np.geomspace(first, last, count + 2)[1:-1])
    more = N_WITNESSES if n_allowed <= MANY_FEATURES else N_CERTIFIED
    return proved, _spread(ks, np.geomspace(first, last, more))


def _spread(ks: Sequence[int], wanted: FloatArray) -> list[int]:
    """The numbers of the path nearest to those wanted, each once."""
    array = np.asarray(ks)
    return sorted({int(array[np.abs(array - k).argmin()]) for k in wanted})


def where(
    done: list[int], certify_at: Sequence[int] | None, choice: Choice, *, everywhere: bool
) -> tuple[list[int], list[int]]:
    """Return at which k to prove, and which get a witness too."""
    if everywhere:
        return done, []
    if certify_at is None:
        return where_to_certify(done, choice.features.size)
    return sorted({int(k) for k in certify_at} & set(done)), []


def certify_some(
    problem_at: ProblemAt, best: dict[int, Candidate], level: str,
    at: tuple[list[int], list[int]], monitor: Monitor,
) -> tuple[list[Certificate], Status | None]:  # fmt: skip
    """Prove at some k; a better support found on the way is kept."""
    certificates: list[Certificate] = []
    proved, witnesses = at
    stopped = None
    for place, k in enumerate(proved):
        if monitor.out_of_time():
            return certificates, monitor.stopped
        problem = problem_at(k)
        # Full-size witnesses are shared by all certificates: one of them makes them.
        grid = tuple(witnesses) if place == 0 and level != "fast" else ()
        part = monitor.inner(level, share=1 / (len(proved) - place))
        certificate = prove_point(problem, best[k], level, part, ProofOptions(k_grid=grid))
        certificates.append(certificate)
        if certificate.lower > best[k].objective:
            best[k] = problem.refit(certificate.support)
        if certificate.status.stopped_early:
            stopped = certificate.status
    return certificates, stopped
