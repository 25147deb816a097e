"""What a choice of features is worth on samples it has not seen, and for what comes after.

Run: ``python -m benchmarks.peers.represent.heldout``. Needs KSPAN_DATA; five minutes. Half of the
samples, at random, choose k features; the others are told from them, found by them, and grouped by
them. Writes heldout.json and heldout.md beside this file, and the tables of docs/which_question.md;
``--draw`` only makes these again.

- *told by 3 scores*: the best three combinations of the features, and the regression of all
  features on these, are those of the training half. One minus the squared error by the squares
  about the mean of the training half. *With ridge*: combinations and regression count on noise of a
  tenth of the variance of each chosen feature. *Told by all k*: plain least squares of all features
  on the chosen ones, where there are more training samples than features.
- *neighbours kept*: of the five nearest training samples of a held-out one, by all features, the
  share that is among the five nearest by the chosen features. Neither is scaled.
- *nearest neighbours*: the accuracy of five nearest neighbours on the chosen columns, standardised
  by the training half. *Clusters*: adjusted Rand index of KMeans on these columns of the held-out
  half, with the true number of classes. Both need labels, which the gene sets here do not have.
"""

import argparse
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import fill, machine
from benchmarks.peers.race.evaluate import basis
from benchmarks.peers.represent.entries import REPRESENT, VARIANCE

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "docs" / "which_question.md"
M, KS, SEEDS, NEAREST = 3, (20, 50), range(5), 5
RIDGE = 0.1  # of the regression in the column "with ridge"

TITLES = {
    "leukemia": "leukemia, 72 x 7129",
    "colon": "colon, 62 x 2000",
    "duke": "duke, 49 x 7129",
    "digits": "digits, 1797 x 64",
    "numerical_numbers": "handwritten numerals, 2000 x 216",
}
MEASURES = {
    "fitted": "told by 3 scores, fitted half",
    "held out": "told by 3 scores, held-out half",
    "held out, ridge": "the same, with ridge",
    "held out, all k": "told by all k, held-out half",
    "neighbours kept": "neighbours kept",
    "accuracy": "nearest neighbours, accuracy",
    "clusters": "clusters, Rand index",
}


