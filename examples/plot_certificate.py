"""
How to read a certificate
=========================

A certificate is two numbers with the best possible result between them: ``lower`` is what the
chosen features explain, ``upper`` what no choice can exceed. This example gets certificates of
three strengths, looks at how they came about, checks one, and tries to cheat.
"""

# %%
# Three levels
# ------------
# 20 of 30 measurements of tumours, three components: there are 30 million choices. ``"fast"`` uses
# closed formulas, ``"tight"`` solves a relaxed problem, ``"exact"`` splits the problem until
# nothing is left in doubt.

from dataclasses import replace

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from kspan import CertificateError, RowSparseProblem, as_covariance, certify, solve, verify
from kspan.plotting import GapDisplay

tumours = load_breast_cancer()
X, names = tumours.data, tumours.feature_names
problem = RowSparseProblem(as_covariance(X, scale=True), n_components=3, n_features_to_select=20)
solution = solve(problem, random_state=0)

proofs = {level: certify(problem, solution, level) for level in ("fast", "tight", "exact")}
for level, proof in proofs.items():
    print(f"{level:6} {proof.lower:.5f} to {proof.upper:.5f}, gap {proof.gap:.3%}")
    print(f"       {proof.status.value}: {proof.status.advice}")

# %%
# The features were the same each time. What changed is how much is known about them: a large gap
# does not mean that a choice is bad, but that the proof is weak.

print(", ".join(names[proofs["exact"].support]))

# %%
# How the bounds met
# ------------------
# The lower bound was found at once. All of the time goes into the proof that there is nothing
# better.

figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained", sharey=True)
for ax, level in zip(axes, ("tight", "exact"), strict=True):
    GapDisplay.from_certificate(proofs[level], ax=ax)
    ax.set_xlabel(f'time (seconds), level "{level}"')

# %%
# Features that must and must not be there
# ----------------------------------------
# On the way it was proved of some features that they are in every optimal choice, or in none.

exact = proofs["exact"]
print("in every optimal choice:", ", ".join(names[exact.proved_in]) or "not known of any")
print("in none:", ", ".join(names[exact.proved_out]) or "not known of any")

# %%
# Check it
# --------
# `kspan.verify` needs the data and the certificate, and nothing of the search. It returns the two
# numbers as they follow from the data.

print(verify(problem, exact))

# %%
# Cheating does not work. A better bound than the proof has, even with everything else in order, is
# found out:

forged = replace(proofs["tight"], upper=exact.upper, digest="")
try:
    verify(problem, forged)
except CertificateError as error:
    print("CertificateError:", error)

# %%
# And so is a certificate of other data:

others = RowSparseProblem(as_covariance(X[:500], scale=True), 3, 20)
try:
    verify(others, exact)
except CertificateError as error:
    print("CertificateError:", error)

plt.show()
