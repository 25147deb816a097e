"""Figure 3: six nonnegative components with 40 pixels each of the CBCL faces.

The pixels of a component are removed before the next one is looked for. Run:
``python -m benchmarks.papers.nspca.figure3``. Needs KSPAN_DATA, and matplotlib for the picture.
Writes figure3.json, figure3.md and figure3.png beside this file; ``--draw`` only draws from the
JSON, and without KSPAN_DATA leaves the samples out.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measure import explained_variance, machine
from benchmarks.papers.nspca.data import FACE, face, load
from benchmarks.papers.nspca.methods import EPSILON, RANK, RESTARTS, Data

HERE = Path(__file__).parent
K, M = 40, 6
NAMES = ("net", "EM", "auto")
SAMPLES = (0, 400, 800, 1200, 1600, 2000)  # rows of the data


def run(X: np.ndarray, k: int, m: int) -> dict[str, Any]:
    """Return loadings and variances of each method's components."""
    data = Data(X)
    methods = {}
    for name in NAMES:
        W, seconds = data.run(name, k, m)
        # Pixels are used once, so what is left of A for a component is A on its pixels.
        assert (np.count_nonzero(W, axis=1) <= 1).all()
        methods[name] = {
            "seconds": seconds,
            "variances": [data.variance(x) for x in W.T],
            "span": explained_variance(X, W) / float(data.spectrum[:m].sum()),
            "components": [
                {"pixels": np.flatnonzero(x).tolist(), "loadings": x[x > 0].round(4).tolist()}
                for x in W.T
            ],
        }
    return {"k": k, "methods": methods}


def markdown(record: dict[str, Any]) -> str:
    """Return the variance of each component, and their sum so far."""
    m = len(record["methods"]["auto"]["variances"])
    lines = [
        "# Figure 3 of the nonnegative sparse PCA paper, run again", "",
        f"{m} nonnegative components of the CBCL faces with at most {record['k']} pixels each; "
        "the pixels of a component are removed before the next one. x'Ax of each, by the largest "
        "eigenvalue of the covariance, and in brackets the sum so far. `span` is what all of them "
        f"explain together, in percent of what {m} principal components do. `net`: rank {RANK}, "
        f"ε = {EPSILON:g}; EM: {RESTARTS} random starts.", "",
        "| | " + " | ".join(str(j + 1) for j in range(m)) + " | span | seconds |",
        "|---" * (m + 3) + "|",
    ]  # fmt: skip
    for name, one in record["methods"].items():
        sums = np.cumsum(one["variances"])
        cells = [f"{v:.4f} ({s:.4f})" for v, s in zip(one["variances"], sums, strict=True)]
        lines.append(
            f"| {name} | " + " | ".join(cells) + f" | {one['span']:.2%} | {one['seconds']:.2f} |"
        )
    totals = {name: sum(one["variances"]) for name, one in record["methods"].items()}
    ranked = sorted(totals, key=lambda name: -totals[name])
    firsts = {name: one["variances"][0] for name, one in record["methods"].items()}
    in_order = ", ".join(f"{name} {totals[name]:.4f}" for name in ranked)
    lines += [
        "", f"- Sum of all {m}: {in_order}.",
        f"- The first component is best for {max(firsts, key=lambda name: firsts[name])}. Later "
        "ones are found on what each method's own choices have left, so that a better one may "
        "leave less for the next.", "",
    ]  # fmt: skip
    return "\n".join(lines)


def draw(record: dict[str, Any], path: Path) -> None:
    """Draw samples and components, one line for each method."""
    import matplotlib.pyplot as plt

    lines: list[tuple[str, list[np.ndarray]]] = []
    try:
        X = load("cbcl")
        lines.append(("samples", [X[i] for i in SAMPLES]))
    except FileNotFoundError:
        pass
    for name, one in record["methods"].items():
        pictures = []
        for component in one["components"]:
            x = np.zeros(FACE[0] * FACE[1])
            x[component["pixels"]] = component["loadings"]
            pictures.append(x)
        lines.append((name, pictures))
    m = len(lines[-1][1])
    figure, axes = plt.subplots(
        len(lines), m, figsize=(1.35 * m + 0.8, 1.5 * len(lines)), squeeze=False,
        constrained_layout=True,
    )  # fmt: skip
    for row, (name, pictures) in zip(axes, lines, strict=True):
        row[0].set_ylabel(name, fontsize=12)
        for axis, pixels in zip(row, pictures, strict=False):
            # Of components, dark is a large loading, so that the pixels used stand out.
            axis.imshow(face(pixels), cmap="gray" if name == "samples" else "gray_r")
        for j, axis in enumerate(row):
            axis.set_xticks([])
            axis.set_yticks([])
            if name != "samples":
                variance = record["methods"][name]["variances"][j]
                axis.set_xlabel(f"{variance:.3f}", fontsize=9)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    """Run it and write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--k", type=int, default=K)
    parser.add_argument("--components", type=int, default=M)
    parser.add_argument("--draw", action="store_true", help="only draw from the JSON")
    parser.add_argument("--out", type=Path, default=HERE / "figure3")
    options = parser.parse_args()
    json_file = options.out.with_suffix(".json")
    if not options.draw:
        with threadpool_limits(1):
            record = run(load("cbcl"), options.k, options.components)
        json_file.write_text(json.dumps({"machine": machine(), **record}) + "\n")
    record = json.loads(json_file.read_text())
    options.out.with_suffix(".md").write_text(markdown(record))
    draw(record, options.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
