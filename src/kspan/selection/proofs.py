"""Certificates at a few k of a path."""

from collections.abc import Sequence

from kspan.certificates import Certificate, CertificateStatus
from kspan.methods import certify
from kspan.progress import Callback, Monitor, Status
from kspan.selection.band import where_to_certify
from kspan.selection.moves import ProblemAt
from kspan.solution import Candidate, Solution

_STOPPED = {
    CertificateStatus.TIME_LIMIT: Status.TIME_LIMIT,
    CertificateStatus.INTERRUPTED: Status.INTERRUPTED,
    CertificateStatus.STOPPED: Status.STOPPED,
}


def where(
    done: list[int], certify_at: Sequence[int] | None, n_allowed: int, *, everywhere: bool
) -> tuple[list[int], list[int]]:
    """Return at which k to prove, and which get a witness too."""
    if everywhere:
        return done, []
    if certify_at is None:
        return where_to_certify(done, n_allowed)
    unknown = sorted(set(certify_at) - set(done))
    if unknown:
        raise ValueError(f"certify_at holds {unknown[0]}, which is not on the path: {done}.")
    return sorted({int(k) for k in certify_at}), []


def certify_some(
    problem_at: ProblemAt, best: dict[int, Candidate], level: str,
    at: tuple[list[int], list[int]], monitor: Monitor, report: Callback | None,
) -> tuple[list[Certificate], Status | None]:  # fmt: skip
    """Prove at some k; a better support found on the way is kept."""
    certificates: list[Certificate] = []
    proved, witnesses = at
    stopped = None
    for place, k in enumerate(proved):
        if monitor.out_of_time():
            return certificates, Status.TIME_LIMIT
        problem, left = problem_at(k), monitor.time_left()
        solution = Solution.from_candidate(
            best[k], n_features=problem.n_features, solver="path", status=Status.COMPLETED,
            history=[best[k].objective], n_iter=1,
        )  # fmt: skip
        certificate = certify(
            problem, solution, level, callback=report,
            time_limit=None if left is None else left / (len(proved) - place),
            # Full-size witnesses are shared by all certificates: one of them makes them.
            k_grid=witnesses if place == 0 and level != "fast" else (),
        )  # fmt: skip
        certificates.append(certificate)
        if certificate.lower > best[k].objective:
            best[k] = problem.refit(certificate.support)
        stopped = _STOPPED.get(certificate.status, stopped)
        if stopped in (Status.INTERRUPTED, Status.STOPPED):
            break
    return certificates, stopped
