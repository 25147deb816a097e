"""
Text: words that make a topic
=============================

Word counts are sparse: most words are not in most documents. kspan takes scipy's sparse arrays as
they are, and centres them without ever writing down a dense copy.
"""

# %%
# A small corpus
# --------------
# 3000 short documents, drawn from four topics. Each topic has ten words of its own, and all share
# a few that are everywhere.

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse

from kspan import FeatureSparsePCA, NonnegativeSparsePCA
from kspan.plotting import LoadingsDisplay, ScreeDisplay

topics = {
    "cooking": "oven flour butter sugar recipe salt bake dough pepper garlic",
    "space": "orbit rocket moon launch planet star telescope astronaut engine comet",
    "sport": "match goal team league coach season player score stadium referee",
    "money": "bank market share price loan profit trade tax budget invest",
}
common = ["new", "good", "time", "people", "day", "year", "work", "way", "make", "long"]
words = [word for text in topics.values() for word in text.split()] + common

rng = np.random.default_rng(0)
rates = np.full((4, len(words)), 0.02)
for topic in range(4):
    # Some words of a topic are used more than others.
    rates[topic, 10 * topic : 10 * topic + 10] = np.linspace(1.2, 0.3, 10)
rates[:, 40:] = 0.4
mixture = rng.dirichlet(np.full(4, 0.2), size=3000)  # most documents are about one topic
counts = scipy.sparse.csr_array(rng.poisson(mixture @ rates))

n_documents, n_words = counts.shape
zeros = 1 - counts.nnz / (n_documents * n_words)
print(f"{n_documents} documents, {n_words} words; {zeros:.0%} of the counts are zero")

# %%
# Words that tell documents apart
# -------------------------------
# Common words are frequent, but they do not vary together. Sixteen words for three components:

pca = FeatureSparsePCA(n_components=3, n_features_to_select=16, certify=True, random_state=0)
pca.fit(counts)
chosen = [words[j] for j in pca.get_support(indices=True)]
print(", ".join(chosen))
print("common words among them:", sorted(set(chosen) & set(common)))
print(f"at least {1 - pca.certificate_.gap:.2%} of what the best 16 words explain")

LoadingsDisplay.from_estimator(pca, feature_names=words)

# %%
# One topic for each component
# ----------------------------
# Principal components set one topic against another. Nonnegative ones are topics: words that occur
# together.

topic_model = NonnegativeSparsePCA(n_components=4, n_nonzero_coefs=6, random_state=0).fit(counts)
LoadingsDisplay.from_estimator(topic_model, feature_names=words)

# %%
# What that costs, beside plain PCA on all words:

ScreeDisplay.from_estimator(topic_model, counts)

plt.show()
