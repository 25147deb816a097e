r"""The convex relaxation of row-sparse PCA, solved in d + 1 unknowns.

Problem (dual of ``min_B D(B; k)``, see `kspan.proofs.check.bounds`)

.. math::
    \max_{P, z}\; \langle C, P\rangle + c'z \quad\text{s.t.}\quad
    0 \preceq P \preceq \mathrm{Diag}(z),\; \mathrm{tr}\,P = m,\;
    0 \le z \le 1,\; \textstyle\sum_i z_i = k,\; z_F = 1 .

``P <= I`` is implied by ``z <= 1``.  With ``P = Z^{1/2} Y Z^{1/2}`` and a multiplier
``theta`` for the trace, Y has a closed form: with ``X = Z^{1/2} (C - theta I) Z^{1/2}``
the problem is the saddle point

.. math::
    \max_z \min_\theta \; m\theta + c'z + \mathrm{tr}\,(X)_+ .

The matrices are gone: d + 1 unknowns are left, one eigendecomposition gives value and
gradient.  Adding ``nu (logdet P + logdet(Z - P) + sum log(1 - z_i))`` makes it smooth and
is the barrier of an interior-point method.  An eigenvalue x of X then has

    y(x)    = 1/2 + x / (2 (r + 2 nu)),   r = sqrt(x^2 + 4 nu^2)     (the eigenvalue of Y)
    beta(x) = nu / (1 - y) = x y + 2 nu                              (of Z^{1/2} B Z^{1/2})

and stationarity reads ``diag(B)_i + c_i - nu / (1 - z_i) = eta``, ``tr P = m``,
``sum z = k``.  Newton runs in ``u = logit(z)``: along the central path ``z_i`` of a feature
that goes to 0, and ``1 - z_i`` of one that goes to 1, are proportional to nu, so in u the
path is almost straight in log(nu) and one step both corrects and follows it.

Every iterate gives a certificate for free: ``B_+ = Z^{-1/2} X_+ Z^{-1/2}`` is PSD and
``C - B_+ <= theta I``, so ``D(B_+) <= m theta + top-k(diag(B_+) + c)``.  Its rank is the
number of eigenvalues of C above theta.

Rules about which features go together (`kspan.problem.RuledChoice`) are limits on z with a barrier
of their own, and features that are chosen together have one logit.

Cost of an iteration: one symmetric eigendecomposition (counted in ``n_eigensolves``),
about 20 products of d x d matrices for the Hessian, one solve with d + 2 unknowns.
"""

from dataclasses import dataclass

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg.lapack import dsysv

from kspan.arrays import FloatArray, Index
from kspan.problem import Choice
from kspan.problem.choice import LinearLimits
from kspan.progress import Monitor
from kspan.proofs.check.claims import Part

_MAX_STEP = 3.0  # largest change of a logit in one step
_FASTEST = np.log(0.1)  # largest cut of log(nu) in one step, near the path
_FAST = np.log(0.4)  # farther from it
_TRACE_WEIGHT = 2.0  # of an error of tr P in the distance from the path
_SMALL = 100  # features up to which an evaluation is cheap and every step is made with care
_TRACE_SLACK = (0.1, 0.3)  # an error of tr P that a step may make: small and large matrices
_MAX_HALVINGS = (6, 4)
NEIGHBOURHOOD = 20.0  # slacks times multipliers are within this factor of nu
LARGEST_LOSS = 0.95  # of a slack or a multiplier, that a step may take away


@dataclass(frozen=True)
class Snapshot(Part):
    """A point of the central path to warm start from: logits, theta, nu."""

    logit: FloatArray
    theta: float
    nu: float

    def restrict(self, keep: Index) -> "Snapshot":
        """The point on some of the features."""
        return Snapshot(self.logit[keep], self.theta, self.nu)


