"""What a solver of one bound hands back."""

from dataclasses import dataclass

import numpy as np

from kspan.arrays import FloatArray
from kspan.certificates.witness import Witness


@dataclass
class Outcome:
    """The best bound found, its witness, and a relaxed selection to start heuristics from."""

    upper: float = np.inf
    witness: Witness | None = None
    scores: FloatArray | None = None
    n_eigensolves: int = 0

    def offer(self, upper: float, witness: Witness) -> None:
        """Keep the bound if it is better."""
        if upper < self.upper:
            self.upper, self.witness = upper, witness
