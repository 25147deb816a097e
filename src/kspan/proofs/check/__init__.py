"""Witnesses that evaluate themselves against a problem, certificates, and `verify`."""

from kspan.proofs.check.certificate import Certificate
from kspan.proofs.check.claims import CertificateError
from kspan.proofs.check.verify import verify

__all__ = ["Certificate", "CertificateError", "verify"]
