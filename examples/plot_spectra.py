"""
Wavelengths in bands
====================

An instrument with filters does not measure single wavelengths: it has a band or it does not. Or it
measures single ones, but not many that lie next to each other. Both are rules about groups, and
the best choice under them is proved.
"""

# %%
# Spectra
# -------
# 531 infrared spectra of stars (IRAS low resolution spectrometer): 44 channels of a blue detector
# and then 49 of a red one, if the folder that ``KSPAN_DATA`` names has the file; otherwise as many
# simulated ones. Nine bands, none of which is on both detectors.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from kspan import FeatureSparsePCA
from kspan.datasets import is_at_hand, load_dataset


def simulated():
    """Return spectra with four bumps of different strength on a slope."""
    rng = np.random.default_rng(0)
    places, widths = np.array([12, 30, 55, 80]), np.array([5, 8, 6, 10])
    bumps = np.exp(-(((np.arange(93) - places[:, None]) / widths[:, None]) ** 2))
    strength = rng.gamma(2.0, 1.0, (531, 4)) * (3.0, 1.0, 2.0, 1.5)
    slope = rng.standard_normal((531, 1)) * np.linspace(1, -1, 93)
    return 5 + slope + strength @ bumps + 0.1 * rng.standard_normal((531, 93))


real = is_at_hand("lrs")
X = load_dataset("lrs").X if real else simulated()
n_blue = 44
bands = [f"blue {1 + 4 * j // n_blue}" for j in range(n_blue)]
bands += [f"red {1 + 5 * j // (93 - n_blue)}" for j in range(93 - n_blue)]
bands = np.array(bands)
print(f"{'LRS' if real else 'simulated'}: {X.shape[0]} spectra of {X.shape[1]} channels")

# %%
# Three ways to choose
# --------------------
# Twelve channels without rules; three whole bands; twelve channels, at most two of each band. For
# whole bands there is no number of channels to give: ``n_groups`` says enough.

asked = {"n_components": 2, "certify": "exact", "random_state": 0, "time_limit": 4}
rules = {
    "12 channels": {"n_features_to_select": 12},
    "3 whole bands": {"groups": bands, "group_rule": "together", "n_groups": 3},
    "12 channels,\nat most 2 of a band": {
        "n_features_to_select": 12, "groups": bands, "max_per_group": 2,
    },
}  # fmt: skip
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # channels next to each other are near copies
    fits = {title: FeatureSparsePCA(**asked, **rule).fit(X) for title, rule in rules.items()}

# %%
# Where they look
# ---------------
# Above, the mean spectrum with what most spectra differ by; below, the channels of each choice.

first = np.flatnonzero(np.r_[True, bands[1:] != bands[:-1]])
middle = (first + np.r_[first[1:], bands.size] - 1) / 2
mean, spread = X.mean(axis=0), X.std(axis=0)

figure, (top, bottom) = plt.subplots(
    2, 1, figsize=(8, 5), sharex=True, height_ratios=(2, 1.2), layout="constrained"
)
top.fill_between(range(93), mean - spread, mean + spread, color="#1c5a9629", lw=0)
top.plot(mean, color="#1c5a96", label="mean, and one standard deviation")
top.set(ylabel="intensity")
top.legend(frameon=False)
for row, pca in enumerate(fits.values()):
    chosen = pca.get_support(indices=True)
    bottom.scatter(chosen, np.full(chosen.size, row), marker="s", s=22, color="#1c5a96")
bottom.set(ylim=(len(fits) - 0.5, -0.5), xlabel="band")
bottom.set_yticks(range(len(fits)), list(fits))
bottom.set_xticks(middle, bands[first])
bottom.tick_params(axis="x", length=0)
for ax in (top, bottom):
    ax.spines[["top", "right"]].set_visible(False)
    for place in first[1:]:
        is_gap = place == n_blue
        ax.axvline(
            place - 0.5, color="#8c8c8c", lw=1.2 if is_gap else 0.6, ls="-" if is_gap else ":"
        )

# %%
# What is proved
# --------------
# Each choice is compared with the best one under its own rules.

for title, pca in fits.items():
    proof = pca.certificate_
    share = pca.explained_variance_ratio_.sum()
    print(
        f"{title.replace(chr(10), ' ')}: {pca.get_support().sum()} channels explain {share:.1%} of "
        f"the variance of all, at least {1 - proof.gap:.2%} of the best possible under the rule "
        f"({proof.status.value})."
    )

plt.show()
