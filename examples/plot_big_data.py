"""
Data that does not fit in memory
================================

A file can be fitted by its name. kspan reads it in blocks of rows, as few times as it can, and
never holds it as a whole.
"""

# %%
# A file, written in parts
# ------------------------
# 40,000 rows of 200 features, 64 MB: small enough for an example, but treated like 64 GB.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from kspan import FeatureSparsePCA, as_covariance
from kspan.plotting import LoadingsDisplay, ScreeDisplay

folder = tempfile.TemporaryDirectory()
file = Path(folder.name) / "measurements.npy"

rng = np.random.default_rng(0)
shape, n_blocks = (40_000, 200), 20
directions = np.zeros((3, 200))
for j in range(3):
    directions[j, 10 * j : 10 * j + 10] = rng.uniform(0.5, 1.5, 10)  # ten features for each


def block(rng, n_rows):
    """Draw rows: three hidden causes that thirty features show, and noise on all."""
    return rng.standard_normal((n_rows, 3)) @ directions + rng.standard_normal((n_rows, 200))


on_disk = np.lib.format.open_memmap(file, mode="w+", dtype=np.float64, shape=shape)
for rows in np.array_split(np.arange(shape[0]), n_blocks):
    on_disk[rows[0] : rows[-1] + 1] = block(rng, rows.size)
on_disk.flush()
del on_disk
print(f"{file.stat().st_size / 1e6:.0f} MB on disk")

# %%
# Fit the file
# ------------
# ``n_passes_`` says how often the file was read.

pca = FeatureSparsePCA(n_components=3, n_features_to_select=15, random_state=0).fit(file)
print("features:", pca.get_support(indices=True))
print("read", pca.n_passes_, "times")

# %%
# The 15 features are among the 30 that show a cause.

LoadingsDisplay.from_estimator(pca)

# %%
# Rows that arrive one block after the other
# ------------------------------------------
# With `partial_fit` there need not be a file at all. ``refit=False`` only takes rows in; the last
# block does the work.

stream = FeatureSparsePCA(n_components=3, n_features_to_select=15, random_state=0)
rows = np.load(file, mmap_mode="r")
parts = np.array_split(np.arange(shape[0]), n_blocks)
for number, part in enumerate(parts, start=1):
    stream.partial_fit(rows[part[0] : part[-1] + 1], refit=number == n_blocks)

same = np.array_equal(stream.get_support(), pca.get_support())
print("the same features:", same)
print("error of the stream:", stream.stream_error_)

# %%
# Coordinates of the file's rows come block by block as well.

print("scores:", pca.transform(file).shape)

# %%
# Beside plain PCA
# ----------------
# For a comparison the file has to be read again. So a display does not do that by itself: the
# numbers are given to it.

covariance = as_covariance(file)
ScreeDisplay(
    explained_variance=pca.explained_variance_,
    pca_variance=covariance.leading(3).values,
    total_variance=covariance.trace(),
    n_features_used=15,
    n_features=200,
).plot()

del rows
folder.cleanup()
plt.show()
