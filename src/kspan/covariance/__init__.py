"""How to multiply by a covariance, whatever it is made from."""

from kspan.covariance.base import Covariance
from kspan.covariance.convert import as_covariance
from kspan.covariance.sources import as_source

__all__ = ["Covariance", "as_covariance", "as_source"]
