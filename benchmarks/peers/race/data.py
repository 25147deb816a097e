"""The data sets of the race, with the number of features each is asked for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

M = 3


@dataclass(frozen=True)
class RaceSet:
    """One data set: where it comes from, and k."""

    title: str
    k: int
    load: Callable[[], Any]


def named(name: str) -> Callable[[], Any]:
    def load() -> Any:
        from kspan.datasets import load_dataset

        return load_dataset(name).X

    return load


def _planted(n: int, d: int, k: int) -> Callable[[], Any]:
    """As much signal as noise in each of the k features that carry the factors."""

    def load() -> Any:
        from kspan.datasets import make_planted

        return make_planted(n, d, k, M, signal=1.0, random_state=0)[0]

    return load


SETS = {
    "digits": RaceSet("digits, 1797 x 64", 16, named("digits")),
    "nus_wide": RaceSet("NUS-WIDE, 2400 x 225", 30, named("nus_wide")),
    "colon": RaceSet("colon, 62 x 2000", 50, named("colon")),
    "leukemia": RaceSet("leukemia, 72 x 7129", 50, named("leukemia")),
    "tdt2": RaceSet("TDT2, 9394 x 36771, sparse", 50, named("tdt2")),
    "planted_small": RaceSet("planted, 500 x 200", 20, _planted(500, 200, 20)),
    "planted_middle": RaceSet("planted, 1000 x 2000", 50, _planted(1000, 2000, 50)),
    "planted_large": RaceSet("planted, 2000 x 10000", 100, _planted(2000, 10000, 100)),
}


def read(path: Path) -> Any:
    """Return the matrix that `save` wrote."""
    return sparse.load_npz(path).tocsr() if path.suffix == ".npz" else np.load(path)


def save(name: str, folder: Path, sets: Mapping[str, RaceSet] = SETS) -> tuple[Any, Path]:
    """Load a set as float64 and write it where every runner finds it."""
    X = sets[name].load()
    folder.mkdir(parents=True, exist_ok=True)
    if sparse.issparse(X):
        X, path = X.astype(np.float64).tocsr(), folder / f"{name}.npz"
        sparse.save_npz(path, X)
    else:
        X, path = np.ascontiguousarray(X, dtype=np.float64), folder / f"{name}.npy"
        np.save(path, X)
    return X, path
