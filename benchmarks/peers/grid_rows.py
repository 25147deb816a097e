"""Grid searches over k, with a memory and without: rows for whoever times them.

A row is a name and what to run; it returns what was chosen and its score, which have to be the same
for all rows of a search. ``python -m benchmarks.peers.grid_rows`` times them. Needs KSPAN_DATA for
leukemia and nus_wide.
"""

import statistics
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import GridSearchCV

from benchmarks.measure import alternate, ratio
from kspan import FeatureSparsePCA
from kspan.datasets import load_dataset

KS = (5, 8, 10, 12, 15, 20, 25, 30, 40, 50)
FEW_KS = (3, 4, 5, 6, 8, 10, 12, 15, 20, 25)

Found = tuple[dict[str, Any], float]
Row = tuple[str, Callable[[], Found]]


def factors(n: int, d: int) -> np.ndarray:
    """Data with eight factors and unit noise."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, 8)) @ rng.standard_normal((8, d)) + rng.standard_normal((n, d))


DATA: dict[str, Callable[[], np.ndarray]] = {
    "digits": lambda: load_digits().data,
    "breast cancer": lambda: load_breast_cancer().data,
    "leukemia": lambda: load_dataset("leukemia").X.astype(np.float64),
    "nus_wide": lambda: np.asarray(load_dataset("nus_wide").X, dtype=np.float64),
    "tall 20000 x 300": lambda: factors(20_000, 300),
    "wide 600 x 20000": lambda: factors(600, 20_000),
}


def searched(X: np.ndarray, solver: str, memory: Any = None) -> Found:
    """Return what a grid search over ten k and three folds chooses, and its score.

    `memory` is None, or called for a memory of its own.
    """
    options = {} if memory is None else {"memory": memory()}
    pca = FeatureSparsePCA(3, solver=solver, random_state=0, **options)
    ks = KS if X.shape[1] > max(KS) else FEW_KS
    with warnings.catch_warnings(action="ignore"):  # about near copies, of every fit
        search = GridSearchCV(pca, {"n_features_to_select": list(ks)}, cv=3).fit(X)
    return search.best_params_, float(search.best_score_)


def memories() -> dict[str, Any]:
    """Return the memories to compare; none alone where there are none yet."""
    import kspan

    found: dict[str, Any] = {"none": None}
    if hasattr(kspan, "Memory"):
        found |= {"process": kspan.Memory, "folder": tempfile.mkdtemp}
    return found


def grid_rows(names: tuple[str, ...] = tuple(DATA), solver: str = "ipu") -> Iterator[Row]:
    """Yield ``(name, callable)`` for each data set and memory, those of one data set together."""
    for name in names:
        X = DATA[name]()
        for kind, memory in memories().items():
            yield f"{name}, {solver}, memory: {kind}", partial(searched, X, solver, memory)


def main() -> None:
    for name in DATA:
        rows = dict(grid_rows((name,)))
        found = {row: run() for row, run in rows.items()}
        assert len({repr(answer) for answer in found.values()}) == 1, found
        times = alternate(rows, 3)
        plain = next(iter(times.values()))
        for row, seconds in times.items():
            faster = 1 / ratio(seconds, plain)
            print(f"{row:45s} {statistics.median(seconds):7.3f} s, {faster:.2f}x")


if __name__ == "__main__":
    main()
