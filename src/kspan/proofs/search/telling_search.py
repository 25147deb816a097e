r"""The search for proofs of what k features can tell: relaxation, branch and bound.

**Relaxation.** The bound of `kspan.proofs.check.telling` for the best b and t is

.. math:: \max_z h(z), \qquad
          h(z) = \max \{⟨G, Y⟩ : 0 \preceq Y \preceq Y(z),\ \mathrm{tr}\,Y \le m\}

over relaxed choices z, with :math:`Y(z) = I - (I + R\,Diag(η)R')^{-1}` and
:math:`η_i = z_i / (e_i + δa_{ii}(1 - z_i))`, which is concave in z. The inner maximum is
:math:`\min_θ mθ + \mathrm{tr}(Y^{1/2}(G - θ)Y^{1/2})_+`, and with the pairs (ε, u) that are
positive there :math:`b = (G - θ)Y^{1/2}u/\sqrt{ε}` and :math:`t = Diag(η)R'(I - Y)b`. The scores
are the gradient, so a point is the best one when its z is that of the largest scores. Projected
gradients with steps of Barzilai and Borwein, and every point gives a bound.

**Branch and bound.** Best first. A node's bound is its parent's witness with its own choice, then
one that is looked for; scores settle features; small nodes are enumerated.
"""

import heapq
from dataclasses import dataclass

import numpy as np

from kspan.arrays import FloatArray
from kspan.linalg.projections import fill_together
from kspan.problem import RepresentProblem
from kspan.proofs.check.bounds import Bound
from kspan.proofs.check.claims import CertificateError
from kspan.proofs.check.known import LARGEST_MATRIX, data_scale
from kspan.proofs.check.screening import screen
from kspan.proofs.check.telling import (
    MOST_SAMPLES,
    KnownWhole,
    RelaxedWitness,
    SampleSpectrumWitness,
    ScanWitness,
    Slack,
    SpectrumWitness,
    TellingPart,
    TellingTreeWitness,
    above_computed,
    bound_of,
    enumerated,
    relaxed_bound,
    scanned,
)
from kspan.proofs.check.tree import Place, Record, Reduction
from kspan.proofs.search.proof import Proof

# Steps of a relaxation: of the root, of a node, of a bound that is to be quick.
ROOT_STEPS, NODE_STEPS = 60, 15

# Rows of R and features up to which it is relaxed.
MOST_ROWS, MOST_FEATURES = 1500, 20_000

# Supports of a node that are tried one by one.
FEW_SUPPORTS = 5000

# Nodes of a search, without a limit of time.
MOST_NODES = 100_000


@dataclass
class Relaxed:
    """The best witness of a relaxation, its bound, and where it was found."""

    part: TellingPart
    pieces: tuple[float, FloatArray]
    bound: Bound
    z: FloatArray


