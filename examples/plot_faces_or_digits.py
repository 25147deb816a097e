"""
Pixels: parts of handwritten digits
===================================

Features can be pixels. Components are pictures then, and sparse ones show where they look. With
`kspan.NonnegativeSparsePCA` pixels only add up, so that a component is a part: a stroke.
"""

# %%
# The same pixels for all components
# ----------------------------------
# Five components on 16 of the 64 pixels of 1797 digits. Red pixels add, blue ones (hatched)
# subtract. The last panel shows the 16 pixels that are enough.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from kspan import FeatureSparsePCA, NonnegativeSparsePCA
from kspan.plotting import ImageDisplay

digits = load_digits().data

shared = FeatureSparsePCA(n_components=5, n_features_to_select=16, random_state=0).fit(digits)
ImageDisplay.from_estimator(shared, image_shape=(8, 8))
print(f"16 pixels explain {shared.explained_variance_ratio_.sum():.1%} of the variance of all 64")

# %%
# Parts
# -----
# Without negative loadings, and with at most eight pixels each. Pixels of one component are
# taken out before the next is found, so no two strokes overlap.

parts = NonnegativeSparsePCA(n_components=5, n_nonzero_coefs=8, certify="fast", random_state=0).fit(
    digits
)
ImageDisplay.from_estimator(parts, image_shape=(8, 8))

# %%
# Each part has a certificate. Even the fast one, which costs next to nothing, says how much better
# a part could be at most.

for j, proof in enumerate(parts.certificates_):
    print(f"part {j + 1}: at least {1 - proof.gap:.1%} of the best possible variance")

# %%
# Which digits have which stroke?
# -------------------------------
# The mean score of each digit on each part: dark is much ink there.

target = load_digits().target
scores = parts.transform(digits)
means = np.array([scores[target == digit].mean(axis=0) for digit in range(10)])

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
image = ax.imshow(means, cmap="cividis_r", aspect="auto")
ax.set(xlabel="part", ylabel="digit", yticks=range(10))
ax.set_xticks(range(5), [f"{j + 1}" for j in range(5)])
figure.colorbar(image, label="mean score (ink, relative to the mean digit)")

plt.show()
