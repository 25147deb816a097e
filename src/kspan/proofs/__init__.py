"""Proofs of how good a selection is, in two rooms.

`check` evaluates: witnesses, certificates, and a verifier that trusts neither. `search` looks for
witnesses that give good bounds. What checks never imports what searched. `fspca_epsilon` and
`nspca_rho` are what two papers guarantee before anything is fitted.
"""

from kspan.proofs.check import Certificate, CertificateError, verify
from kspan.proofs.check.a_priori import fspca_epsilon, nspca_rho

__all__ = ["Certificate", "CertificateError", "fspca_epsilon", "nspca_rho", "verify"]
