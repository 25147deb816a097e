r"""Components one after the other, each in what the ones before have left of A.

The one loop of all methods that find a component at a time, with or without proofs: a method brings
`find`, which finds one sparse vector for a covariance; whoever proves brings a callable that is
asked after each. A is divided by a power of two for `find`, so that its largest variance is between
one and two: huge and tiny scales are then no concern of a method.

A deflation takes a component out of A. With x the unit vector just found:

=============== ================================================================================
projection      :math:`(I - xx') A (I - xx')`
schur           :math:`A - A x x' A / (x'Ax)`: what is left given the score Xx
hotelling       :math:`A - (x'Ax)\, xx'`: may leave negative eigenvalues
orthogonalized  projection with the part of x orthogonal to all components before
generalized     projection with :math:`q = Bx`, B the projector away from the directions taken
                out before; the next x maximises :math:`x'Ax / x'Bx` and not :math:`x'Ax / x'x`
remove          the features of x are taken out, so that no two components share one
=============== ================================================================================

For eigenvectors of A all of them are the same. For sparse vectors, which are not, only Schur,
orthogonalized and generalized deflation, and removing the features, are for good: the others may
bring variance back in later steps. Each is an update of low rank or a mask, so A is never formed.

Reference: Mackey, Deflation Methods for Sparse PCA, NIPS 2008.
"""

from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from kspan.arrays import FloatArray
from kspan.covariance import (
    Covariance,
    MaskedCovariance,
    ShiftedCovariance,
    UnitCovariance,
    UpdatedCovariance,
)
from kspan.covariance.derived import largest_doubts
from kspan.linalg.machine import threads_for
from kspan.linalg.rounding import UNIT
from kspan.problem import LoadingsSolution
from kspan.progress import Monitor, Status, worst
from kspan.solvers.loadings import fill_empty, unit_solution
from kspan.solvers.method import Method, NonnegativeMethod

DEFLATIONS = ("projection", "schur", "hotelling", "orthogonalized", "generalized", "remove")

# Those that leave a positive semidefinite matrix, and maximise x'Ax for it, as proofs need.
PROVABLE_DEFLATIONS = ("projection", "schur", "orthogonalized", "remove")

# Those of them that nonnegative methods have.
POSITIVE_DEFLATIONS = ("remove", "projection", "orthogonalized")


class Deflation:
    """What is left of a covariance while components are taken out of it.

    Attributes
    ----------
    current : Covariance
        What is left.
    taken : (d, t) orthonormal directions taken out, by "orthogonalized" and "generalized"
    lacking : float
        What is left has no eigenvalue below minus this one, but for rounding.
    """

    def __init__(self, covariance: Covariance, kind: str = "projection"):
        if kind not in DEFLATIONS:
            raise ValueError(f"deflation must be one of {list(DEFLATIONS)}, got {kind!r}.")
        self.current = covariance
        self.kind = kind
        self.taken: FloatArray = np.empty((covariance.n_features, 0))
        self.lacking = 0.0

    def remove(self, x: FloatArray) -> None:
        """Take the unit vector x out."""
        if self.kind == "remove":
            self.current = MaskedCovariance(self.current, x == 0)
            return
        x = x.reshape(-1, 1)
        turned = 0.0  # what rounding may have turned the direction by
        if self.kind in ("orthogonalized", "generalized"):
            # B = I - QQ', so q = Bx is the part of x orthogonal to what is taken, in both.
            q = x - self.taken @ (self.taken.T @ x)
            q -= self.taken @ (self.taken.T @ q)
            length = np.linalg.norm(q)
            if length <= np.sqrt(np.finfo(float).eps):
                return  # nothing of it is left
            q /= length
            turned = 16 * (len(q) + 8) * UNIT / float(length)
            self.taken = np.hstack([self.taken, q])
            x = q
        product = self.current.precise_product(x)
        variance = float(x[:, 0] @ product[:, 0])
        if self.kind == "hotelling":
            self.lacking += hotelling_lack(product[:, 0] + self.lacking * x[:, 0], x[:, 0])
            self.current = UpdatedCovariance(self.current, x, np.array([[-variance]]))
        elif self.kind == "schur":
            if (known := schur_errors(self.current, x[:, 0], product[:, 0], variance)) is not None:
                column = product / np.sqrt(variance)
                self.current = UpdatedCovariance(self.current, column, np.array([[-1.0]]), *known)
        else:
            # (I - xx')A(I - xx') = A - x(Ax)' - (Ax)x' + (x'Ax) xx'
            size = float(np.abs(product).max()) or 1.0  # both columns of about the same size
            core = np.array([[variance, -size], [-size, 0.0]])
            L = np.hstack([x, product / size])
            errors = projection_errors(self.current, x[:, 0], variance, turned)
            self.current = UpdatedCovariance(self.current, L, core, errors)

    def lifted(self) -> "Deflation":
        """Return the same with as much on the diagonal as it lacks to be positive semidefinite.

        The best unit vector is the same.
        """
        if not self.lacking > 0:
            return self
        lifted = copy(self)
        lifted.current, lifted.lacking = ShiftedCovariance(self.current, self.lacking), 0.0
        return lifted

    def value(self, x: FloatArray) -> float:
        """Return what a unit vector explains of what is left: what the next one maximises."""
        if self.kind == "generalized":
            return _quotient(self, x)
        used = np.flatnonzero(x)
        return float(x[used] @ self.current.submatrix(used) @ x[used])


