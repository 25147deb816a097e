"""`Certificate`: two numbers with the optimum between them, and what proves the upper one."""

import hashlib
import os
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.cards import at_most, card, counted
from kspan.io.results import json_ready
from kspan.problem import Choice, HasChoice, Patterns, RuledChoice
from kspan.progress import Status, relative_gap

# All kinds of witnesses are imported here: files may hold any of them.
from kspan.proofs.check import (  # noqa: F401
    net_bound,
    pattern_tree,
    pattern_witnesses,
    row_sums,
    screened,
    tree,
)
from kspan.proofs.check.claims import CertificateError, Part, Witness
from kspan.proofs.check.witnesses import PathWitness, SplitPathWitness
from kspan.storage import load_file, save_file

# A gap of at most this share of the optimum is called optimal.
OPTIMAL_GAP = 1e-6


# Features up to which A is relaxed as a whole, whatever it is like: cones take 50 d² numbers.
RELAXED_AS_WHOLE = 2500

# What to do about a gap that is left when nothing stopped the proof early.
HIGHER_LEVEL = "A gap is left; 'tight' has a better bound, and 'exact' searches on."
SEARCH_ON = "A gap is left; 'exact' searches on."
SEARCH_REST = "A gap is left; 'exact' searches on, among the features that its bounds leave."
EVEN_VARIANCES = (
    "A gap is left, and 'exact' could do no more: with several components and more than "
    f"{RELAXED_AS_WHOLE} features of even variances, the sum of the largest is all the bound there "
    "is. There are better ones for one component, for fewer candidate features (exclude), and for "
    "features that are not scaled."
)
NOTHING_LEFT = (
    "A gap is left that no search closes: the bounds leave too many features that could be chosen. "
    "More time would not help; fewer candidate features{further} may."
)


