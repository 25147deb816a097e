"""One problem on one route: what was tried, and what was wrong."""

import warnings

import numpy as np

from benchmarks.soundness.all_routes import ROUTES
from benchmarks.soundness.claims import Judgement
from benchmarks.soundness.oracle import Truth
from benchmarks.soundness.problems import Case
from benchmarks.soundness.routes import Trial
from kspan.proofs import CertificateError


def examine(case: Case, route: str, seed: int, known: Truth | None = None) -> Judgement:
    """Run a route on a case; whatever it raises is judged too.

    Parameters
    ----------
    case, route, seed : what to run; the same again gives the same again
    known : the truth about the case, if someone has it already
    """
    trial = Trial(case, seed, known)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ROUTES[route].run(trial)
        except Exception as error:  # whatever it is, it is a finding
            judge_error(error, trial)
    return trial.judge


def judge_error(error: Exception, trial: Trial) -> None:
    """An honest refusal is an answer where there may be one; all else is a crash."""
    crash = (CertificateError, np.linalg.LinAlgError)  # both are kinds of ValueError
    honest = isinstance(error, ValueError) and not isinstance(error, crash)
    if honest and trial.case.may_refuse:
        trial.judge.refused += 1
        return
    trial.judge.complain(f"raises {type(error).__name__}", f"{type(error).__name__}: {error}")


def same_failure(judgement: Judgement, claim: str) -> bool:
    """Say whether a claim is among those found wrong."""
    return any(found == claim for found, _ in judgement.wrong)
