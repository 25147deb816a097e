"""What makes loadings sparse: the sum of all sizes (l1), or of all row lengths (l2,1)."""

from dataclasses import dataclass

import numpy as np

from kspan.arrays import FloatArray, Mask
from kspan.linalg.projections import soft_threshold

PENALTIES = ("l1", "l21")


@dataclass(frozen=True)
class Penalty:
    """Ω(V) with its proximal map; V may be a stack (s, d, r).

    Parameters
    ----------
    kind : {"l1", "l21"}
        Entries are zero one by one, or whole rows at a time.
    """

    kind: str

    def __post_init__(self) -> None:
        if self.kind not in PENALTIES:
            raise ValueError(f"penalty must be one of {list(PENALTIES)}, got {self.kind!r}.")

    def value(self, V: FloatArray) -> FloatArray:
        """Return Ω of each matrix of the stack."""
        if self.kind == "l1":
            return np.asarray(np.abs(V).sum(axis=(-2, -1)))
        return np.asarray(np.linalg.norm(V, axis=-1).sum(axis=-1))

    def shrink(self, Z: FloatArray, threshold: float) -> FloatArray:
        """Return the minimiser of ``threshold Ω(Y) + ½‖Y - Z‖²``."""
        if self.kind == "l1":
            return soft_threshold(Z, threshold)
        lengths = np.linalg.norm(Z, axis=-1, keepdims=True)
        share = np.divide(threshold, lengths, out=np.full_like(lengths, np.inf), where=lengths > 0)
        return np.asarray(Z * np.maximum(1.0 - share, 0.0))

    def subgradient(self, V: FloatArray) -> FloatArray:
        """Return the gradient where there is one, and zero at zeros."""
        if self.kind == "l1":
            return np.sign(V)
        lengths = np.linalg.norm(V, axis=-1, keepdims=True)
        return np.divide(V, lengths, out=np.zeros_like(V), where=lengths > 0)

    def pattern(self, Y: FloatArray) -> Mask:
        """Return where Y may differ from zero: single entries, or whole rows."""
        mask: Mask = Y != 0
        if self.kind == "l21":
            mask = np.broadcast_to(mask.any(axis=-1, keepdims=True), Y.shape).copy()
        return mask