@dataclass(frozen=True)
class Certificate(HasChoice):
    """A proof of how good a selection is: ``lower ≤ optimum ≤ upper``.

    Attributes
    ----------
    lower : float
        What the selection `support` explains; never below zero.
    upper : float
        What no selection can exceed.
    gap : float
        ``(upper - lower) / upper``: the share of the optimum that may be lost, at most.
    status : Status
        How the proof ended; ``advice`` says what to do about it.
    level : str
        What was asked for; ``method`` says which bound gave `upper`.
    support : (k,) array
        The best selection known: the one given, or a better one found on the way.
    proved_in, proved_out : arrays
        Features that are in every optimal selection, and in none.
    n_components : int
        m of the problem.
    choice : Choice
        Which features may be chosen together: ``n_features_to_select``, ``n_features``,
        ``include`` and ``exclude`` are read from it.
    witness : Witness
        Arrays from which `upper` follows; see `kspan.verify`.
    path : list of PathWitness and SplitPathWitness
        Witnesses for other numbers of features: for `upper_at`.
    n_eigensolves, n_nodes : int
    seconds : float
    history : (t, 3) array
        Seconds, lower and upper, as they went.
    problem : {"row-sparse", "nonnegative", "orthogonal", "represent"}
        The kind of problem that it is about.
    ridge : float or None
        Of "represent": the noise of each feature that both bounds count with.
    patterns : Patterns or None
        Of orthonormal components with supports of their own: how many features each may use. Then
        `support` has the features of all of them.
    weights : (k, m) array
        Loadings on the support: `lower` is what they explain, rounded downwards.
    data_error : float
        How well A is known: what rounding since the data was given, and what a sketch has not
        seen, can have changed of the optimum. It is part of `upper`.
    digest : str
        SHA-256 of everything the proof rests on.
    """

    lower: float
    upper: float
    status: Status
    level: str
    support: Index
    proved_in: Index
    proved_out: Index
    n_components: int
    choice: Choice = field(repr=False)
    witness: Witness = field(repr=False)
    path: list[PathWitness | SplitPathWitness] = field(repr=False)
    n_eigensolves: int
    n_nodes: int
    seconds: float
    history: FloatArray = field(repr=False)
    problem: str = "row-sparse"
    weights: FloatArray = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    data_error: float = 0.0
    patterns: Patterns | None = field(default=None, repr=False)
    ridge: float | None = None
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
        return relative_gap(self.lower, self.upper)

    @property
    def method(self) -> str:
        """Which bound gave `upper`."""
        return self.witness.method

    @property
    def advice(self) -> str:
        """A sentence on what to do about the way the proof ended."""
        if self.status is not Status.BOUNDED:
            return self.status.advice
        several = self.problem == "row-sparse" and self.n_components > 1
        if self.level == "exact":
            shared = self.problem in ("row-sparse", "represent")
            further = " (exclude)" if shared else ""
            further += ", one component, or features that are not scaled," if several else ""
            return NOTHING_LEFT.format(further=further)
        if self.level != "tight":
            return HIGHER_LEVEL
        if self.choice.features.size <= RELAXED_AS_WHOLE:
            return SEARCH_ON
        return EVEN_VARIANCES if several and self.witness.is_free else SEARCH_REST

    @property
    def is_optimal(self) -> bool:
        """Whether nothing is better, up to 1e-6 of its value."""
        return self.gap <= OPTIMAL_GAP

    @property
    def verdict(self) -> str:
        """What is proved, in a line: how far below the best possible the selection is, at most."""
        if not self.is_optimal:
            said = f"at most {at_most(self.gap)} below the best possible"
        elif self.choice.allowed.sum() == self.support.size and self.patterns is None:
            said = "optimal: all features that may be chosen are"
        else:
            said = f"optimal: {self._no_other()}"
        return said if self.confidence == 1 else f"{said}, with probability {self.confidence:.4g}"

    def _no_other(self) -> str:
        """Say what is not better."""
        k = counted(self.n_features_to_select, "feature")
        if self.patterns is not None:
            return "no other components of so many features add up to more variance"
        if self.problem == "nonnegative":
            return f"no other component of at most {k}, none with a negative loading, explains more"
        one = self.n_features_to_select == 1
        verb = "tell" if self.problem == "represent" else "explain"
        if isinstance(self.choice, RuledChoice):
            return f"no other choice that keeps the rules {verb}s more"
        allowed = " that may be chosen" if self.include.size or self.exclude.size else ""
        return f"no other {k}{allowed} {verb}{'s' if one else ''} more"

    def __repr__(self) -> str:
        return (
            f"<Certificate: {self.verdict}; {self.lower:.6g} ≤ best ≤ {self.upper:.6g}, "
            f"proved by {self.method} (level {self.level}, {self.status.value})>"
        )

    def _repr_html_(self) -> str:
        about = "one component" if self.n_components == 1 else f"{self.n_components} components"
        said = [self.advice] if not self.is_optimal else []
        return card(
            f"Certificate: {counted(int(self.support.size), 'feature')} of {self.n_features:,}, "
            f"{about}",
            f"{self.verdict[0].upper()}{self.verdict[1:]}.",
            said,
            [
                ("lower: found", f"{self.lower:.8g}"),
                ("upper: nothing can exceed it", f"{self.upper:.8g}"),
                ("gap", f"{self.gap:.3g}"),
                ("proved by", f"{self.method}, level {self.level}, in {self.seconds:.2g} s"),
            ],
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what it says as plain numbers, texts and lists, ready for JSON.

        Without the witness: `save` writes that too.
        """
        names = (
            "lower", "upper", "gap", "status", "verdict", "advice", "level", "method", "confidence",
            "problem", "ridge", "n_components", "n_features", "n_features_to_select", "support",
            "proved_in", "proved_out", "data_error", "n_eigensolves", "n_nodes", "seconds",
            "digest",
        )  # fmt: skip
        found: dict[str, Any] = json_ready({name: getattr(self, name) for name in names})
        return found

    @property
    def confidence(self) -> float:
        """The probability that `upper` holds: 1, but for the bound of an ε-net."""
        return self.witness.confidence

    @property
    def reach(self) -> int:
        """The largest number of features for which `upper_at` has a bound."""
        further = [path.reach(self.choice) for path in self.path]
        return max([self.n_features_to_select, *further])

    def upper_at(self, k: int) -> float:
        """Return an upper bound on the optimum with k features instead.

        From the witnesses for other k that were kept; looser the further k is from theirs.
        """
        if self.patterns is not None:
            raise ValueError("Components with features of their own have no bound for another k.")
        most = self.choice.largest_size
        if not self.n_components <= k <= most:
            raise ValueError(
                f"k={k} must be between n_components={self.n_components} and the "
                f"{most} features that may be chosen."
            )
        if k < self.include.size:
            raise ValueError(f"k={k} is fewer than the {self.include.size} features to include.")
        bounds = [
            path.upper_at(self.choice, k) for path in self.path if k <= path.reach(self.choice)
        ]
        # More features never explain less, so the bound at k holds for all fewer.
        if k <= self.n_features_to_select or self.witness.any_size:
            bounds.append(self.upper)
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
        certificate = load_file(path, file_types())
        if not isinstance(certificate, cls):
            raise CertificateError(f"{path} does not hold a certificate")
        return certificate


def file_types() -> tuple[type, ...]:
    """Return the classes that a file with certificates may hold."""
    return (Certificate, Choice, RuledChoice, Patterns, Status, *Part.known)


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
