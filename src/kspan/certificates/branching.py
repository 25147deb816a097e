"""Which feature to split a node on, and settling a small node without splitting."""

from itertools import combinations

import numpy as np
from numpy.linalg import LinAlgError

from kspan.arrays import FloatArray, Index
from kspan.certificates.relaxation import Relaxation


def branching_feature(relax: Relaxation) -> int:
    """Largest product of the predicted losses of z_j = 0 and z_j = 1; ties to the first."""
    z, z1 = relax.z[relax.free], relax.z1[relax.free]
    w = z * z1
    score = w
    if relax.kkt is not None:
        try:
            # in logits; a step of the logit moves z by w
            variance = -np.diagonal(np.linalg.inv(relax.kkt))[: len(w)] * w**2
            usable = np.isfinite(variance) & (variance > 0) & (w > 1e-3)
            if usable.any():
                score = np.zeros(len(w))
                score[usable] = w[usable] / variance[usable]
        except LinAlgError:
            pass
    return int(relax.free[int(np.argmax(score))])


def best_by_enumeration(
    A: FloatArray, m: int, base: Index, free: Index, n_more: int
) -> tuple[Index, float]:
    """Best support made of ``base`` and ``n_more`` of ``free``, by batched eigenvalues."""
    subsets = list(combinations(free.tolist(), n_more))
    chosen = np.array(subsets, dtype=np.intp).reshape(len(subsets), n_more)
    supports = np.concatenate([np.broadcast_to(base, (len(chosen), len(base))), chosen], axis=1)
    n_parts = 1 + supports.size * supports.shape[1] // 2**20
    totals = np.concatenate(
        [
            np.linalg.eigvalsh(A[part[:, :, None], part[:, None, :]])[:, -m:].sum(axis=1)
            for part in np.array_split(supports, n_parts)
        ]
    )
    best = int(np.argmax(totals))
    return supports[best], float(totals[best])