def hotelling_lack(product: FloatArray, x: FloatArray) -> float:
    r"""Return how far below zero an eigenvalue of :math:`A - (x'Ax)\,xx'` can be, from Ax.

    As A is at least :math:`pp'/v`, p = Ax and v = x'Ax, this is at least :math:`pp'/v - v\,xx'`,
    whose eigenvalues have the sum :math:`t = (\|p\|^2 - v^2)/v` and the product -vt. If s was
    added to the diagonal of A before, v is larger by s and as much is left: no eigenvalue falls.
    """
    variance = float(x @ product)
    if not variance > 0:
        return 0.0
    sum_of_two = max(float(np.sum((product / variance) ** 2)) - 1.0, 0.0) * variance
    root = np.sqrt(sum_of_two * (sum_of_two + 4 * variance))
    return float(root - sum_of_two) / 2


def projection_errors(
    covariance: Covariance, x: FloatArray, variance: float, turned: float
) -> FloatArray:
    r"""Return how well ``(I - xx')A(I - xx')`` is known, as `Covariance.entry_errors` says it.

    Let an entry of A, and of a product with A, be off by :math:`\sqrt{p_i}\sqrt{p_j}`. Then Ax is
    off by :math:`\sqrt{p_i}ρ` with :math:`ρ = \sum_j|x_j|\sqrt{p_j}`, x'Ax by ρ², and an entry of
    the sum by :math:`(\sqrt{p_i}+|x_i|ρ)(\sqrt{p_j}+|x_j|ρ)`. What is added is, by Cauchy and
    Schwarz, at most :math:`(\sqrt{a_{ii}}+|x_i|\sqrt{v})(\sqrt{a_{jj}}+|x_j|\sqrt{v})`, v = x'Ax:
    so many units in the last place are the rounding of the sums, and of x, whose length is one up
    to rounding. A direction that is off by δ in length moves entries by at most
    :math:`4δ(\sqrt{a_{ii}}+\sqrt{t})(\sqrt{a_{jj}}+\sqrt{t})`, t = tr A.
    """
    size = np.abs(x)
    own = np.sqrt(np.maximum(covariance.diagonal(), 0.0))
    parts = np.sqrt(covariance.product_errors())
    errors = (parts + size * float(size @ parts)) ** 2
    errors += (2 * x.size + 64) * UNIT * (own + size * np.sqrt(max(variance, 0.0))) ** 2
    if turned > 0:
        errors += 4 * turned * (own + float(np.linalg.norm(own))) ** 2
    return errors


