"""Figures of docs/choosing_k.md: of its own snippets, which are run again, and of the code."""

from functools import cache

from sklearn.datasets import load_wine

from kspan import FeatureSparsePCA
from kspan.covariance import memory
from tests.docs.figures.reading import Claim, percent


@cache
def wine():
    return FeatureSparsePCA(2, 4, scale=True, random_state=0).fit(load_wine().data)


def represented():
    return [percent(wine().represented_variance_ratio_)] * 2


CLAIMS: list[Claim] = [
    (
        "*Represented* is {}%: take the two scores of every wine, predict each of the 13 "
        "measurements from them by linear regression, and {}% of the variance of all 13 together "
        "is predicted.",
        represented,
    ),
    (
        "the same with the chosen features themselves in the regression: {}%.",
        lambda: [percent(wine().panel_variance_ratio_)],
    ),
    # Limits of the code.
    ("in this process, up to {} MiB (`max_bytes`)", lambda: [memory.MAX_BYTES >> 20]),
    (
        "a folder stays empty below some {:.0f} million multiplications.",
        lambda: [memory.FILE_WORK / 1e6],
    ),
]

NOT_MEASURED = [
    "4 of 13 standardised features cannot have more than 4/13 of it",
    "which need all 13 features",
]