def load(name: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Return a set as float64, as it comes, and its labels."""
    from kspan.datasets import load_dataset

    X = np.asarray(load_dataset(name).X, dtype=np.float64)
    if name == "digits":
        from sklearn.datasets import load_digits

        return X, load_digits().target
    if name == "numerical_numbers":  # 200 of each numeral, in order, as its authors say
        return X, np.repeat(np.arange(10), 200)
    return X, None


def _kspan(
    criterion: str, ridge: float | None = None
) -> Callable[[np.ndarray, int, int], np.ndarray]:
    def choose(X: np.ndarray, k: int, seed: int) -> np.ndarray:
        from kspan import FeatureSparsePCA

        model = FeatureSparsePCA(M, k, criterion=criterion, ridge=ridge, random_state=seed)
        return np.asarray(model.fit(X).get_support(indices=True))

    return choose


def _largest_loadings(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    V = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:M]
    return np.argsort(-np.sum(V**2, axis=0), kind="stable")[:k]


def _largest_variances(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    return np.argsort(-X.var(axis=0), kind="stable")[:k]


def _random(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).choice(X.shape[1], k, replace=False)


def _all(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    return np.arange(X.shape[1])


ALL = "all features"
PICKS: dict[str, Callable[[np.ndarray, int, int], np.ndarray]] = {
    REPRESENT: _kspan("represent"),
    f"{REPRESENT}, ridge=0.1": _kspan("represent", 0.1),
    f"{REPRESENT}, ridge=1": _kspan("represent", 1.0),
    VARIANCE: _kspan("variance"),
    "largest loadings": _largest_loadings,
    "largest variances": _largest_variances,
    "random": _random,
    ALL: _all,
}


def told(
    train: np.ndarray, test: np.ndarray, chosen: np.ndarray, m: int | None, ridge: float = 0.0
) -> tuple[float, float]:
    """Return the shares of both halves that m scores on some features tell; all k for None."""
    mean = train.mean(axis=0)
    Z, part = train - mean, train[:, chosen] - mean[chosen]
    # Noise of the features is as good as more samples, one for each feature, with nothing to tell.
    if ridge:
        noise = np.sqrt(ridge) * np.diag(np.linalg.norm(part, axis=0))
        part, Z = np.vstack([part, noise]), np.vstack([Z, np.zeros((len(noise), Z.shape[1]))])
    scores = basis(part)
    if m is not None:
        left = np.linalg.svd(scores.T @ Z, full_matrices=False)[0]
        scores = scores @ left[:, :m]
    # The shortest weights, where samples are fewer than features.
    weights = np.linalg.lstsq(part, scores, rcond=1e-10)[0]
    slopes = scores.T @ Z
    shares = []
    for half in (train, test):
        rest = half - mean
        error = rest - (half[:, chosen] - mean[chosen]) @ weights @ slopes
        shares.append(1 - float(np.sum(error**2) / np.sum(rest**2)))
    return shares[0], shares[1]


def kept(train: np.ndarray, test: np.ndarray, chosen: np.ndarray) -> float:
    """Return the share of nearest neighbours by all features that the chosen ones find too."""
    from sklearn.neighbors import NearestNeighbors

    def nearest(columns: np.ndarray | slice) -> np.ndarray:
        model = NearestNeighbors(n_neighbors=NEAREST).fit(train[:, columns])
        return np.asarray(model.kneighbors(test[:, columns], return_distance=False))

    whole, some = nearest(slice(None)), nearest(chosen)
    shares = [np.isin(a, b).mean() for a, b in zip(whole, some, strict=True)]
    return float(np.mean(shares))


def downstream(
    train: np.ndarray, test: np.ndarray, y_train: np.ndarray, y_test: np.ndarray, seed: int
) -> tuple[float, float]:
    """Return accuracy of nearest neighbours, and Rand index of clusters."""
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(train)
    a, b = scaler.transform(train), scaler.transform(test)
    accuracy = KNeighborsClassifier(NEAREST).fit(a, y_train).score(b, y_test)
    n_classes = len(np.unique(y_train))
    groups = KMeans(n_classes, n_init=10, random_state=seed).fit_predict(b)
    return float(accuracy), float(adjusted_rand_score(y_test, groups))


def measured(name: str, pick: str, k: int) -> dict[str, Any]:
    """Return one row: what a way to pick features is worth, for each of the halves."""
    X, y = load(name)
    n, half = len(X), len(X) // 2
    values: dict[str, list[float]] = {measure: [] for measure in MEASURES}
    for seed in SEEDS:
        order = np.random.default_rng(1000 + seed).permutation(n)
        a, b = order[:half], order[half:]
        chosen = PICKS[pick](X[a], k, seed)
        fitted, held = told(X[a], X[b], chosen, M)
        values["fitted"].append(fitted)
        values["held out"].append(held)
        if chosen.size < X.shape[1]:  # all of them at once would be as many samples more
            values["held out, ridge"].append(told(X[a], X[b], chosen, M, RIDGE)[1])
        if chosen.size < half - 1:
            values["held out, all k"].append(told(X[a], X[b], chosen, None)[1])
        values["neighbours kept"].append(kept(X[a], X[b], chosen))
        if y is not None:
            found = downstream(X[a][:, chosen], X[b][:, chosen], y[a], y[b], seed)
            values["accuracy"].append(found[0])
            values["clusters"].append(found[1])
    row = {"data": name, "k": k, "pick": pick, "training samples": half, "values": values}
    print(row["data"], k, pick, {key: mean(row, key) for key in MEASURES}, flush=True)
    return row


def mean(row: dict[str, Any], measure: str) -> float | None:
    values = row["values"][measure]
    return statistics.fmean(values) if values else None


def summary(record: dict[str, Any]) -> str:
    """Return the table: the mean over the halves, the best of each column in bold."""
    lines = [
        "| data | k | features by | " + " | ".join(MEASURES.values()) + " |",
        "|---" * (3 + len(MEASURES)) + "|",
    ]
    for name, k in dict.fromkeys((row["data"], row["k"]) for row in record["rows"]):
        rows = [row for row in record["rows"] if (row["data"], row["k"]) == (name, k)]
        picks = [row for row in rows if row["pick"] != ALL]
        for row in rows:
            cells = [TITLES[name], str(k), row["pick"]]
            for measure in MEASURES:
                value = mean(row, measure)
                if value is None:
                    cells.append("–")
                    continue
                text = _text(measure, value)
                best = max(found for one in picks if (found := mean(one, measure)) is not None)
                is_best = row in picks and value >= best and value > -1
                cells.append(f"**{text}**" if is_best else text)
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _text(measure: str, value: float) -> str:
    if value < -1:
        return "below −100%"
    return f"{value:.3f}" if measure == "clusters" else f"{value:.1%}"


def markdown(record: dict[str, Any]) -> str:
    """Return the page of results."""
    machine = record["machine"]
    lines = [
        "# Features chosen on one half of the samples, and the other half", "",
        f"m = {M}; means over {len(SEEDS)} random halves. Data as `kspan.datasets.load_dataset` gives "
        "it, centred by the mean of the training half; not scaled, but for the last two columns, where "
        "the chosen columns are standardised by the training half. The best pick of each column in "
        "bold; *all features* is no pick, and its first two columns are what PCA does. A dash under "
        "*told by all k*: not fewer features than training samples. A dash in the last two: no "
        "labels. How each column is computed is said in `heldout.py`.", "",
        summary(record), "",
        f"Python {machine['python']}, {machine['processor']}, {machine['date']}; "
        + ", ".join(f"{key} {value}" for key, value in machine["versions"].items()) + ".", "",
    ]  # fmt: skip
    return "\n".join(lines)


def write(record: dict[str, Any]) -> None:
    (HERE / "heldout.json").write_text(json.dumps(record, indent=1) + "\n")
    (HERE / "heldout.md").write_text(markdown(record))
    fill(PAGE, "heldout.json", summary(record))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draw", action="store_true", help="only draw heldout.json again")
    if parser.parse_args().draw:
        write(json.loads((HERE / "heldout.json").read_text()))
        return
    rows = [measured(name, pick, k) for name in TITLES for k in KS for pick in PICKS]
    write({"machine": machine(), "m": M, "rows": rows})


if __name__ == "__main__":
    main()
