r"""Deflation: take a component out of A, so that the next one finds something else.

With x the unit vector just found:

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

import numpy as np

from kspan.arrays import FloatArray
from kspan.covariance.base import Covariance
from kspan.covariance.masked import MaskedCovariance
from kspan.covariance.updated import UpdatedCovariance

DEFLATIONS = ("projection", "schur", "hotelling", "orthogonalized", "generalized", "remove")


class Deflation:
    """What is left of a covariance while components are taken out of it.

    Attributes
    ----------
    current : Covariance
        What is left.
    taken : (d, t) orthonormal directions taken out, by "orthogonalized" and "generalized"
    """

    def __init__(self, covariance: Covariance, kind: str = "projection"):
        if kind not in DEFLATIONS:
            raise ValueError(f"deflation must be one of {list(DEFLATIONS)}, got {kind!r}.")
        self.current = covariance
        self.kind = kind
        self.taken: FloatArray = np.empty((covariance.n_features, 0))

    def remove(self, x: FloatArray) -> None:
        """Take the unit vector x out."""
        if self.kind == "remove":
            self.current = MaskedCovariance(self.current, x == 0)
            return
        x = x.reshape(-1, 1)
        if self.kind in ("orthogonalized", "generalized"):
            # B = I - QQ', so q = Bx is the part of x orthogonal to what is taken, in both.
            q = x - self.taken @ (self.taken.T @ x)
            q -= self.taken @ (self.taken.T @ q)
            length = np.linalg.norm(q)
            if length <= np.sqrt(np.finfo(float).eps):
                return  # nothing of it is left
            q /= length
            self.taken = np.hstack([self.taken, q])
            x = q
        product = self.current.matmat(x)
        variance = float(x[:, 0] @ product[:, 0])
        if self.kind == "hotelling":
            self.current = UpdatedCovariance(self.current, x, np.array([[-variance]]))
        elif self.kind == "schur":
            if variance > 0:
                self.current = UpdatedCovariance(
                    self.current, product / np.sqrt(variance), np.array([[-1.0]])
                )
        else:
            # (I - xx')A(I - xx') = A - x(Ax)' - (Ax)x' + (x'Ax) xx'
            size = float(np.abs(product).max()) or 1.0  # both columns of about the same size
            core = np.array([[variance, -size], [-size, 0.0]])
            L = np.hstack([x, product / size])
            self.current = UpdatedCovariance(self.current, L, core)