def _top_sum(values: FloatArray, k: int) -> float:
    if k <= 0:
        return 0.0
    return float(np.partition(values, len(values) - k)[len(values) - k :].sum())


def _small_weight(size: FloatArray, nu: float) -> FloatArray:
    """y(-|x|) without cancellation: nu (1 + 2 nu / (r + |x|)) / (r + 2 nu)."""
    r = np.hypot(size, 2 * nu)
    return nu * (1 + 2 * nu / (r + size)) / (r + 2 * nu)


def _leading_part(W: FloatArray, rank: int = 48) -> tuple[FloatArray, FloatArray]:
    """Eigenpairs of W, or of its projection on the range of W times a fixed random matrix.

    W has few large eigenvalues; an error here makes a Newton step less good, nothing more.
    """
    if len(W) <= 3 * rank:
        return np.linalg.eigh(W)
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(W @ rng.standard_normal((len(W), rank)))[0]
    values, vectors = np.linalg.eigh(basis.T @ W @ basis)
    return values, basis @ vectors


def _most(values: FloatArray, change: FloatArray, scale: float) -> float:
    """Return the longest step that leaves every value a share of itself."""
    falls = change < 0
    longest = LARGEST_LOSS * values[falls] / -change[falls]
    return min(scale, float(longest.min(initial=np.inf)))


