"""What the estimators share whose components have features of their own."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import _fit_context

from kspan.covariance import Covariance
from kspan.estimators.covariance_estimator import CovarianceEstimator, SparseProjection
from kspan.problem import LoadingsSolution
from kspan.progress import Monitor
from kspan.proofs.check.certificate import Certificate
from kspan.proofs.search.prover import level_of
from kspan.solvers.method import AnyMethod
from kspan.solving import run_method, solve_with_proof


class LoadingsEstimator(SparseProjection, CovarianceEstimator):
    """Fit sparse components that need not share features."""

    certificates_: list[Certificate]

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the components.

        Parameters
        ----------
        X : {array, DataFrame, sparse array, path, Covariance} of shape (n_samples, n_features)
            The data, or with ``covariance="precomputed"`` an (n_features, n_features) matrix.
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            What each row counts, with the weights' sum less one in the place of n - 1: whole
            numbers are the same as repeating rows, zero as leaving them out. Only for data.
        """
        monitor = self._monitor()
        covariance = self._as_covariance(X, reset=True, sample_weight=sample_weight)
        self._count_components(covariance)
        solution = self._solve(covariance, monitor)
        self._keep(covariance, solution)
        self.orthogonality_error_ = solution.orthogonality_error
        self.n_nonzero_coefs_ = np.count_nonzero(self.components_, axis=1)
        return self

    @abstractmethod
    def _solve(self, covariance: Covariance, monitor: Monitor) -> LoadingsSolution:
        """Run the method."""

    def _run(self, problem: Any, method: AnyMethod, monitor: Monitor) -> LoadingsSolution:
        """Run a method on a problem, with a seed of its own."""
        rng = np.random.default_rng(self._seed())
        solution: LoadingsSolution = run_method(problem, method, monitor.inner(method.name), rng)
        return solution

    def _run_with_proofs(
        self, problem: Any, method: AnyMethod, monitor: Monitor, certify: bool | str,
        n_jobs: int | None,
    ) -> LoadingsSolution:  # fmt: skip
        """Run a method and, if asked to, prove every component: sets `certificates_`."""
        self._forget("certificates_")
        level = method.proof_level or level_of(certify, type(problem))
        if level is None:
            return self._run(problem, method, monitor)
        rng = np.random.default_rng(self._seed())
        solution: LoadingsSolution
        solution, self.certificates_ = solve_with_proof(
            problem, method, level, monitor, rng, self._proof_options(n_jobs)
        )
        return solution
