"""
The spannogram: all sparse components in one picture
====================================================

There are 142,506 ways to choose 5 of 30 features. But if the data had only two directions, a
handful of choices would be enough to look at. The spannogram shows why.
"""

# %%
# Curves instead of choices
# -------------------------
# Cut a covariance to its two leading directions. Every component is then an angle φ, and every
# feature a curve: how large its loading would be. The best 5 features for an angle are the 5
# highest curves. They change only where curves cross, so that few choices remain: the blocks at the
# bottom. The hatched one is the best.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from kspan import ElementSparsePCA, NonnegativeSparsePCA, as_covariance
from kspan.plotting import SpannogramDisplay

tumours = load_breast_cancer(as_frame=True).data
A = tumours.corr()

display = SpannogramDisplay.from_covariance(A, k=5)
print(len(display.regions), "regions")

# %%
# It is the method of that name
# -----------------------------
# `kspan.ElementSparsePCA` with ``solver="spannogram"`` looks at the same choices, here with the
# whole covariance in mind to tell which one is best.

pca = ElementSparsePCA(
    n_components=1, n_nonzero_coefs=5, solver="spannogram", covariance="precomputed"
).fit(A)
print("\n".join(pca.selected_features_))

# %%
# No negative loadings
# --------------------
# Now only positive entries count, and an angle and its opposite differ: the whole circle is
# needed. Choices change at zero as well.

SpannogramDisplay.from_covariance(A, k=5, nonnegative=True)

# %%
# The exact method agrees with the picture.

covariance = as_covariance(tumours, scale=True)
pairs = covariance.leading(2)
rank_two = (pairs.vectors * pairs.values) @ pairs.vectors.T
exact = NonnegativeSparsePCA(
    n_components=1, n_nonzero_coefs=5, solver="spannogram", rank=2, covariance="precomputed"
).fit(rank_two)
print("variance in the two leading directions:", round(float(exact.explained_variance_[0]), 4))

# %%
# More features
# -------------
# With random data curves cross everywhere, but far from the top most crossings do not matter.

rng = np.random.default_rng(0)
many = SpannogramDisplay(V=rng.standard_normal((300, 2)), k=10).plot()
print(f"{300 * 299} crossings, {len(many.regions)} regions")

plt.show()
