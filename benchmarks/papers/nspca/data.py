"""The three data sets of the paper, or what could be had of them."""

import json
from pathlib import Path

import numpy as np

from kspan.datasets import load_dataset

# Name in the files here: name of the loader, the paper's shape, and what ours is.
SETS = {
    "cbcl": ("cbcl_faces", (2429, 361), "the same"),
    "leukemia": ("leukemia", (72, 12582), "log(max(x, 20)) of the 72 by 7129 set of Golub et al."),
    "lrs": ("lrs", (531, 93), "the same shape"),
}
LEAST_EXPRESSION = 20.0
FACE = (19, 19)  # pixels, stored column by column


def load(name: str) -> np.ndarray:
    """Return a data set in float64, samples in rows, neither centred nor scaled."""
    X = load_dataset(SETS[name][0]).X.astype(np.float64)
    return np.log(np.maximum(X, LEAST_EXPRESSION)) if name == "leukemia" else X


def face(pixels: np.ndarray) -> np.ndarray:
    """Return the picture, the right way up, of 361 pixels."""
    return np.asarray(pixels).reshape(FACE, order="F")


def paper() -> dict[str, dict[int, float]]:
    """Return {data set: {k: share}} as the paper's text has them."""
    record = json.loads((Path(__file__).parent / "paper.json").read_text())
    return {
        name: {int(k): share for k, share in shares.items()}
        for name, shares in record["shares"].items()
    }
