"""How to multiply by a covariance, whatever it is made from."""

from kspan.covariance.convert import as_covariance, require_built_as
from kspan.covariance.data_covariance import DataCovariance, InMemoryCovariance
from kspan.covariance.derived import (
    MaskedCovariance,
    ShiftedCovariance,
    UnitCovariance,
    UpdatedCovariance,
)
from kspan.covariance.interface import Covariance
from kspan.covariance.matrix import DenseCovariance
from kspan.covariance.memory import Memory

__all__ = [
    "Covariance", "DataCovariance", "DenseCovariance", "InMemoryCovariance", "MaskedCovariance",
    "Memory", "ShiftedCovariance", "UnitCovariance", "UpdatedCovariance", "as_covariance",
    "require_built_as",
]  # fmt: skip
