"""Proofs of how good a selection is, in two rooms.

`check` evaluates: witnesses, certificates, and a verifier that trusts neither. `search` looks for
witnesses that give good bounds. What checks never imports what searched.
"""

from kspan.proofs.check import Certificate, CertificateError, verify

__all__ = ["Certificate", "CertificateError", "verify"]
