"""Nonnegative components one after the other, with a proof for each.

A component is proved on what those before it have left of the covariance. A better vector that a
proof finds takes its component's place before the next one is looked for.
"""

import os
import time
from typing import Any

import numpy as np

from kspan.arrays import FloatArray
from kspan.certificates import Certificate, CertificateStatus
from kspan.methods import certify, solve
from kspan.problem import NonnegativeProblem
from kspan.progress import Callback, Status
from kspan.solution import LoadingsSolution
from kspan.solvers.elementsparse.components import worst
from kspan.solvers.elementsparse.deflation import Deflation
from kspan.solvers.nonnegative.components import NONNEGATIVE_DEFLATIONS

_AS_STATUS = {
    CertificateStatus.TIME_LIMIT: Status.TIME_LIMIT,
    CertificateStatus.INTERRUPTED: Status.INTERRUPTED,
    CertificateStatus.STOPPED: Status.STOPPED,
}


def component_problems(
    problem: NonnegativeProblem, loadings: FloatArray, deflation: str = "remove"
) -> list[NonnegativeProblem]:
    """Return the problem that each column of the loadings solves, given those before it.

    Parameters
    ----------
    problem : NonnegativeProblem
    loadings : (d, m) array
    deflation : {"remove", "projection", "orthogonalized"}

    Examples
    --------
    >>> import numpy as np
    >>> from kspan import NonnegativeProblem, as_covariance
    >>> from kspan.series import component_problems
    >>> problem = NonnegativeProblem(as_covariance(np.eye(3), kind="covariance"), 2, 1)
    >>> second = component_problems(problem, np.eye(3)[:, :2])[1]
    >>> second.covariance.diagonal()
    array([0., 1., 1.])
    """
    left = _deflation(problem, deflation)
    found = []
    for x in loadings.T:
        found.append(NonnegativeProblem(left.current, 1, problem.n_nonzero_coefs))
        left.remove(x)
    return found


def _deflation(problem: NonnegativeProblem, kind: str) -> Deflation:
    """Proofs need what is left to be positive semidefinite."""
    if kind not in NONNEGATIVE_DEFLATIONS:
        raise ValueError(f"deflation must be one of {list(NONNEGATIVE_DEFLATIONS)}, got {kind!r}.")
    return Deflation(problem.covariance, kind)


def solve_and_prove(
    problem: NonnegativeProblem,
    solver: str = "auto",
    level: str = "tight",
    *,
    deflation: str = "remove",
    random_state: int | None = None,
    callback: Callback | None = None,
    time_limit: float | None = None,
    certify_options: dict[str, Any] | None = None,
    **options: Any,
) -> tuple[LoadingsSolution, list[Certificate]]:
    """Find and certify one component after the other.

    Parameters
    ----------
    problem : NonnegativeProblem
    solver : str
        One that finds a component at a time.
    level : see `kspan.certify`
    deflation : {"remove", "projection", "orthogonalized"}
    random_state, callback, time_limit : as in `kspan.solve`; the time is shared by all components
    certify_options : more for `kspan.certify`; a checkpoint gets the component's number appended
    **options : of the solver

    Returns
    -------
    solution : LoadingsSolution
    certificates : list of Certificate
        The j-th is about the j-th of ``component_problems(problem, solution.loadings)``.
    """
    started, m = time.perf_counter(), problem.n_components
    left = _deflation(problem, deflation)
    loadings = np.zeros((problem.n_features, m))
    certificates: list[Certificate] = []
    found: list[LoadingsSolution] = []
    statuses: list[Status] = []

    def time_for(share: float) -> float | None:
        """What is left of the time, for a share of the components that are left."""
        if time_limit is None:
            return None
        return max((time_limit - (time.perf_counter() - started)) * share, 1e-9)

    for j in range(m):
        share = 1 / (m - j)
        single = NonnegativeProblem(left.current, 1, problem.n_nonzero_coefs)
        first = solve(
            single, solver, random_state=random_state, callback=callback,
            time_limit=time_for(share), **options,
        )  # fmt: skip
        found.append(first)
        more = dict(certify_options or {})
        if m > 1 and more.get("checkpoint") is not None:  # a file for each component
            more["checkpoint"] = f"{os.fspath(more['checkpoint'])}.{j + 1}"
        certificate = certify(
            single, first, level, time_limit=time_for(share), callback=callback, **more
        )
        certificates.append(certificate)
        loadings[certificate.support, j] = certificate.weights[:, 0]
        left.remove(loadings[:, j])
        statuses += [first.status, _AS_STATUS.get(certificate.status, Status.CONVERGED)]
        if {Status.INTERRUPTED, Status.STOPPED} & set(statuses):
            break
    if len(certificates) < m:  # told to stop: the rest without proofs
        rest = NonnegativeProblem(left.current, m - len(certificates), problem.n_nonzero_coefs)
        last = solve(rest, solver, random_state=random_state, time_limit=1e-9, **options)
        loadings[:, len(certificates) :] = last.loadings
    solution = LoadingsSolution.from_loadings(
        loadings, loadings.T @ problem.covariance.matmat(loadings), solver=found[0].solver,
        status=worst(statuses),
        history=[float(value) for part in found for value in part.history],
        n_iter=sum(part.n_iter for part in found),
    )  # fmt: skip
    return solution, certificates
