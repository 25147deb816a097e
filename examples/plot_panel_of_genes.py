"""
A gene panel without copies
===========================

Genes that are regulated together say the same thing. The best panel by variance alone may take
many of one kind. Here it must not: no two genes of it are near copies, and at most two are of one
cluster. The proof is about panels that keep both rules.
"""

# %%
# The data
# --------
# Expression of 2000 genes in 62 samples of colon tissue (Alon et al. 1999), if the folder that
# ``KSPAN_DATA`` names has it; otherwise simulated genes in families. The file has no names of
# genes, so they are numbered. We take logarithms, and at most the 500 genes that vary most.

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.cluster import AgglomerativeClustering

from kspan import FeatureSparsePCA
from kspan.datasets import is_at_hand, load_dataset


def simulated():
    """Return 60 samples of 80 genes in families, the first ones the largest and most active."""
    rng = np.random.default_rng(0)
    family = np.minimum(rng.geometric(0.1, 80) - 1, 11)
    activity = rng.standard_normal((60, 12)) * np.geomspace(3.0, 0.3, 12)
    own = rng.uniform(0.1, 1.0, 80) * rng.standard_normal((60, 80))
    return 7.0 + activity[:, family] + own


real = is_at_hand("colon")
values = np.log2(load_dataset("colon").X) if real else simulated()
most = np.sort(np.argsort(-values.var(axis=0))[:500])
X = pd.DataFrame(values[:, most], columns=[f"gene {j:04}" for j in most])
print(f"{'colon' if real else 'simulated'}: {X.shape[0]} samples, {X.shape[1]} genes")

# %%
# Clusters
# --------
# Genes that go up and down together are in one cluster: 1 minus the size of their correlation is
# how far apart they are.

together = np.abs(np.corrcoef(X.T))
clusters = AgglomerativeClustering(
    n_clusters=None, distance_threshold=0.5, metric="precomputed", linkage="average"
).fit_predict(1 - together)
print(f"{clusters.max() + 1} clusters; the largest has {np.bincount(clusters).max()} genes")

# %%
# The panel by variance alone, and by the rules
# ---------------------------------------------
# ``groups`` has a label for each gene, ``max_per_group`` says how many may be of one, and
# ``max_correlation`` how alike two may be.

asked = {"n_components": 2, "n_features_to_select": 12, "random_state": 0}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # about near copies, which is what we are about to look at
    free = FeatureSparsePCA(**asked).fit(X)
ruled = FeatureSparsePCA(
    **asked, groups=clusters, max_per_group=2, max_correlation=0.9, certify="exact", time_limit=3
).fit(X)

panels = {"by variance alone": free, "by the rules": ruled}
for title, pca in panels.items():
    chosen = pca.get_support(indices=True)
    pairs = np.triu(together[np.ix_(chosen, chosen)], 1)
    print(
        f"{title}: {np.unique(clusters[chosen]).size} clusters, at most "
        f"{np.bincount(clusters[chosen]).max()} genes of one; largest correlation {pairs.max():.2f}"
    )

# %%
# Side by side: correlations of the chosen genes, sorted by cluster. Lines are between clusters.

figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.6), layout="constrained")
for ax, (title, pca) in zip(axes, panels.items(), strict=True):
    chosen = pca.get_support(indices=True)
    chosen = chosen[np.argsort(clusters[chosen], kind="stable")]
    image = ax.imshow(together[np.ix_(chosen, chosen)], cmap="cividis_r", vmin=0, vmax=1)
    ax.set_yticks(range(chosen.size), X.columns[chosen], fontsize=8)
    ax.set_xticks(range(chosen.size), [f"{clusters[j]}" for j in chosen], fontsize=8)
    ax.set(title=title, xlabel="cluster")
    for place in np.flatnonzero(np.diff(clusters[chosen])) + 0.5:
        ax.axhline(place, color="black", lw=0.8)
        ax.axvline(place, color="black", lw=0.8)
figure.colorbar(image, ax=axes, label="size of the correlation", shrink=0.85)

# %%
# What is proved
# --------------
# The bound is about all panels that keep the rules, and about none that breaks them.

proof = ruled.certificate_
print(
    f"No {asked['n_features_to_select']} genes that keep the rules explain more than "
    f"{proof.upper:.2f}; these explain {proof.lower:.2f}, so at least {1 - proof.gap:.1%} of the "
    f"best possible ({proof.status.value})."
)
print(f"The rules cost {1 - ruled.objective_ / free.objective_:.1%} of the variance.")

plt.show()
