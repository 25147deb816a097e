"""The upper edge of the path: certificates at a few k, and for every k the least of all bounds.

- the k largest variances (trace bound), always;
- the sum of the m leading eigenvalues, where the spectrum can be computed to the last one: up to
  `DENSE_LIMIT` features, or fewer samples than features in memory. Lanczos' values are no proof;
- every certificate: at its own k, at all fewer features, and by its witnesses for other k
  (`Certificate.upper_at`);
- what holds with more features holds with fewer, so the band never falls as k grows.

With many features a certificate costs seconds, but one k after another costs little
(`kspan.proofs.search.along`): some k are proved, evenly spaced, and then those where the band is
widest, until it is as narrow as wanted. Where variances are too even for that, and the features too
many to be relaxed within seconds, several components are bounded by closed forms; `certify_at` asks
for more.
"""

from collections.abc import Callable, Sequence

import numpy as np

from kspan.arrays import FloatArray
from kspan.problem import Candidate, Choice, RepresentProblem, RowSparseProblem
from kspan.progress import Monitor, Status
from kspan.proofs import Certificate, CertificateError
from kspan.proofs.check.claims import Problem
from kspan.proofs.check.witnesses import TraceWitness
from kspan.proofs.search.along import Along
from kspan.proofs.search.closed_forms import eigenvalue_witness
from kspan.proofs.search.prover import ProofOptions
from kspan.proofs.search.telling_search import spectrum_witness
from kspan.proofs.search.tree_state import Budgets
from kspan.solvers.rowsparse.moves import ProblemAt
from kspan.solving import HEURISTICS, prove_point

# Up to this many features the spectrum of A is computed.
DENSE_LIMIT = Budgets().dense_limit

# How many k are proved at their own k, and how many more get a witness of their own in one of
# those certificates. A witness costs some 15 eigensolves of order d.
N_CERTIFIED, N_WITNESSES = 3, 9

# With more features than this both are done at one k only, seconds each, unless there is a split.
MANY_FEATURES = 300

# Along a split: how many k are proved at first, and at most; and the gap that is small enough.
N_ALONG, MOST_ALONG, NARROW = 5, 14, 0.05


def upper_band(
    problem: RowSparseProblem | RepresentProblem,
    ks: Sequence[int],
    certificates: Sequence[Certificate],
    free: FloatArray | None = None,
) -> FloatArray:
    """Return what no selection of k features can exceed, for every k.

    Parameters
    ----------
    problem : with any of the k
    ks : the numbers of features, ascending
    certificates : of problems that differ in k only
    free : `free_bounds`, where they are known already
    """
    problems = [problem.at(k) for k in ks]
    upper = free_bounds(problems) if free is None else free.copy()
    sizes = [each.choice.size for each in problems]  # under rules it may be less than k
    for certificate in certificates:
        for place, k in enumerate(sizes):
            if k <= certificate.reach:
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
    certify_at: Sequence[int] | None, monitor: Monitor, *, everywhere: bool,
) -> tuple[list[Certificate], Status | None]:  # fmt: skip
    """Prove at some k; a better support found on the way is kept.

    Parameters
    ----------
    problem_at : from k to the problem
    best : the best point for every k
    level : of the proofs
    certify_at : where the user wants them
    monitor : when to stop
    everywhere : whether every k is proved
    """
    certificates: list[Certificate] = []
    stopped, done = None, sorted(best)
    if certify_at is None and not everywhere:
        along = None
        with monitor.interruptible():
            along = _along(problem_at, best, level, monitor)
        if along is not None:
            return _certify_along(along, problem_at, best, monitor)
        level = _affordable(problem_at(done[-1]), level)
    choice = problem_at(done[0]).choice
    proved, witnesses = where(done, certify_at, choice, everywhere=everywhere)
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


def _along(
    problem_at: ProblemAt, best: dict[int, Candidate], level: str, monitor: Monitor
) -> Along | None:
    """Return what proves one k after another; None where each takes a proof of its own."""
    smallest, largest = problem_at(min(best)), problem_at(max(best))
    if level != "tight" or not isinstance(largest, RowSparseProblem) or monitor.out_of_time():
        return None
    few = largest.choice.features.size <= MANY_FEATURES
    if few or largest.choice.has_rules or len(best) == 1:
        return None
    supports = [point.support for point in best.values()]
    quiet = monitor.inner(level, quiet=True)
    along = Along(largest, supports, heuristic=HEURISTICS[RowSparseProblem], monitor=quiet)
    says_something = along.says_something(smallest, TraceWitness().evaluate(smallest))
    return along if says_something else None


def _affordable(problem: RowSparseProblem | RepresentProblem, level: str) -> str:
    """Return a level that takes no minutes: whole relaxations are left to who asks for them.

    Of one component the rows of A leave few features.
    """
    large = problem.choice.features.size > Budgets().newton_limit and problem.n_components > 1
    return "fast" if large and isinstance(problem, RowSparseProblem) and level == "tight" else level


def _certify_along(
    along: Along, problem_at: ProblemAt, best: dict[int, Candidate], monitor: Monitor
) -> tuple[list[Certificate], Status | None]:
    """Prove at a few k, then where the band is widest, until it is narrow."""
    found: dict[int, Certificate] = {}
    with monitor.interruptible():
        _prove_along(along, problem_at, best, found, monitor)
    return [found[k] for k in sorted(found)], monitor.stopped


def _prove_along(
    along: Along, problem_at: ProblemAt, best: dict[int, Candidate],
    found: dict[int, Certificate], monitor: Monitor,
) -> None:  # fmt: skip
    """Put certificates into `found`."""
    ks = sorted(best)
    last = problem_at(ks[-1])
    last.covariance.ensure_psd()  # bounds rely on it
    free = free_bounds([problem_at(k) for k in ks])
    proved = _spread(ks, np.geomspace(ks[0], ks[-1], N_ALONG + 1)[1:])

    def prove(k: int, most: int) -> None:
        certificate = along.prove(problem_at(k), best[k], most)
        found[k] = certificate
        if certificate.lower > best[k].objective:
            best[k] = problem_at(k).refit(certificate.support)
        monitor.solver = f"proof at k={k}"
        monitor.report(best[k].objective, upper=certificate.upper)

    for k, after in zip(proved, [*proved[1:], ks[-1]], strict=True):
        if not monitor.out_of_time():
            prove(k, after)
    while len(found) < MOST_ALONG and not monitor.out_of_time():
        upper = upper_band(last, ks, list(found.values()), free)
        gaps = np.array([
            0.0 if k in found else 1 - best[k].objective / most if most > 0 else 0.0
            for k, most in zip(ks, upper, strict=True)
        ])  # fmt: skip
        widest = int(np.argmax(gaps))
        if gaps[widest] <= NARROW:
            break
        k = ks[widest]
        prove(k, min((other for other in found if other > k), default=ks[-1]))