def schur_errors(
    covariance: Covariance, x: FloatArray, product: FloatArray, variance: float
) -> tuple[FloatArray, tuple[float, float]] | None:
    r"""Return how well :math:`A - qq'` is known, with :math:`q = Ax/\sqrt{v}` and v = x'Ax.

    That is `entry_errors`, and bounds on `psd_slack` and `unseen`. None if v is within a factor of
    sixteen of its rounding: then nothing is known of what x explains, and there is nothing to take
    out.

    As in `projection_errors`, the product is off by :math:`\sqrt{p_i}ρ`, and v by
    :math:`ε = ρ^2` and the rounding of a sum. Let :math:`θ^2 = 4ε/v`, at most 1/4. Then q is off by
    at most :math:`e_i = θ^2g_i + θ\sqrt{p_i}` where :math:`g_i = \frac32(|q_i| + θ\sqrt{p_i})`
    is above the true one, and qq' by :math:`e_ig_j + g_ie_j + e_ie_j`. As
    :math:`θ(\sqrt{p_i}g_j + g_i\sqrt{p_j}) \le (θg_i+\sqrt{p_i})(θg_j+\sqrt{p_j})`, this is of
    the form :math:`\sqrt{r_ir_j}` with the r below.

    What is left of y is :math:`\min_t (y-tx)'A(y-tx)`, taken on at t = y'Ax/v, so the slack of A
    counts :math:`\|y-tx\|^2 \le (1+\|Ax\|/v)^2` times; and so does what A has not seen.
    """
    size = np.abs(x)
    parts = np.sqrt(covariance.product_errors())
    rho = float(size @ parts)
    off = rho * rho + (np.count_nonzero(x) + 8) * UNIT * float(size @ np.abs(product))
    if not 16 * off < variance:
        return None
    theta = 2 * np.sqrt(off / variance)
    q = np.abs(product) / np.sqrt(variance)
    g = 1.5 * (q + theta * parts)
    slack, unseen = largest_doubts(covariance)
    errors = parts**2 + 2 * (theta * g) ** 2 + 1.25 * (theta * g + parts) ** 2
    own = np.sqrt(np.maximum(covariance.diagonal(), 0.0) + slack)
    errors += (2 * x.size + 64) * UNIT * (own + parts + q) ** 2
    shares = np.abs(product) / variance + rho * parts / variance  # in this order: no overflow
    largest = float(shares.max())
    longer = 1 + 1.5 * largest * float(np.linalg.norm(shares / largest))
    return errors * (1 + 64 * UNIT), (slack * longer * longer, unseen * longer * longer)


# The quotient of the generalized deflation has settled when ρ grows by less than this share.
QUOTIENT_TOL = 1e-9
MAX_QUOTIENTS = 50

# Variances below this many units in the last place of the largest one are what rounding leaves.
NOTHING_LEFT = 64


@dataclass(frozen=True)
class Component:
    """One sparse vector, and how it was found.

    Attributes
    ----------
    vector : (d,) unit vector
    history : variance along the feasible vectors on the way, in what was left of A
    n_iter, status : number of steps, and how it ended
    """

    vector: FloatArray
    history: list[float]
    n_iter: int
    status: Status


# (what is left of A, the vector found, the component's monitor) -> that vector, or a better one
Prove = Callable[[Covariance, FloatArray, Monitor], FloatArray]


