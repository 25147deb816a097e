"""`Certificate`: two numbers with the optimum between them, and what proves the upper one."""

import hashlib
import os
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.certificates.bounds import best_sum
from kspan.certificates.witness import TYPES, PathWitness, Witness
from kspan.storage import load_file, save_file

# A gap of at most this share of the optimum is called optimal.
OPTIMAL_GAP = 1e-6


class CertificateError(ValueError):
    """A number of a certificate does not follow from the data and the witness."""


class CertificateStatus(Enum):
    """How the proof ended. `advice` says in a sentence what that means."""

    OPTIMAL = "optimal"
    BOUNDED = "bounded"
    TIME_LIMIT = "time limit"
    INTERRUPTED = "interrupted"
    STOPPED = "stopped by callback"

    @property
    def advice(self) -> str:
        """A sentence on what to do about it."""
        return _ADVICE[self]


_ADVICE = {
    CertificateStatus.OPTIMAL: "No choice of features is better (up to 1e-6 of its value).",
    CertificateStatus.BOUNDED: (
        "This level has done all it can; a higher one, up to 'exact', may close the gap."
    ),
    CertificateStatus.TIME_LIMIT: "Time ran out; the bounds hold, and more time may close the gap.",
    CertificateStatus.INTERRUPTED: "Interrupted by the keyboard; the bounds so far hold.",
    CertificateStatus.STOPPED: "The callback asked to stop; the bounds so far hold.",
}


@dataclass(frozen=True)
class Certificate:
    """A proof of how good a selection is: ``lower ≤ optimum ≤ upper``.

    Attributes
    ----------
    lower : float
        What the selection `support` explains.
    upper : float
        What no selection can exceed.
    gap : float
        ``(upper - lower) / upper``: the share of the optimum that may be lost, at most.
    status : CertificateStatus
        ``status.advice`` says what it means.
    level, method : str
        What was asked for, and which bound gave `upper`.
    support : (k,) array
        The best selection known: the one given, or a better one found on the way.
    proved_in, proved_out : arrays
        Features that are in every optimal selection, and in none.
    n_components, n_features_to_select, n_features : int
        m, k and d of the problem; `include` and `exclude` are its forced and forbidden features.
    witness
        Arrays from which `upper` follows; see `kspan.verify`.
    path : list of PathWitness
        Full-size witnesses for `upper_at`.
    n_eigensolves, n_nodes : int
    seconds : float
    history : (t, 3) array
        Seconds, lower and upper, as they went.
    problem : {"row-sparse", "nonnegative"}
        The kind of problem that it is about.
    weights : (k, m) array
        Loadings on the support. For a nonnegative component they are part of the proof.
    confidence : float
        The probability that `upper` holds: 1, but for the bound of an ε-net.
    digest : str
        SHA-256 of everything the proof rests on.
    """

    lower: float
    upper: float
    status: CertificateStatus
    level: str
    method: str
    support: Index
    proved_in: Index
    proved_out: Index
    n_components: int
    n_features_to_select: int
    n_features: int
    include: Index
    exclude: Index
    witness: Witness = field(repr=False)
    path: list[PathWitness] = field(repr=False)
    n_eigensolves: int
    n_nodes: int
    seconds: float
    history: FloatArray = field(repr=False)
    problem: str = "row-sparse"
    weights: FloatArray = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    confidence: float = 1.0
    digest: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        # A certificate that contradicts itself must not exist.
        if not (np.isfinite(self.lower) and np.isfinite(self.upper)):
            raise CertificateError(f"not finite: lower={self.lower}, upper={self.upper}")
        if self.upper < self.lower:
            raise CertificateError(f"upper={self.upper!r} is below lower={self.lower!r}")
        if not self.digest:
            object.__setattr__(self, "digest", self.compute_digest())

    @property
    def gap(self) -> float:
        """The share of the optimum that may be lost, at most."""
        return (self.upper - self.lower) / self.upper if self.upper > 0 else 0.0

    def upper_at(self, k: int) -> float:
        """Return an upper bound on the optimum with k features instead.

        From the full-size witnesses that were kept; looser the further k is from theirs.
        """
        if not self.n_components <= k <= self.n_features - self.exclude.size:
            raise ValueError(
                f"k={k} must be between n_components={self.n_components} and the "
                f"{self.n_features - self.exclude.size} features that may be chosen."
            )
        if k < self.include.size:
            raise ValueError(f"k={k} is fewer than the {self.include.size} features to include.")
        bounds = []
        # More features never explain less, so the bound at k holds for all fewer.
        if k <= self.n_features_to_select:
            bounds.append(self.upper)
        for path in self.path:
            forced = np.isin(path.features, self.include)
            bounds.append(path.scale * (path.ky_fan + best_sum(path.scores, forced, k)))
        if not bounds:
            raise ValueError(
                f"No witness for k={k}: certify with level='tight' or 'exact', or at that k."
            )
        return min(bounds)

    def compute_digest(self) -> str:
        """SHA-256 over all that the proof rests on, in a fixed order."""
        sha = hashlib.sha256()
        for entry in fields(self):
            if entry.name not in ("digest", "history", "seconds"):
                _feed(sha, getattr(self, entry.name))
        return sha.hexdigest()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file (``.npz``, no pickles), atomically."""
        save_file(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Certificate":
        """Read what `save` wrote. Nothing is believed until `kspan.verify` has passed it."""
        certificate = load_file(path, (cls, CertificateStatus, *TYPES))
        if not isinstance(certificate, cls):
            raise CertificateError(f"{path} does not hold a certificate")
        return certificate


def _feed(sha: Any, value: Any) -> None:
    """Feed a tree of dataclasses and arrays to a hash, with marks between the parts."""
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value)
        # With its type, as other numbers of the same value are another witness; all integers
        # are alike, for an index has another size on another machine.
        kind = np.dtype("<i8") if array.dtype.kind in "iu" else array.dtype.newbyteorder("<")
        sha.update(f"<array {kind.str} {array.dtype.kind}{array.shape}>".encode())
        sha.update(array.astype(kind).tobytes())
    elif is_dataclass(value) and not isinstance(value, type):
        sha.update(f"<{type(value).__name__}>".encode())
        for entry in fields(value):
            _feed(sha, getattr(value, entry.name))
    elif isinstance(value, list | tuple):
        sha.update(f"<list {len(value)}>".encode())
        for item in value:
            _feed(sha, item)
    elif isinstance(value, Enum):
        sha.update(f"<{value.name}>".encode())
    elif isinstance(value, float | np.floating):
        sha.update(float(value).hex().encode())
    else:
        sha.update(f"<{value!r}>".encode())
