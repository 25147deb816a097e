"""
A gene panel, from start to finish
==================================

A laboratory can afford to measure 15 of 80 genes. Which ones keep the most of what is going on?
We choose them, prove how good the choice is, see how much it depends on the samples, save all of
it in one file that others can check, and use the panel on new samples.
"""

# %%
# The data
# --------
# Simulated expression (log scale) of 80 genes in 90 samples: three programmes of ten genes that are
# switched on together, and genes that only make noise.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from kspan import FeatureSparsePCA, selection_stability
from kspan.plotting import BiplotDisplay, LoadingsDisplay, StabilityDisplay
from kspan.records import FitRecord

programmes = {
    "growth": "MKI67 TOP2A CCNB1 CDK1 AURKA BUB1 PLK1 CCNA2 RRM2 TYMS",
    "immune": "CD3D CD3E CD8A GZMB PRF1 IFNG CXCL9 CCL5 LCK CD2",
    "stroma": "COL1A1 COL1A2 FN1 SPARC FAP VIM POSTN THY1 DCN LUM",
}
genes = [gene for names in programmes.values() for gene in names.split()]
genes += [f"GENE{i:03}" for i in range(80 - len(genes))]


def expression(n_samples, rng):
    """Draw samples: how active each programme is, and what the genes make of it."""
    activity = rng.standard_normal((n_samples, 3))
    values = 0.8 * rng.standard_normal((n_samples, 80))
    for place in range(3):
        strength = np.geomspace(3.0, 0.5, 10)  # some genes follow their programme more closely
        values[:, 10 * place : 10 * place + 10] += activity[:, [place]] * strength
    return pd.DataFrame(values + 7.0, columns=genes), activity


rng = np.random.default_rng(1)
X, activity = expression(90, rng)

# %%
# The panel
# ---------
# ``scale=True``: a gene is not important because its numbers are large. ``include``: FAP must be
# on the panel, whatever the variance says; the proof is about panels that have it.

pca = FeatureSparsePCA(
    n_components=3, n_features_to_select=15, scale=True, include=["FAP"], certify="exact",
    random_state=0,
).fit(X)  # fmt: skip
print(" ".join(pca.selected_features_))

proof = pca.certificate_
print(f"{proof.status.value}: at least {1 - proof.gap:.2%} of the best possible panel with FAP")

# %%
# Each programme has its genes on the panel.

LoadingsDisplay.from_estimator(pca)

# %%
# Would other samples give another panel?
# ---------------------------------------
# The proof is about these 90 samples. Drawing them again with replacement shows which genes would
# be chosen by chance.

stability = selection_stability(X, 3, 15, scale=True, include=["FAP"], random_state=0)
StabilityDisplay.from_stability(stability, chosen=pca.get_support(indices=True), max_features=30)

# %%
# A file that others can check
# ----------------------------
# The record holds everything but the data. Whoever has the data can check every number in it,
# without trusting how it was found.

folder = tempfile.TemporaryDirectory()
file = Path(folder.name) / "panel.npz"
FitRecord.from_estimator(pca, X, source="simulated expression", stability=stability).save(file)

record = FitRecord.load(file)
for line in record.verify(X):
    print("checked:", line)

# %%
# A record can be drawn too. Colours show how active the immune programme really is.

BiplotDisplay.from_record(
    record, y=activity[:, 1], y_name="activity of the immune programme", components=(0, 2)
)

# %%
# New samples
# -----------
# The scores of new samples follow the true activity of the programmes, from 15 genes instead of
# 80.

new, truth = expression(200, rng)
scores = pca.transform(new)
together = np.corrcoef(scores.T, truth.T)[:3, 3:]
print(pd.DataFrame(together.round(2), index=["PC1", "PC2", "PC3"], columns=list(programmes)))

folder.cleanup()
plt.show()