class _Barrier:
    """Limits ``G z <= h`` on shares of units, in the place of ``sum z = k``.

    They add ``nu sum log(h - G z)`` to the objective. Slacks s and multipliers mu are unknowns of
    their own, with ``G z + s = h`` and ``s mu = nu`` in the end; the gradient in z is ``-G' mu``,
    and without the changes of both the Newton matrix has ``-G' Diag(mu / s) G`` more. Features of a
    unit have one logit.
    """

    def __init__(self, limits: LinearLimits):
        self.unit_of, self.rows, self.most = limits.unit_of, limits.rows, limits.most
        n = self.rows.shape[1]
        self.first_of = np.unique(self.unit_of, return_index=True)[1]
        self.gather = np.zeros((self.unit_of.size, n))
        self.gather[np.arange(self.unit_of.size), self.unit_of] = 1.0

    def first(self) -> FloatArray:
        """Return shares of the free features that keep all limits, with room to spare."""
        return self._shrunk(np.full(self.rows.shape[1], 0.9), 0.9)[self.unit_of]

    def inside(self, logit: FloatArray) -> FloatArray:
        """Return logits of the free features that keep all limits."""
        z = 1 / (1 + np.exp(-np.clip(logit[self.first_of], -300, 300)))
        z = np.clip(self._shrunk(z, 0.98), 1e-130, 1 - 1e-15)
        return np.log(z / (1 - z))[self.unit_of]

    def _shrunk(self, z: FloatArray, share: float) -> FloatArray:
        """Return z with the rows above a share of their limit scaled down to it."""
        for row, most in zip(self.rows[::-1], self.most[::-1], strict=True):
            if (used := float(row @ z)) > share * most:
                z = np.where(row > 0, z * (share * most / used), z)
        return z

    def shares(self, logit: FloatArray) -> FloatArray:
        """Return z of the units."""
        z: FloatArray = 1 / (1 + np.exp(-np.clip(logit[self.first_of], -300, 300)))
        return z

    def centre(self, logit: FloatArray, nu: float) -> None:
        """Begin with the slacks that there are, and multipliers that fit them."""
        self.slack = np.maximum(self.most - self.rows @ self.shares(logit), 1e-3 * self.most)
        self.mu = nu / self.slack

    def off_centre(self, nu: float) -> float:
        """How far slacks times multipliers are from nu."""
        return float(np.abs(self.slack * self.mu / nu - 1).max())

    def advance(
        self, logit: FloatArray, move: FloatArray, scale: float, nu: float, ahead: float
    ) -> float:
        """Move slacks and multipliers; return a step that leaves each of them a share.

        Parameters
        ----------
        logit, move : of the free features
        scale : the longest step
        nu, ahead : and the change of its logarithm
        """
        s, mu, z = self.slack, self.mu, self.shares(logit)
        moved = self.rows @ (z * (1 - z) * move[self.first_of])
        slack_change = self.most - self.rows @ z - s - moved
        change = nu / s * (1 + ahead) - mu - mu / s * slack_change
        scale, own = _most(s, slack_change, scale), _most(mu, change, 1.0)
        self.slack = s + scale * slack_change
        # Those that went too far from the path would hold all others up.
        fits = nu * np.exp(scale * ahead) / self.slack
        self.mu = np.clip(mu + own * change, fits / NEIGHBOURHOOD, fits * NEIGHBOURHOOD)
        return scale

    def add_to(
        self, kkt: FloatArray, rhs: FloatArray, z: FloatArray, z1: FloatArray, nu: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the Newton system of units: without the sum of z, and with the limits."""
        n, nf = self.rows.shape[1], self.unit_of.size
        fold = np.zeros((nf + 2, n + 2))
        fold[:nf, :n] = self.gather
        fold[nf, n] = 1.0
        if n < nf:
            kkt = fold.T @ kkt @ fold
        rhs = fold.T @ rhs
        first = self.first_of
        w = z[first] * z1[first]
        G, s = self.rows * w, self.slack
        missing = self.most - self.rows @ z[first] - s
        kkt[:n, :n] -= (G.T * (self.mu / s)) @ G
        rhs[:n, 0] += G.T @ ((nu - self.mu * missing) / s)
        rhs[:n, 1] += G.T @ (nu / s)
        kkt[n + 1] = kkt[:, n + 1] = 0.0
        kkt[n + 1, n + 1] = 1.0  # eta is zero
        rhs[n + 1] = 0.0
        return kkt, rhs


class Relaxation:
    """Interior-point solver of the relaxation; any iterate carries a certificate.

    Parameters
    ----------
    C : (d, d) symmetric array, entries of order one
    m : components
    choice : Choice on these features, all allowed, with ``m < k`` and more than one support
    offset : c, a linear reward for choosing a feature (strengthened bounds use it)
    start : Snapshot to warm start from
    monitor : asked before anything that takes long; when time is up a step leads nowhere
    """

    def __init__(
        self,
        C: FloatArray,
        m: int,
        choice: Choice,
        *,
        offset: FloatArray | None = None,
        start: Snapshot | None = None,
        monitor: Monitor | None = None,
    ):
        d = len(C)
        self.C, self.m, self.k, self.d = C, m, choice.size, d
        self.forced, self.free, self.k_free = choice.forced, choice.free, choice.n_open
        self.choice, self.limits = choice, None
        if (limits := choice.linear_limits()) is not None:
            self.limits = _Barrier(limits)
        if not (m < choice.size and choice.has_options):
            raise ValueError("the relaxation needs m < k and more than one possible support")
        self.monitor = Monitor("relaxation") if monitor is None else monitor
        self.offset = np.zeros(d) if offset is None else offset
        self.n_eigensolves = 0
        self.upper = np.inf  # best value of the free certificate so far
        self.stalled = False
        self.centrality = np.inf  # size of the last corrector: below 1 is on the path
        self.wanted = 0.0  # precision below which nu is not lowered any more
        if start is None:
            self._cold_start()
        else:
            self.logit = start.logit.copy()
            self.theta, self.nu = start.theta, start.nu
            self._rescale()
        if self.limits is not None:
            self.limits.centre(self.logit[self.free], self.nu)
        self._factor: FloatArray | None = None
        # The last Newton matrix, in (logits of the free features, theta, eta).
        self.kkt: FloatArray | None = None
        self._evaluate()

    # ------------------------------------------------------------------ starting points
    def _cold_start(self) -> None:
        """Uniform z; nu of the size of the bound per feature; theta with tr P = m."""
        share: FloatArray | float = self.k_free / len(self.free)
        if self.limits is not None:
            share = self.limits.first()
        z = np.where(self.forced, 1.0, 0.5)
        z[self.free] = share
        self.logit = np.zeros(self.d)
        self.logit[self.free] = np.log(share / (1 - share))
        self.nu = max(_top_sum(np.diagonal(self.C), self.k), 1e-8) / self.d * 0.1
        root = np.sqrt(z)
        w = np.linalg.eigvalsh(self.C * root * root[:, None])
        self.n_eigensolves += 1
        mean = z.mean()
        lo, hi = w[0] / mean - 1e3 * self.nu, w[-1] / mean + 1e3 * self.d * self.nu
        for _ in range(60):  # tr P falls as theta grows
            mid = 0.5 * (lo + hi)
            x = w - mid * mean
            small = _small_weight(np.abs(x), self.nu)
            trace = mean * np.where(x < 0, small, 1 - small).sum()
            lo, hi = (mid, hi) if trace > self.m else (lo, mid)
        self.theta = 0.5 * (lo + hi)

    def _rescale(self) -> None:
        """Shift the logits of the free features until they sum to k again, or keep all limits."""
        u = self.logit[self.free]
        if self.limits is not None:
            self.logit[self.free] = self.limits.inside(u)
            return
        lo, hi = -80.0, 80.0
        for _ in range(60):
            mid = 0.5 * (lo + hi)
            lo, hi = (mid, hi) if (1 / (1 + np.exp(-(u + mid)))).sum() < self.k_free else (lo, mid)
        self.logit[self.free] = u + 0.5 * (lo + hi)

    def snapshot(self) -> Snapshot:
        """The present point, to start another relaxation from."""
        return Snapshot(self.logit.copy(), self.theta, self.nu)

    # ------------------------------------------------------------------------- iterating
    def _evaluate(self) -> None:
        """Eigendecomposition of X; b = diag(B), the free certificate, the residuals."""
        u = np.clip(self.logit, -300, 300)
        z = np.where(self.forced, 1.0, 1 / (1 + np.exp(-u)))
        self.z1 = np.where(self.forced, 0.0, 1 / (1 + np.exp(u)))  # 1 - z, accurately
        root = np.sqrt(z)
        X = self.C * root * root[:, None]
        X.flat[:: self.d + 1] -= self.theta * z
        self.z, self._root = z, root
        try:
            lam, Q = np.linalg.eigh(X)
        except LinAlgError:  # the step led nowhere: keep the best certificate and stop
            self.stalled = True
            return
        self.n_eigensolves += 1
        small = _small_weight(np.abs(lam), self.nu)
        self._y = np.where(lam < 0, small, 1 - small)
        self._y1 = np.where(lam < 0, 1 - small, small)
        self._X, self._lam, self._Q, self._Q2 = X, lam, Q, Q * Q
        upper = self.m * self.theta + self._top(
            (self._plus_factor() ** 2).sum(axis=1) + self.offset
        )
        if upper < self.upper:
            self.upper, self._factor = upper, self._F

    def _top(self, scores: FloatArray) -> float:
        """Sum over the forced features and the best of the others."""
        if self.limits is not None:
            return self.choice.best_sum(scores)
        return float(scores[self.forced].sum()) + _top_sum(scores[self.free], self.k_free)

    def _plus_factor(self) -> FloatArray:
        """F with F F' = Z^{-1/2} X_+ Z^{-1/2}, without dividing by small z.

        ``X q = x q`` gives ``F_ia = (C Z^{1/2} q_a)_i sqrt(x_a) / (x_a + theta z_i)``.
        """
        positive = self._lam > 1e-14 * max(self._lam[-1], 0.0)
        x, Q = self._lam[positive], self._Q[:, positive]
        if self.theta > 0:
            F = (
                (self.C @ (self._root[:, None] * Q))
                * np.sqrt(x)
                / (x + self.theta * self.z[:, None])
            )
        else:
            F = Q * np.sqrt(x) / self._root[:, None]
        self._F = np.where(np.isfinite(F), F, 0.0)
        return self._F

    def _divided_differences(self) -> FloatArray:
        lam, y, nu = self._lam, self._y, self.nu
        slope = 1 / (nu / y**2 + nu / self._y1**2)
        gap = lam[:, None] - lam
        close = np.abs(gap) <= 1e-7 * (np.abs(lam)[:, None] + np.abs(lam) + nu)
        gap[close] = 1.0
        K = np.where(close, 0.5 * (slope[:, None] + slope), (y[:, None] - y) / gap)
        self._slope = slope
        return K

    def _hessian(self) -> tuple[FloatArray, FloatArray, float]:
        """Second derivatives in (u, theta).

        With e = du (1-z)/2 that of tr s(X) in z is
        ``e'[H1 + 2 X o Y - 2 Diag((XY)_ii) - 8 nu] e``,
        ``H1_ij = sum_ab K_ab (x_a+x_b)^2 Q_ia Q_ib Q_ja Q_jb``: a sum of squares of matrices,
        one for each eigenvector of ``W = K (x_a+x_b)^2`` that is not negligible.
        """
        d, nu, lam, Q, Q2, y = self.d, self.nu, self._lam, self._Q, self._Q2, self._y
        K = self._divided_differences()
        sums = lam[:, None] + lam
        T = K * sums
        weights, vectors = _leading_part(T * sums)
        H = np.zeros((d, d))
        for j in np.flatnonzero(np.abs(weights) > 0.1 * nu):
            if self.monitor.out_of_time():
                break
            G = (Q * vectors[:, j]) @ Q.T
            G *= G
            G *= weights[j]
            H += G
        H += 2 * self._X * ((Q * y) @ Q.T)
        H.flat[:: d + 1] -= 2 * (Q2 @ (lam * y)) + 8 * nu
        H *= 0.25 * self.z1 * self.z1[:, None]
        H.flat[:: d + 1] -= nu * self.z**2
        QZQ = Q.T @ (Q * self.z[:, None])
        T *= QZQ
        cross = -(0.5 * ((Q @ T) * Q).sum(axis=1) + (Q2 @ y) * self.z) * self.z1
        return H, cross, float((K * QZQ**2).sum())

    def step(self) -> None:
        """One Newton step that corrects and, when well centred, also lowers nu."""
        if self.stalled:
            return
        kkt, rhs = self._newton_system()
        if self.monitor.out_of_time():
            return
        self.kkt = kkt
        *_, moves, info = dsysv(kkt, rhs)
        if info != 0 or not np.isfinite(moves).all():
            self.stalled = True
            return
        correct, follow = moves.T
        # Off the path when the logits have to move or the trace is wrong.
        wrong = _TRACE_WEIGHT * abs(self._missing_trace())
        size = max(float(np.abs(correct[:-2]).max()), wrong)
        if self.limits is not None:
            size = max(size, 0.25 * self.limits.off_centre(self.nu))
        ahead = self._how_far_ahead(size, follow)
        self._advance(correct + ahead * follow, ahead)
        self.centrality = size

    def _newton_system(self) -> tuple[FloatArray, FloatArray]:
        """The matrix in (logits of the free features, theta, eta) and two right-hand sides.

        The first corrects the residuals, the second follows the path along log(nu).
        """
        f, nf, nu = self.free, len(self.free), self.nu
        H, cross, curvature = self._hessian()
        z, z1, lam = self.z[f], self.z1[f], self._lam
        w = z * z1
        b = (self._Q2[f] @ (nu / self._y1)) / z
        kkt = np.zeros((nf + 2, nf + 2))
        kkt[:nf, :nf] = H[np.ix_(f, f)]
        kkt[:nf, nf] = kkt[nf, :nf] = cross[f]
        kkt[nf, nf] = curvature
        kkt[:nf, nf + 1] = kkt[nf + 1, :nf] = -w
        rhs = np.zeros((nf + 2, 2))
        rhs[:nf, 0] = -w * (b + self.offset[f]) + nu * z
        rhs[nf, 0] = -self._missing_trace()
        rhs[nf + 1, 0] = z.sum() - self.k_free
        rhs[:nf, 1] = -(z1 * (self._Q2[f] @ (2 * nu - lam**2 * self._slope)) - nu * z)
        rhs[nf, 1] = -(self.z @ (self._Q2 @ (lam * self._slope)))
        if self.limits is not None:
            return self.limits.add_to(kkt, rhs, z, z1, nu)
        return kkt, rhs

    def _how_far_ahead(self, size: float, follow: FloatArray) -> float:
        """The change of log(nu): none far from the path, close to it as much as the cap allows."""
        if size >= 1.0:
            return 0.0
        fastest = _FASTEST if size < 0.3 else _FAST
        if self.precision <= self.wanted:  # precise enough: stay and centre
            fastest = 0.0
        return max(fastest, -(_MAX_STEP - size) / max(np.abs(follow[:-2]).max(), 1e-300))

    def _advance(self, move: FloatArray, ahead: float) -> None:
        """Move, and less far when tr P gets worse by it."""
        f, nu = self.free, self.nu
        nf = len(move) - 2
        moved = move[:nf] if self.limits is None else move[:nf][self.limits.unit_of]
        missing = abs(self._missing_trace())
        limit = 0.5 * max(abs(self.theta), 1e-3 * abs(self.C.flat[:: self.d + 1]).max())
        scale = min(
            1.0,
            _MAX_STEP / max(np.abs(move[:nf]).max(), 1e-300),
            limit / max(abs(move[nf]), 1e-300),
        )
        logit, theta = self.logit.copy(), self.theta
        if self.limits is not None:
            scale = self.limits.advance(logit[f], moved, scale, nu, ahead)
        large = self.d > _SMALL
        for _ in range(_MAX_HALVINGS[large]):
            self.logit[f] = logit[f] + scale * moved
            self.theta = theta + scale * move[nf]
            self.nu = nu * np.exp(scale * ahead)
            self._evaluate()
            # With a small nu tr P is almost a step function of theta: Newton may jump over it.
            if self.stalled or abs(self._missing_trace()) <= max(_TRACE_SLACK[large], missing):
                break
            if self.monitor.out_of_time():
                break
            scale *= 0.5

    def _missing_trace(self) -> float:
        return self.m - float(self.z @ (self._Q2 @ self._y))

    @property
    def precision(self) -> float:
        """Duality gap of the central path at nu: what further iterations can still gain."""
        n_limits = 0 if self.limits is None else self.limits.most.size
        return self.nu * (2 * self.d + len(self.free) + n_limits)

    def run(self, n_iter: int, target: float = -np.inf, precision: float = 0.0) -> int:
        """Up to n_iter steps; stops at ``upper <= target`` or at the given precision."""
        self.wanted = precision
        for it in range(n_iter):
            if self.upper <= target or self.stalled or self.monitor.out_of_time():
                return it
            if self.precision <= precision and self.centrality < 0.05:
                return it
            self.step()
        return n_iter

    def projector(self) -> FloatArray:
        """P = Z^{1/2} Y Z^{1/2} of the present point."""
        return self._root[:, None] * ((self._Q * self._y) @ self._Q.T) * self._root

    def discard(self) -> None:
        """Forget the certificate and stop: it turned out to be useless."""
        self._factor, self.upper, self.stalled = None, np.inf, True

    def witness(self) -> FloatArray | None:
        """The factor F of the best certificate so far, ``B = F F'``; None if there is none."""
        return self._factor
