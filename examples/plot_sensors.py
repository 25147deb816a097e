"""
Sensors with prices: what more money would buy
==============================================

Sensors differ in price by far more than in what they tell. A budget, and not a number of sensors,
is what a city has. `kspan.budget_path` chooses the best network for every budget, and bounds what
any network of that price could do.
"""

# %%
# The network
# -----------
# 48 sensors that could be put up, six kinds at eight sites, with prices and trial measurements;
# `kspan.datasets.make_sensors` says how these are drawn. Several measure nearly the same:
# temperature is alike everywhere, and PM10 can be had as a cheap sensor with a larger error.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from kspan import FeatureSparsePCA, Panel, budget_path
from kspan.datasets import make_sensors

sensors = make_sensors()
X = pd.DataFrame(sensors.X, columns=sensors.names)
table = pd.DataFrame({"kind": sensors.kinds, "price": sensors.prices}, index=sensors.names)
print(table.groupby("kind", sort=False)["price"].agg(["count", "first"]))
print(f"all of them: {sum(sensors.prices):g}")

# %%
# A budget alone
# --------------
# ``scale=True``, as the units have nothing to do with each other. Variance alone likes what is
# cheap, and has nothing against copies:

prices = dict(table["price"])
alone = FeatureSparsePCA(3, scale=True, costs=prices, budget=40.0, random_state=0).fit(X)
print(table.loc[alone.selected_features_].groupby("kind", sort=False).size().to_string())

# %%
# The path over budgets
# ---------------------
# So no two sensors may be correlated more than 0.95. The path has the budget of 40 and others, from
# half of it to one and a half.

panel = Panel(costs=prices, budget=40.0, max_correlation=0.95)
path = budget_path(
    X, n_components=3, panel=panel, scale=True, certify="exact", time_limit=3, random_state=0
)
print(pd.DataFrame(path.columns()).round(3).to_string(index=False))

# %%
# Between two budgets the best possible is at least what the smaller one reaches and at most what is
# proved of the larger one: steps, and no straight lines.

share, ceiling = path.explained, path.upper / path.full
here, more = path.place(path.asked), path.place(1.1 * path.asked)

places = path.budget.repeat(2)  # just below each budget, and just above it
low = np.stack([np.r_[share[0], share[:-1]], share], axis=1).ravel()
high = np.stack([ceiling, np.r_[ceiling[1:], ceiling[-1]]], axis=1).ravel()

figure, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
ax.fill_between(places, low, high, color="#1c5a9629", lw=0, label="the best possible is in here")
ax.plot(places, high, color="#1d2126", lw=0.8, ls="--", label="proved limit")
ax.plot(path.budget, share, "o", color="#1c5a96", ms=5, label="found")
ax.plot(
    path.budget[here], share[here], "D", ms=9, mfc="white", mec="#b5701a", mew=2,
    label=f"budget {path.asked:g}: {share[here]:.1%}",
)  # fmt: skip
ax.set(xlabel="budget", ylabel="share of the variance that\nplain PCA explains with all sensors")
ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
ax.set_ylim(0, 1.1 * ceiling.max())
ax.spines[["top", "right"]].set_visible(False)
ax.legend(loc="lower right", frameon=False)

# %%
# Ten percent more
# ----------------
# What would come with a tenth more of money, and what would go:

before, after = (set(X.columns[path.supports[place]]) for place in (here, more))
print("comes:", ", ".join(sorted(after - before)) or "nothing")
print("goes:", ", ".join(sorted(before - after)) or "nothing")
at_most = path.upper[more] / path.objective[here] - 1
print(f"That explains {path.gain(0.1):.1%} more; no network of that price more than {at_most:.1%}.")

# %%
# What is bought
# --------------
# The sensors of the budget, by kind and site.

chosen = table.loc[X.columns[path.supports[here]]]
for kind, rows in chosen.groupby("kind", sort=False):
    sites = [name.removeprefix(f"{kind} ") for name in rows.index]
    print(f"{len(sites)} x {kind} ({rows['price'].sum():g}): {', '.join(sites)}")

# %%
# What is proved
# --------------

proof = path.certificates[here]
print(
    f"No sensors for {path.asked:g} that keep the rule explain more than {proof.upper:.2f}; these "
    f"cost {path.spent[here]:g} and explain {proof.lower:.2f}, at least {1 - proof.gap:.1%} of the "
    f"best possible ({proof.status.value})."
)

plt.show()