class TellingRelaxation:
    """Projected gradients on one node.

    Parameters
    ----------
    known : KnownWhole
    m : components
    slack : of the root
    place : features and choice of the node
    start : (d,) where to begin, None for an even choice
    """

    def __init__(
        self, known: KnownWhole, m: int, slack: Slack, place: Place, start: FloatArray | None = None
    ):
        self.known, self.m, self.slack, self.place = known, m, slack, place
        self.features = place.features
        a = known.variances[self.features]
        self.e, self.D = known.noise[self.features], known.delta * a
        self.usable = (self.e + self.D) > 0
        self.X = known.R[:, self.features]
        self.theta: float | None = None
        choice = place.choice
        z = np.full(self.features.size, choice.n_open / max(choice.free.size, 1))
        if start is not None:
            z = start[self.features]
        self.z = self.projected(z)
        self.best: Relaxed | None = None
        self.n_eigensolves = 0

    def projected(self, y: FloatArray) -> FloatArray:
        """Return the nearest relaxed choice: sizes and single features, no other rules."""
        forced = self.place.choice.forced
        total = int(forced.sum()) + self.place.choice.n_open
        return fill_together(y, np.ones(y.size), forced, total)

    def look(self, z: FloatArray) -> tuple[float, FloatArray]:
        """Return h(z) and its gradient, and keep the witness if its bound is the best."""
        known, m = self.known, self.m
        inside = np.minimum(z, 1 - 1e-9)  # without noise, what is chosen for sure has no limit
        spread = self.e + self.D * (1 - inside)
        eta = np.zeros(z.size)
        eta[self.usable] = inside[self.usable] / spread[self.usable]
        values, Q = np.linalg.eigh((self.X * eta) @ self.X.T)
        values = np.maximum(values, 0.0)
        y = values / (1 + values)
        root = (Q * np.sqrt(y)) @ Q.T
        G = known.gram
        inner = root @ G @ root
        Y = (Q * y) @ Q.T
        theta, found, U = self.best_theta(inner, Y)
        positive = found > 1e-14 * max(float(found[-1]), 1e-300)
        eps, U = found[positive], U[:, positive]
        b = (G @ (root @ U) - theta * (root @ U)) / np.sqrt(eps)
        image = b - Y @ b  # (I - Y) b
        rows = self.X.T @ image
        t = np.zeros((known.R.shape[1], b.shape[1]))
        t[self.features] = eta[:, None] * rows
        change = np.zeros(z.size)
        change[self.usable] = (self.e + self.D)[self.usable] / spread[self.usable] ** 2
        gradient = change * np.einsum("ij,ij->i", rows, rows)
        self.keep(TellingPart(b, t), z)
        return float(theta * m + eps.sum()), gradient

    def best_theta(self, inner: FloatArray, Y: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return the θ that gives the smallest value, with all eigenpairs there."""
        m = self.m
        low, high = 0.0, self.known.largest
        theta = high / 4 if self.theta is None else self.theta
        best: tuple[float, float, FloatArray, FloatArray] | None = None
        for _ in range(7):
            values, U = np.linalg.eigh(inner - theta * Y)
            self.n_eigensolves += 1
            positive = values > 0
            total = theta * m + float(values[positive].sum())
            if best is None or total < best[0]:
                best = total, theta, values, U
            slope = m - float(np.einsum("ij,ij->", U[:, positive], Y @ U[:, positive]))
            if slope > 0:
                high = theta
            else:
                low = theta
            if abs(slope) < 1e-3 * m or high - low < 1e-4 * max(high, 1e-300):
                break
            theta = (low + high) / 2 if low > 0 or theta > 0 else 0.0
            if slope > 0 and low == 0.0 and high < 1e-3 * float(values[-1]):
                theta = 0.0
        assert best is not None
        self.theta = best[1]
        return best[1], best[2], best[3]

    def keep(self, part: TellingPart, z: FloatArray) -> None:
        """Evaluate a witness, and keep it if its bound is the best."""
        pieces = relaxed_bound(self.known, part, self.m)
        scores = pieces[1][self.features]
        bound = bound_of((pieces[0], scores), self.slack, self.place.choice)
        if self.best is None or bound.value < self.best.bound.value:
            whole = np.zeros(self.known.R.shape[1])
            whole[self.features] = z
            self.best = Relaxed(part, pieces, bound, whole)

    def run(self, steps: int, proof: Proof, enough: float) -> Relaxed | None:
        """Take steps, until the bound is low enough or nothing is gained."""
        z = self.z
        value, gradient = self.look(z)
        step = 0.1 / max(float(gradient.max()), 1e-300)
        for _ in range(steps):
            assert self.best is not None
            bound = self.best.bound.value
            if bound <= enough or bound - value < 1e-5 * bound or proof.monitor.out_of_time():
                break
            for _ in range(12):
                new = self.projected(z + step * gradient)
                new_value, new_gradient = self.look(new)
                if new_value >= value + 1e-4 * float(gradient @ (new - z)):
                    break
                step *= 0.3
            else:
                break
            s, y = new - z, gradient - new_gradient
            if float(np.abs(s).max()) < 1e-9:
                break
            curved = float(s @ y)
            step = float(s @ s) / curved if curved > 0 else 2 * step
            z, value, gradient = new, new_value, new_gradient
        self.z = z
        return self.best


# --- steps of a proof


def prove_by_spectrum(proof: Proof, *, whole: bool) -> None:
    """What principal components explain, or all variance."""
    witness = SpectrumWitness(whole)
    proof.offer(witness.evaluate(proof.problem), witness)
    proof.n_eigensolves += not whole
    proof.note()
    proof.report()


def spectrum_witness(problem: RepresentProblem) -> SpectrumWitness:
    """Return what principal components explain, or all variance where the spectrum is too large."""
    small = problem.covariance.is_wide or problem.n_features <= LARGEST_MATRIX
    return SpectrumWitness(whole=not small)


def prove_by_samples_spectrum(proof: Proof) -> None:
    """What principal components explain, of more features than a matrix may have."""
    problem = proof.problem
    covariance, m = problem.covariance, problem.n_components
    if not 0 < (covariance.n_samples or 0) <= MOST_SAMPLES:
        return
    if not covariance.has_samples or covariance.reads_are_costly:
        return
    pairs, scale = covariance.leading(m + 1), data_scale(problem)
    Q = np.linalg.qr(covariance.scores(pairs.vectors[:, :m]))[0]
    last = float(pairs.values[m]) / scale
    # A little room for what the pairs are off by.
    shift = (
        last
        + 1e-3 * float(pairs.values[m - 1] / scale - last)
        + 1e-9 * float(pairs.values[0] / scale)
    )
    theta = pairs.values[:m] / scale * (1 + 1e-6) + 1e-6 * shift
    witness = SampleSpectrumWitness(scale, Q, theta, shift)
    try:
        proof.offer(witness.evaluate(problem), witness)
    except CertificateError:  # no sample products, or pairs that are off by more
        return
    proof.n_eigensolves += 1
    proof.note()
    proof.report()


def can_relax(proof: Proof) -> bool:
    """Whether R is small enough, and features do not depend on each other."""
    problem, covariance = proof.problem, proof.problem.covariance
    assert isinstance(problem, RepresentProblem)
    if not covariance.is_wide:
        return problem.n_features <= MOST_ROWS
    few = (covariance.n_samples or 0) <= MOST_ROWS and problem.n_features <= MOST_FEATURES
    return few and problem.ridge > 0


def prove_by_relaxation(proof: Proof, known: KnownWhole) -> Relaxed | None:
    """Relax all features."""
    problem, m = proof.problem, proof.problem.n_components
    slack = known.slack(m, problem.choice)
    features = problem.choice.features
    place = Place(features, problem.choice.on(features))
    relaxation = TellingRelaxation(known, m, slack, place)
    found = relaxation.run(ROOT_STEPS, proof, proof.lower / known.scale)
    proof.n_eigensolves += relaxation.n_eigensolves
    proof.n_nodes = max(proof.n_nodes, 1)
    if found is None:
        return None
    proof.offer(found.bound.value * known.scale, RelaxedWitness(known.scale, found.part))
    proof.improve(found.z)
    proof.note()
    proof.report()
    return found


def prove_by_scan(proof: Proof, known: KnownWhole) -> None:
    """Try all that could be better, for as many components as features."""
    problem = proof.problem
    assert isinstance(problem, RepresentProblem)
    lower = proof.lower / known.scale
    try:
        found = scanned(known, problem, lower * (1 - 1e-9), proof.monitor.out_of_time)
    except TimeoutError:
        return
    if found.value > lower:
        proof.consider(found.support)
    value = max(lower * (1 - 1e-9), found.value * (1 - 1e-12))
    witness = ScanWitness(known.scale, value)
    proof.offer(witness.upper(known, problem, found.value), witness)
    proof.n_nodes += found.n_tried
    proof.note()
    proof.report()


class TellingSearch:
    """Best first branch and bound."""

    def __init__(self, proof: Proof, known: KnownWhole, root: Relaxed):
        self.proof, self.known = proof, known
        self.m = proof.problem.n_components
        self.slack = known.slack(self.m, proof.problem.choice)
        features = proof.problem.choice.features
        place = Place(features, proof.problem.choice.on(features)).usable()
        self.records = [Record(-1, -1, True)]
        self.parts = [root.part]
        self.pieces = [root.pieces]
        self.z = [root.z]
        self.settled = -np.inf  # the largest bound of what is done
        self.open: list[tuple[float, int]] = []
        self.places = {0: place}
        self.push(0, root.bound.value, 0)

    @property
    def lower(self) -> float:
        """What the best point explains, in units of the scale."""
        return self.proof.lower / self.known.scale

    @property
    def upper(self) -> float:
        """The largest bound of all pieces."""
        return max(self.settled, -self.open[0][0] if self.open else -np.inf)

    def push(self, index: int, bound: float, witness: int) -> None:
        """Put a node among those to be worked on."""
        record = self.records[index]
        record.witness, record.bound = witness, bound
        heapq.heappush(self.open, (-bound, index))

    def run(self) -> None:
        """Work on the node with the largest bound, until nothing is left."""
        proof = self.proof
        while self.open and self.upper > self.lower * (1 + 1e-7):
            if len(self.records) >= MOST_NODES or proof.monitor.out_of_time():
                break
            self.step()
            scale = self.known.scale
            if proof.monitor.report(
                proof.lower, upper=min(self.upper * scale, proof.upper),
                n_nodes=len(self.records), n_open=len(self.open),
            ):  # fmt: skip
                break
        upper = max(self.upper, 0.0) * self.known.scale
        witness = TellingTreeWitness(self.known.scale, self.records, self.parts)
        proof.n_nodes += len(self.records)
        proof.offer(max(upper, proof.lower), witness)
        proof.note()

    def step(self) -> None:
        """Bound, cut, and split one node."""
        _, index = heapq.heappop(self.open)
        record, place = self.records[index], self.places.pop(index)
        relaxation = TellingRelaxation(
            self.known, self.m, self.slack, place, self.z[record.witness]
        )
        if index and place.choice.n_supports > FEW_SUPPORTS:
            found = relaxation.run(NODE_STEPS, self.proof, self.lower)
            self.proof.n_eigensolves += relaxation.n_eigensolves
            if found is not None and found.bound.value < record.bound:
                self.parts.append(found.part)
                self.pieces.append(found.pieces)
                self.z.append(found.z)
                record.witness, record.bound = len(self.parts) - 1, found.bound.value
        if record.bound > self.lower:
            place = self.cut(record, place)
            if place.choice.is_empty:
                record.kind = "bound"
                return
            record.bound = self.bound(record.witness, place).value
        if record.bound <= self.lower * (1 + 1e-9):
            record.kind = "bound"
            self.settled = max(self.settled, record.bound)
        elif place.choice.n_supports <= FEW_SUPPORTS:
            value, support = enumerated(self.known, place.features, place.choice, self.m)
            if value > self.lower:
                self.proof.consider(support)
            record.kind = "enumerated"
            record.bound = above_computed(self.known, value, self.m, self.proof.problem.choice)
            self.settled = max(self.settled, record.bound)
        else:
            self.split(index, place)

    def bound(self, witness: int, place: Place) -> Bound:
        """Return what a witness says of a node."""
        fixed, scores = self.pieces[witness]
        return bound_of((fixed, scores[place.features]), self.slack, place.choice)

    def cut(self, record: Record, place: Place) -> Place:
        """Settle what the node's witness settles."""
        bound = self.bound(record.witness, place)
        found = screen(bound, place.choice, self.lower)
        if not found.n_settled:
            return place
        removed, fixed = place.features[found.removed], place.features[found.fixed]
        record.reductions.append(Reduction(record.witness, removed, fixed, found.level))
        self.settled = max(self.settled, found.level)
        left = place.without(found.removed, found.fixed)
        return left if left.choice.is_empty else left.usable()

    def split(self, index: int, place: Place) -> None:
        """Make two nodes, with and without the feature that is most open."""
        record = self.records[index]
        record.kind = "branched"
        z = self.z[record.witness][place.features[place.choice.free]]
        split = place.choice.free[int(np.argmin(np.abs(z - 0.5)))]
        feature = int(place.features[split])
        nothing, it = np.empty(0, dtype=np.intp), np.array([split])
        for included, child in (
            (True, place.without(nothing, it)), (False, place.without(it, nothing)),
        ):  # fmt: skip
            number = len(self.records)
            record.children.append(number)
            self.records.append(Record(index, feature, included))
            if child.choice.is_empty:
                self.records[number].kind = "bound"
                self.records[number].witness = record.witness
                self.records[number].bound = 0.0
                continue
            child = child.usable()
            self.places[number] = child
            self.push(number, self.bound(record.witness, child).value, record.witness)
