"""Data written to files, for tests of what is read in blocks."""

import tempfile
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import zarr

_WORK = tempfile.TemporaryDirectory(prefix="kspan-test-")  # gone when the process ends


def folder():
    return Path(tempfile.mkdtemp(dir=_WORK.name))


def npy(X):
    path = folder() / "data.npy"
    np.save(path, X)
    return path


def memmap(X):
    return np.load(npy(X), mmap_mode="r")


def zarr_array(X):
    array = zarr.open(folder() / "data.zarr", mode="w", shape=X.shape, dtype=X.dtype, chunks=(7, 5))
    array[:] = X
    return array


def zarr_path(X):
    return Path(zarr_array(X).store.root)


def hdf5(X):
    path = folder() / "data.h5"
    with h5py.File(path, "w") as file:
        file["inner/table"] = X
    return path


def parquet(X):
    path = folder() / "data.parquet"
    names = [f"f{i}" for i in range(X.shape[1])]
    pd.DataFrame(X, columns=names).to_parquet(path, row_group_size=11)
    return path


OUT_OF_CORE = {
    "npy": npy, "memmap": memmap, "zarr array": zarr_array, "zarr": zarr_path, "hdf5": hdf5,
    "parquet": parquet,
}  # fmt: skip
