"""
How many of 30 measurements does PCA need?
==========================================

Cell nuclei of 569 breast tumours, 30 standardised measurements each. How much of what three
principal components explain survives when they may use only k measurements, and which ones?
Beside it, the usual shortcut: run PCA and keep the features with the largest loadings. And above
it, what no choice of k measurements can reach: for every k the search goes on until that is proved.
Makes the picture of the README.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from kspan import FeatureSparsePCA, RowSparseProblem, as_covariance, certify, solve
from kspan.datasets import load_dataset

M, K = 3, 12

data = load_dataset("breast_cancer")
covariance = as_covariance(data.X, scale=True)
plain = covariance.leading(M)
ks = np.arange(M, covariance.n_features + 1)

best, limit, by_loadings, n_optimal = [], [], [], 0
for k in ks.tolist():
    problem = RowSparseProblem(covariance, M, k)
    proof = certify(problem, solve(problem, random_state=0), "exact")
    best.append(proof.lower)
    limit.append(proof.upper)
    n_optimal += proof.status.value == "optimal"
    shortcut = problem.refit(problem.select((plain.vectors**2).sum(axis=1)))
    by_loadings.append(shortcut.objective)
print(f"{n_optimal} of {ks.size} k are proved optimal.")
best, limit, by_loadings = (
    np.array(values) / plain.values.sum() for values in (best, limit, by_loadings)
)

model = FeatureSparsePCA(M, K, scale=True, random_state=0).fit(data.X)
support = model.get_support(indices=True)
loadings = model.components_[:, support].T
order = np.lexsort((-np.abs(loadings).max(axis=1), np.abs(loadings).argmax(axis=1)))

plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
figure, (left, right) = plt.subplots(
    1, 2, figsize=(9.6, 4.0), width_ratios=[1.7, 1], layout="constrained"
)
left.fill_between(
    ks, limit, 1, facecolor="#f1efea", edgecolor="#c4bfb4", hatch="////", lw=0,
    label="proved: no choice of k features gets here",
)  # fmt: skip
left.fill_between(ks, best, limit, color="#14507d", alpha=0.3, lw=0)
left.plot(ks, limit, "-", color="black", lw=2.6, label="proved limit")
left.plot(ks, best, "o-", color="#14507d", label="kspan", ms=4, mfc="white", mew=1.4, lw=1)
left.plot(ks, by_loadings, "s--", color="#9a9a9a", label="largest PCA loadings", ms=4)
left.axhline(1, color="black", lw=0.8)
left.annotate("PCA on all 30 features", (M, 1), va="bottom")
height = best[K - M]
left.annotate(
    f"{K} features keep {height:.0%}\n(largest loadings: {by_loadings[K - M]:.0%})",
    (K, height),
    xytext=(K - 8.2, height + 0.2),
    arrowprops={"arrowstyle": "-", "color": "black", "lw": 0.8},
    bbox={"facecolor": "white", "edgecolor": "none", "pad": 2},
)
left.set(
    xlabel="features used (k)",
    ylabel=f"share of the variance that PCA\nwith {M} components explains",
    ylim=(0, 1.08),
)
left.yaxis.set_major_formatter(matplotlib.ticker.PercentFormatter(1, decimals=0))
left.legend(frameon=False, loc="lower right")

image = right.imshow(loadings[order], cmap="RdBu_r", vmin=-0.8, vmax=0.8, aspect="auto")
right.set_xticks(range(M), [f"PC{i + 1}" for i in range(M)])
right.set_yticks(range(K), [data.feature_names[j] for j in support[order]])
right.tick_params(length=0)
right.spines[:].set_visible(False)
for i, j in np.ndindex(K, M):
    value = loadings[order][i, j]
    right.text(
        j, i, f"{value:+.2f}", ha="center", va="center", fontsize=8,
        color="white" if abs(value) > 0.5 else "black",
    )  # fmt: skip
right.set_title(f"loadings of the {K} features", fontsize=10)

target = Path(__file__).parents[1] / "docs" / "images" / "breast_cancer.png"
target.parent.mkdir(parents=True, exist_ok=True)
figure.savefig(target, dpi=150)
