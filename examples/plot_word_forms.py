"""
Words, with one form of each
============================

*sample*, *samples*, *sampled*, *sampling*: in a list of a few words each of them is one too many.
A group for each word stem, and at most one form of each, gives a list that a reader would make; and
it is proved how good such a list can be.
"""

# %%
# Documents
# ---------
# Every estimator and every function of scikit-learn has a text that explains it. (The TDT2 news of
# kspan's benchmarks come as counts without words, so that forms cannot be told there.) Words that
# very many of the texts have are left out, and those of very few.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils.discovery import all_estimators, all_functions

from kspan import FeatureSparsePCA
from kspan.plotting import LoadingsDisplay

texts = [thing.__doc__ for _, thing in all_estimators() + all_functions() if thing.__doc__]
vectorizer = CountVectorizer(
    token_pattern=r"[A-Za-z]{4,}", stop_words="english", min_df=10, max_df=0.4
)
counts = vectorizer.fit_transform(texts).astype(float).log1p()
words = vectorizer.get_feature_names_out()
print(f"{counts.shape[0]} texts, {counts.shape[1]} words")

# %%
# Forms of a word
# ---------------
# A simple rule: cut off one ending, if four letters are left. It is wrong at times, as all such
# rules are, but never by much.

ENDINGS = "ations ation izers izer izing ized izes ize ings ing ions ion ors or ers er ed es s e"


def stem(word):
    """Return what the forms of a word have in common."""
    fitting = [end for end in ENDINGS.split() if word.endswith(end) and len(word) - len(end) >= 4]
    return word.removesuffix(fitting[0]) if fitting else word


stems = np.array([stem(word) for word in words])
several = [name for name in np.unique(stems) if np.count_nonzero(stems == name) > 2]
for name in several[:5]:
    print(f"{name}-:", ", ".join(words[stems == name]))

# %%
# Two lists of 16 words
# ---------------------

asked = {"n_components": 3, "n_features_to_select": 16, "random_state": 0}
free = FeatureSparsePCA(**asked).fit(counts)
ruled = FeatureSparsePCA(**asked, groups=stems, max_per_group=1, certify="exact", time_limit=5).fit(
    counts
)
lists = {"any words": free, "one form of each": ruled}
for title, pca in lists.items():
    print(f"{title}: {', '.join(words[pca.get_support()])}")

_, axes = plt.subplots(1, 2, figsize=(9, 4.8), layout="constrained")
for ax, (title, pca) in zip(axes, lists.items(), strict=True):
    LoadingsDisplay.from_estimator(pca, feature_names=words, ax=ax)
    ax.set_title(title)

# %%
# What is proved
# --------------

proof = ruled.certificate_
print(
    f"With one form of each word no {asked['n_features_to_select']} words explain more than "
    f"{proof.upper:.3f}; these explain {proof.lower:.3f}, so at least {1 - proof.gap:.1%} of the "
    f"best possible ({proof.status.value})."
)
print(f"The rule costs {1 - ruled.objective_ / free.objective_:.1%} of the variance.")

plt.show()
