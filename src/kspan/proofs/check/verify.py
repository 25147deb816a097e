"""`verify`: recompute a certificate from the data and its witness, and believe nothing else."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from kspan.problem import ElementSparseProblem, RepresentProblem
from kspan.progress import Status
from kspan.proofs.check.certificate import OPTIMAL_GAP, Certificate
from kspan.proofs.check.claims import (
    CertificateError,
    Problem,
    Witness,
    feature_numbers,
    follow,
    need,
    provable,
    reach,
)
from kspan.proofs.check.telling import TellingWitness, error_of


def verify(
    problem: Problem | ElementSparseProblem, certificate: Certificate
) -> tuple[float, float]:
    """Recompute the bounds of a certificate; raise at the first number that does not follow.

    Parameters
    ----------
    problem : RowSparseProblem, NonnegativeProblem or ElementSparseProblem
        The problem that the certificate is to be about; the last two with one component, see
        `kspan.solving.component_problems`.
    certificate : Certificate

    Returns
    -------
    lower, upper : float
        As recomputed, rounded outwards. The upper one of an ε-net (level "net") holds with the
        probability ``certificate.confidence``; it presumes that whoever made it did not choose
        the seed to that end.

    Raises
    ------
    CertificateError
        Naming what does not follow.

    Examples
    --------
    >>> from kspan import RowSparseProblem, as_covariance, certify, solve, verify
    >>> from kspan.datasets import load_pitprops
    >>> A = as_covariance(load_pitprops().covariance, kind="covariance")
    >>> problem = RowSparseProblem(A, 2, 5)
    >>> certificate = certify(problem, solve(problem, random_state=0), level="exact")
    >>> lower, upper = verify(problem, certificate)
    >>> round(lower, 6), certificate.status.value
    (4.391046, 'optimal')
    """
    problem = provable(problem)
    with _clear_errors():
        _same_problem(problem, certificate)
    problem.covariance.ensure_psd()
    witness = certificate.witness
    with _clear_errors():
        intact = certificate.compute_digest() == certificate.digest
        need(intact, "digest: the certificate was changed after it was made")
        lower = _lower(problem, certificate)
        error, noise = error_of(problem, certificate.lower)
        reach("lower", lower, certificate.lower, noise)
        for number, path in enumerate(certificate.path):
            path.check(problem, f"path witness {number}")
        known = isinstance(witness, Witness)
        need(known, f"witness: unknown kind {type(witness).__name__}")
        _about_the_same(problem, certificate)
        upper = witness.evaluate(problem)
        need(upper >= lower, f"upper: {upper!r} follows, but {lower!r} is reached")
        follow("upper", upper, certificate.upper)
        claimed = certificate.data_error
        need(0.99 * error <= claimed <= 1.01 * error, f"data_error: is {error!r}, not {claimed!r}")
        _check_settled(problem, certificate, certificate.lower - noise)
    if certificate.status is Status.OPTIMAL:
        need(certificate.gap <= OPTIMAL_GAP, f"status: optimal, but the gap is {certificate.gap}")
    return lower, upper


@contextmanager
def _clear_errors() -> Iterator[None]:
    """Turn whatever strange numbers and arrays lead to into `CertificateError`."""
    try:
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            yield
    except CertificateError:
        raise
    except FloatingPointError as error:
        raise CertificateError(f"witness: {error}") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # Arrays of a wrong kind or shape: a file may hold anything.
        raise CertificateError(f"witness: does not fit the problem ({error})") from None


def _same_problem(problem: Problem, certificate: Certificate) -> None:
    kind = problem.kind
    need(certificate.problem == kind, f"problem: is {kind}, the certificate's is not")
    for what, asked, claimed in (
        ("n_features", problem.n_features, certificate.n_features),
        ("n_components", problem.n_components, certificate.n_components),
        ("n_features_to_select", problem.choice.size, certificate.n_features_to_select),
    ):
        need(asked == claimed, f"{what}: the problem has {asked}, the certificate {claimed}")
    for what, mine, its in (
        ("include", problem.choice.include, certificate.include),
        ("exclude", problem.choice.exclude, certificate.exclude),
    ):
        need(np.array_equal(mine, its), f"{what}: differs between problem and certificate")
    need(problem.choice.same_as(certificate.choice), "choice: differs from the problem's")
    patterns, its_own = getattr(problem, "patterns", None), certificate.patterns
    same = its_own is None if patterns is None else patterns.same_as(its_own)
    need(same, "patterns: differ from the problem's")
    ridge = getattr(problem, "ridge", None)
    need(ridge == certificate.ridge, f"ridge: the problem's is {ridge}, not {certificate.ridge}")


def _about_the_same(problem: Problem, certificate: Certificate) -> None:
    """Require bounds on what is asked: what components explain, or what features tell."""
    tells = isinstance(problem, RepresentProblem)
    same = isinstance(certificate.witness, TellingWitness) == tells
    need(same and not (tells and certificate.path), "witness: is about another question")


def _lower(problem: Problem, certificate: Certificate) -> float:
    support = feature_numbers(certificate.support, problem.n_features, "support")
    try:
        return problem.claimed_value(support, certificate.weights)
    except ValueError as error:
        raise CertificateError(str(error)) from None


def _check_settled(problem: Problem, certificate: Certificate, lower: float) -> None:
    """Require that the witness, checked before, settles what is called proved in or out."""
    fixed, removed = certificate.witness.settled(lower)
    for what, claimed, follows in (
        ("proved_in", certificate.proved_in, fixed),
        ("proved_out", certificate.proved_out, removed),
    ):
        named = feature_numbers(claimed, problem.n_features, what)
        need(bool(np.isin(named, follows).all()), f"{what}: a feature does not follow")
