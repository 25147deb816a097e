"""Figures of docs/which_question.md."""

from benchmarks.peers.represent import heldout
from tests.docs.figures.reading import Claim

SAMPLES = {"leukemia": 72, "colon": 62, "duke": 49}


def few_samples():
    """Half of the samples of each gene table."""
    halves = [n // 2 for n in SAMPLES.values()]
    return min(halves), max(halves)


def how_often():
    assert len(heldout.SEEDS) == 5
    return []


CLAIMS: list[Claim] = [
    ("Five times, means; the best pick of each column in bold", how_often),
    ("**Few samples ({} to {} patients, thousands of genes): it does not.**", few_samples),
]

NOT_MEASURED = [
    '"38%" means',  # an example
    "have 38% of the variance of the table",
    "with 38% of their variance explained",
    "A dash has run out of its two minutes",  # the limit of launch.py
    "(digits with 50 of 64 pixels)",
    "**`ridge=0.1` mends most of that.**",
    "(0.1 and 1 are the two values that we tried",
]
