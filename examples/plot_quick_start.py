"""
Quick start: twelve of thirty measurements
==========================================

Cell nuclei of 569 breast tumours, 30 measurements each. We look for 12 of them whose three
principal components explain the most variance, and let kspan prove how good that choice is.
"""

# %%
# Fit
# ---
# The measurements have different units, so ``scale=True`` gives each of them variance one.
# ``certify="exact"`` goes on until no better choice is possible.

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from kspan import FeatureSparsePCA
from kspan.plotting import BiplotDisplay, GapDisplay, LoadingsDisplay, ScreeDisplay

tumours = load_breast_cancer(as_frame=True)
X = tumours.data

pca = FeatureSparsePCA(
    n_components=3, n_features_to_select=12, scale=True, certify="exact", random_state=0
).fit(X)
print("\n".join(pca.selected_features_))

# %%
# How good is it?
# ---------------
# ``lower`` is what these 12 features explain, ``upper`` what no 12 features can exceed.

proof = pca.certificate_
print(f"between {proof.lower:.4f} and {proof.upper:.4f}: {proof.status.value}")
print(proof.status.advice)

# %%
# The picture shows how the two numbers met.

GapDisplay.from_estimator(pca)

# %%
# What is in the components?
# --------------------------
# Every component uses the same 12 features. Blank cells would be loadings of zero.

LoadingsDisplay.from_estimator(pca)

# %%
# Compared with plain PCA, which uses all 30 features. It needs the data once more.

ScreeDisplay.from_estimator(pca, X)

# %%
# The samples
# -----------
# Points are tumours, arrows are features. The diagnosis was not used in the fit.

diagnosis = tumours.target_names[tumours.target]
BiplotDisplay.from_estimator(pca, X, y=diagnosis, y_name="diagnosis")

plt.show()