@dataclass(frozen=True, eq=False)
class OneByOneMethod(Method[Any, LoadingsSolution]):
    """A method that finds one component at a time.

    Parameters
    ----------
    deflation : str
        How a component is taken out of A before the next one, see `kspan.solvers.one_by_one`.
    """

    deflations: ClassVar[tuple[str, ...]] = DEFLATIONS

    deflation: str = "projection"

    def check_options(self) -> None:
        """The deflation must be one that the method can have."""
        super().check_options()
        if self.deflation not in self.deflations:
            raise ValueError(
                f"deflation must be one of {list(self.deflations)}, got {self.deflation!r}."
            )

    def component(self, problem: Any, j: int) -> Any:
        """Return what `find` is told about component j: the problem of all, as a rule."""
        return problem

    @abstractmethod
    def find(
        self, left: UnitCovariance, problem: Any, start: FloatArray | None, monitor: Monitor,
        rng: np.random.Generator,
    ) -> Component:  # fmt: skip
        """Find one component.

        Parameters
        ----------
        left : what is left of A, its largest variance near one at first
        problem : of all components, with the A of the user: how many features, which penalty
        start : a vector to start from, or None for the method's own start
        monitor : told after every step; says when to stop
        rng : numpy.random.Generator
        """

    def run(
        self,
        problem: Any,
        monitor: Monitor,
        rng: np.random.Generator,
        prove: Prove | None = None,
    ) -> LoadingsSolution:
        """Find m components one after the other.

        Components that were not found, because nothing was left of A or the method had to stop,
        are single features: those of largest variance in what is left that no component uses.

        Parameters
        ----------
        problem : with m components
        monitor, rng : see `kspan.solvers.method.Method.run`
        prove : asked after each component; a better vector that it returns takes the place of the
            one found. The time is then shared equally by the components.
        """
        covariance, m = UnitCovariance(problem.covariance), problem.n_components
        left = Deflation(problem.covariance, self.deflation)
        whole = monitor.inner(unit=covariance.unit)
        found: list[Component] = []
        told = whole if prove is None else monitor
        d = problem.covariance.n_features
        size = d * min(problem.covariance.n_samples or d, d)
        with monitor.interruptible(), threads_for(size):
            while len(found) < m and not told.stopped:
                empty = _nothing(left, problem.covariance)
                if empty and prove is None:
                    break
                part = monitor.inner(share=None if prove is None else 1 / (m - len(found)))
                inside = whole if prove is None else part.inner(unit=covariance.unit)
                if empty:  # that nothing is left is proved too
                    found.append(_single_feature(found, left))
                else:
                    part_of = self.component(problem, len(found))
                    found.append(self.next_component(part_of, left, covariance.unit, inside, rng))
                if prove is not None:
                    better = prove(left.current, found[-1].vector, part)
                    found[-1] = replace(found[-1], vector=better)
                if len(found) < m:
                    left.remove(found[-1].vector)
        statuses = [component.status for component in found]
        if len(found) < m and (stopped := whole.stopped) is not None:
            statuses.append(stopped)
        loadings = np.zeros((problem.n_features, m))
        for j, component in enumerate(found):
            loadings[:, j] = component.vector
        loadings = fill_empty(loadings, left.current.diagonal())
        return unit_solution(
            loadings, covariance, solver=self.name,
            status=worst(statuses or [Status.COMPLETED]),
            history=[value for component in found for value in component.history],
            n_iter=sum(component.n_iter for component in found),
        )  # fmt: skip

    def next_component(
        self, problem: Any, left: Deflation, unit: float, monitor: Monitor,
        rng: np.random.Generator,
    ) -> Component:  # fmt: skip
        r"""Find the next component in what is left.

        With generalized deflation it maximises x'Ax / x'Bx, with the projector B = I - QQ' below.
        That x also maximises :math:`x'(A + ρQQ')x` over unit vectors, when ρ is its value; so the
        method is run on that matrix, which is positive semidefinite, and ρ raised until it stands
        still.
        """
        r = left.taken.shape[1]
        if left.kind != "generalized" or r == 0:
            return self.find(UnitCovariance(left.current, unit), problem, None, monitor, rng)
        runs: list[Component] = []
        best, rho, start = 0, 0.0, None
        for i in range(MAX_QUOTIENTS):
            matrix = UpdatedCovariance(left.current, left.taken, rho * np.eye(r))
            runs.append(self.find(UnitCovariance(matrix, unit), problem, start, monitor, rng))
            start = runs[-1].vector
            before, rho = rho, _quotient(left, start)
            # A tie goes to the first: x plus anything taken out has the same quotient.
            if rho <= before * (1 + QUOTIENT_TOL):
                break
            best = i
            if monitor.stopped:
                break
        return Component(
            runs[best].vector,
            [value for run in runs for value in run.history],
            sum(run.n_iter for run in runs),
            worst([runs[best].status, monitor.stopped or Status.CONVERGED]),
        )


@dataclass(frozen=True, eq=False)
class NonnegativeOneByOneMethod(OneByOneMethod, NonnegativeMethod):
    """A method that finds one nonnegative component at a time.

    Parameters
    ----------
    deflation : {"remove", "projection", "orthogonalized"}
        What they leave of A is positive semidefinite, which the methods need. "remove" takes the
        features of a component out.
    """

    deflations = POSITIVE_DEFLATIONS

    deflation: str = "remove"


def _single_feature(found: list[Component], left: Deflation) -> Component:
    """Return the component that stands for one of which nothing is left."""
    columns = [component.vector for component in found]
    loadings = np.column_stack([*columns, np.zeros(left.current.n_features)])
    vector = fill_empty(loadings, left.current.diagonal())[:, -1]
    return Component(vector, [], 0, Status.COMPLETED)


def _quotient(left: Deflation, x: FloatArray) -> float:
    """Return ``x'Ax / x'Bx`` of what is left."""
    below = 1.0 - float(np.sum((left.taken.T @ x) ** 2))
    above = float(x @ left.current.matmat(x[:, None])[:, 0])
    return above / below if below > np.finfo(float).eps else 0.0


def _nothing(left: Deflation, before: Covariance) -> bool:
    """Say whether only rounding is left of a covariance."""
    limit = NOTHING_LEFT * float(np.finfo(before.dtype).eps) * before.diagonal().max()
    return bool(left.current.diagonal().max() <= limit)
