"""Results as other programs take them: plain values for JSON, and data frames."""

import math
from collections.abc import Mapping
from enum import Enum
from typing import Any

import numpy as np

from kspan.io.table import import_extra


def json_ready(value: Any) -> Any:
    """Return numbers, texts, lists and dicts: no types of NumPy, and None for what is no number.

    JSON has no word for NaN and infinity.

    Examples
    --------
    >>> import numpy as np
    >>> json_ready({"gap": np.array([0.5, np.nan]), "k": np.int64(3)})
    {'gap': [0.5, None], 'k': 3}
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): json_ready(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_ready(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def data_frame(columns: Mapping[str, Any], index: Any = None) -> Any:
    """Return columns as a pandas DataFrame; `ImportError` says what to install."""
    pandas = import_extra("pandas", extra="all", what="to_frame")
    return pandas.DataFrame(dict(columns), index=index)
