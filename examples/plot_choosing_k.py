"""
How many features? A path over k
================================

Nobody knows beforehand how many features are enough. `kspan.sparsity_path` chooses features for
every k at once, and bounds what would be possible at each. `kspan.suggest_k` reads the path.
"""

# %%
# The path
# --------
# 13 chemical measurements of 178 wines, two components.

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from kspan import selection_stability, sparsity_path, suggest_k
from kspan.plotting import PathDisplay, StabilityDisplay

wine = load_wine(as_frame=True).data
path = sparsity_path(wine, n_components=2, scale=True, random_state=0)

for k in (4, 7, 10):
    print(f"{k:2} features keep {path.explained[path.k == k][0]:.1%} of what plain PCA explains")

# %%
# A suggestion with reasons
# -------------------------
# The smallest k that keeps 90%, and why.

suggestion = suggest_k(path, share=0.9)
print("\n".join(suggestion.reasons))

# %%
# The curve is what was found. The best possible curve lies between it and the dashed line, which
# is proved: where the two meet, no other features are better.

PathDisplay.from_path(path, chosen=suggestion.k)

# %%
# Does the choice depend on the sample?
# -------------------------------------
# The features are chosen again on 50 resamples of the wines. Bars near 100% are features that
# any sample would have chosen. A k with much agreement is a good k.

measured = [
    selection_stability(wine, 2, k, scale=True, random_state=0) for k in (6, 8, suggestion.k)
]
for stability in measured:
    print(f"k = {stability.n_features_to_select:2}: agreement {stability.nogueira:.2f}")

# %%
# Given these, `suggest_k` takes stability into account.

best = suggest_k(path, share=0.9, stability=measured)
print(best.reasons[-1])

shown = next(one for one in measured if one.n_features_to_select == best.k)
chosen = path.supports[list(path.k).index(best.k)]
StabilityDisplay.from_stability(shown, chosen=chosen)

plt.show()
