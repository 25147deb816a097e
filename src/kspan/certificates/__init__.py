"""Proofs of how good a selection is: bounds with witnesses, and a verifier that trusts neither."""

from kspan.certificates.certificate import Certificate, CertificateError, CertificateStatus
from kspan.certificates.verify import verify

__all__ = ["Certificate", "CertificateError", "CertificateStatus", "verify"]
