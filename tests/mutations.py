"""Break lines of ``src/`` one at a time, in a copy, and see the fast tests fail each time.

Run ``python tests/mutations.py``, or with numbers for some of them. Every line of the list is
broken in a copy of the sources; the tests named beside it, all part of the fast suite, must then
fail. It ends with exit code 1 if one of them passes, or if a line is no longer there: then the code
has changed, and this list should follow. Some minutes on two cores.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Mutation:
    """A line, what it becomes, and the tests that must see it."""

    file: str
    line: str
    broken: str
    tests: str


MUTATIONS = [
    # --- the feasible set
    Mutation("problem/choice.py", "keys[self.forced] = np.inf", "pass", "tests/test_choice.py"),
    Mutation(
        "problem/choice.py", "+ (self.size + 8) * UNIT * size", "- (self.size + 8) * UNIT * size",
        "tests/proofs/test_bounds.py tests/test_choice.py",
    ),
    Mutation(
        "problem/choice.py", "put_in[outside] = scores[inside[-1]] - scores[outside]",
        "put_in[outside] = scores[inside[0]] - scores[outside]", "tests/test_choice.py",
    ),
    Mutation(
        "problem/choice.py", "if (chosen & ~self.allowed).any():", "if False:",
        "tests/test_choice.py",
    ),
    # --- bounds, their margins, and who checks them
    Mutation(
        "proofs/check/bounds.py", "+ m * 4 * (n + 2) * UNIT * norm",
        "- m * 4 * (n + 2) * UNIT * norm", "tests/proofs/test_bounds.py",
    ),
    Mutation(
        "proofs/check/bounds.py", "return scores + known.uncertainty.scores(m)", "return scores",
        "tests/proofs/test_bounds.py",
    ),
    Mutation(
        "proofs/check/known.py", "return math.sqrt(m) * (1 + 8 * UNIT) * self.errors",
        "return self.errors", "tests/proofs/test_bounds.py",
    ),
    Mutation(
        "proofs/search/proof.py", "if upper < self.lower:", "if False:",
        "tests/proofs/test_never_wrong.py",
    ),
    Mutation(
        "problem/problems.py", "max(float(value - rounding", "max(float(value + rounding",
        "tests/proofs/test_never_wrong.py",
    ),
    Mutation(
        "solvers/one_by_one.py", "errors = (parts + size * float(size @ parts)) ** 2",
        "errors = 0 * parts", "tests/proofs/test_never_wrong.py",
    ),
    Mutation(
        "covariance/block_kernels.py", "return total, (a - (total - back)) + (b - back)",
        "return total, 0 * a", "tests/linalg/test_moments.py",
    ),
    Mutation(
        "covariance/block_kernels.py", "return (other.mean - self.mean) + (other.rest - self.rest)",
        "return other.mean - self.mean", "tests/proofs/test_never_wrong.py",
    ),
    Mutation(
        "solvers/rowsparse/leaders.py", "np.partition(rows, -size, axis=1)[:, -size:]",
        "np.partition(rows, -size, axis=1)[:, :size]", "tests/solvers/rowsparse/test_leaders.py",
    ),
    Mutation(
        "covariance/streamed.py", "self.lost += delta + rounded", "self.lost += rounded",
        "tests/proofs/test_never_wrong.py",
    ),
    Mutation(
        "proofs/check/bounds.py", "M = C - factor @ factor.T", "M = C + factor @ factor.T",
        "tests/proofs/test_bounds.py",
    ),
    Mutation(
        "proofs/check/bounds.py", "+= alpha - beta", "+= alpha - 2 * beta",
        "tests/proofs/test_row_cones.py",
    ),
    Mutation(
        "proofs/check/row_sums.py", "rows *= t", "rows *= 0.9 * t",
        "tests/proofs/test_bounds.py tests/proofs/test_screened.py",
    ),
    Mutation(
        "proofs/check/screened.py", "max(level, self.rest.evaluate(rest))",
        "self.rest.evaluate(rest)", "tests/proofs/test_screened.py",
    ),
    Mutation(
        "proofs/check/screening.py", "np.minimum(top - put_in, bound.value)",
        "np.minimum(top - 2 * put_in, bound.value)", "tests/proofs/test_screening.py",
    ),
    Mutation(
        "proofs/check/verify.py", "need(intact,", "need(True,", "tests/proofs/test_verify.py"
    ),
    Mutation(
        "proofs/check/claims.py", "follows <= claimed + slack", "follows >= claimed - slack",
        "tests/proofs/test_verify.py",
    ),
    Mutation(
        "proofs/check/tree.py", "upper = max(upper, level)", "pass", "tests/proofs/test_verify.py"
    ),
    # --- row cones
    Mutation(
        "proofs/check/bounds.py", "np.maximum(beta, cones.beta)", "cones.beta",
        "tests/proofs/test_row_cones.py",
    ),
    Mutation(
        "proofs/check/bounds.py", "n if any_size else choice.size - 1", "choice.size - 1",
        "tests/proofs/test_row_cones.py",
    ),
    Mutation(
        "proofs/check/bounds.py", "np.fill_diagonal(G, 0.0)", "pass",
        "tests/proofs/test_row_cones.py",
    ),
    Mutation(
        "proofs/check/bounds.py", "G[idle], alpha[idle] = 0.0, 0.0", "alpha[idle] = 0.0",
        "tests/proofs/test_row_cones.py",
    ),
    Mutation(
        "proofs/check/bounds.py", "np.partition(squares, n - count, axis=1)[:, n - count :]",
        "np.partition(squares, n - count, axis=1)[:, n - count + 1 :]",
        "tests/proofs/test_row_cones.py",
    ),
    Mutation(
        "proofs/check/bounds.py", "scores[inside[places]] = inside_scores + squares",
        "scores[inside[places]] = squares", "tests/proofs/test_row_cones.py",
    ),
    Mutation(
        "proofs/check/bounds.py", "rows[np.ix_(here, here)], alpha[here] = part.rows, part.alpha",
        "rows[np.ix_(here, here)], alpha[there] = part.rows, part.alpha",
        "tests/proofs/test_bounds.py",
    ),
    Mutation(
        "linalg/support_cones.py", "low, high = 0.0, sums[-1] / n_nonzeros",
        "low, high = 0.0, sums[-1] / (n_nonzeros + 1)", "tests/linalg/test_support_cones.py",
    ),
    Mutation(
        "linalg/support_cones.py", "for j in range(n_nonzeros):", "for j in range(a.size):",
        "tests/linalg/test_support_cones.py",
    ),
    # --- searches
    Mutation(
        "proofs/search/node_steps.py", "lower / (1 - 0.9 * self.budgets.gap)",
        "lower / (1 - 9 * self.budgets.gap)",
        "tests/proofs/test_search.py tests/proofs/test_levels.py",
    ),
    Mutation(
        "proofs/search/tree_state.py", '"branched", [first, first + 1]',
        '"branched", [first, first]', "tests/proofs/test_search.py tests/proofs/test_levels.py",
    ),
    Mutation(
        "proofs/search/tree_state.py", "witness=moved(record.witness, 1)", "witness=record.witness",
        "tests/proofs/test_rounds.py",
    ),
    Mutation(
        "proofs/search/tree_state.py", "shared=moved(node.shared, 2)", "shared=node.shared",
        "tests/proofs/test_rounds.py",
    ),
    Mutation(
        "proofs/search/cone_relaxation.py", "np.maximum(P, 0.0, out=P)", "pass",
        "tests/proofs/test_nonnegative.py",
    ),
    # --- solvers and their loop
    Mutation(
        "solvers/loop.py", "if candidate.objective > self.best_of_each[i].objective:",
        "if candidate.objective < self.best_of_each[i].objective:", "tests/solvers/test_loop.py",
    ),
    Mutation(
        "solvers/loop.py", "settled = same_subspace(candidate, self.last[i])", "settled = False",
        "tests/solvers/test_loop.py",
    ),
    Mutation(
        "solvers/rowsparse/ipu.py", "B[:, kept] / np.sqrt(values[kept])",
        "B[:, kept] * np.sqrt(values[kept])", "tests/solvers/rowsparse/test_ipu.py",
    ),
    Mutation(
        "solvers/rowsparse/swaps.py", "gains = kept[:, None] + _added_variance",
        "gains = kept[:, None] - _added_variance", "tests/solvers/rowsparse",
    ),
    Mutation(
        "solvers/one_by_one.py", "core = np.array([[variance, -size], [-size, 0.0]])",
        "core = np.array([[variance, size], [size, 0.0]])", "tests/solvers/elementsparse",
    ),
    Mutation(
        "solvers/one_by_one.py", "found[-1] = replace(found[-1], vector=better)", "pass",
        "tests/test_proved_components.py",
    ),
    Mutation(
        "solvers/stiefel/splitting.py", "= V, Y, t * (Z - Y)", "= V, Y, t * (Y - Z)",
        "tests/solvers/stiefel",
    ),
    Mutation(
        "solvers/nonnegative/ascent.py", "np.hypot(half, np.maximum(coupling, 0.0))",
        "np.hypot(half, coupling)", "tests/solvers/nonnegative/test_ascent.py",
    ),
    # --- data, time, files, estimators
    # --- weights, holes, matrices of few digits
    Mutation(
        "covariance/block_kernels.py", "near *= np.sqrt(weights)[:, None]", "pass",
        "tests/covariance/test_weights.py",
    ),
    Mutation(
        "covariance/weights.py", "return (self.total - ddof) + self.rest", "return self.total",
        "tests/covariance/test_weights.py",
    ),
    Mutation(
        "covariance/block_kernels.py",
        "left[column] = np.delete(weights, part.indices[first:last]).sum()", "pass",
        "tests/covariance/test_weights.py",
    ),
    Mutation(
        "covariance/dense_data.py", "X, weights.values, first=weights.heaviest",
        "X, weights.values, first=0", "tests/covariance/test_weights.py",
    ),
    Mutation(
        "covariance/missing.py", "A = (P - S * S.T / N) / left", "A = (P - S * S / N) / left",
        "tests/covariance/test_missing.py",
    ),
    Mutation(
        "covariance/matrix.py",
        "self._slack = np.full(d, slack + (lacking if self.indefiniteness else 0.0))",
        "self._slack = np.full(d, slack)", "tests/covariance/test_indefinite.py",
    ),
    Mutation(
        "records/check.py", "need(covariance.weights_digest == record.weights,", "need(True,",
        "tests/estimators/test_weights_and_holes.py",
    ),
    Mutation(
        "covariance/block_kernels.py", "(X[rows].toarray() if sparse else X[rows]) - mean",
        "(X[rows].toarray() if sparse else X[rows]) + mean", "tests/covariance/test_backends.py",
    ),
    Mutation(
        "progress.py", "if self.stopped is None and self.deadline.passed:", "if False:",
        "tests/test_progress.py",
    ),
    Mutation(
        "progress.py", "if self._parent is not None and status is not Status.TIME_LIMIT:",
        "if False:", "tests/test_progress.py",
    ),
    # --- what is kept of data for the next fit
    Mutation(
        "covariance/digests.py", "repr((values.shape, values.dtype.str, layout))",
        "repr((values.shape, values.dtype.str))", "tests/covariance/test_memory.py",
    ),
    Mutation(
        "covariance/data_covariance.py", "if known.changed:", "if False:",
        "tests/covariance/test_memory.py",
    ),
    Mutation(
        "covariance/data_covariance.py", "'formed' if self._gram is not None else 'not formed'",
        "'formed'", "tests/covariance/test_memory.py",
    ),
    Mutation(
        "covariance/data_covariance.py", 'recall.about("scale", own, "ddof", ddof)', "recall",
        "tests/covariance/test_memory.py",
    ),
    Mutation(
        "covariance/convert.py", '"data", None if weights is None else weights.digest()', '"data"',
        "tests/covariance/test_memory.py",
    ),
    Mutation(
        "covariance/memory.py", "and entry.key == key else None", "else None",
        "tests/covariance/test_memory.py",
    ),
    Mutation(
        "covariance/memory.py", "return copy.deepcopy(found[0])", "return found[0]",
        "tests/covariance/test_memory.py",
    ),
    Mutation(
        "covariance/matrix.py", "if known is not None and not known.changed:",
        "if known is not None:", "tests/covariance/test_memory.py",
    ),
    Mutation(
        "storage/files.py", "if type(found) is int and found < FORMAT:", "if False:",
        "tests/test_storage.py",
    ),
    Mutation(
        "records/check.py", "need(covariance.fingerprint() == record.fingerprint,", "need(True,",
        "tests/test_records.py",
    ),
    Mutation(
        "estimators/covariance_estimator.py", "largest] < 0, -1.0, 1.0)", "largest] < 0, 1.0, 1.0)",
        "tests/estimators/test_feature_sparse_pca.py",
    ),
    Mutation(
        "choosing_k/band.py", "upper[place] = min(upper[place], certificate.upper_at(k))",
        "upper[place] = 0.99 * min(upper[place], certificate.upper_at(k))",
        "tests/choosing_k/test_path.py",
    ),
    # --- noise taken off, and what is known beforehand
    Mutation(
        "proofs/search/closed_forms.py", "leading[0], *rest[:1], noise)", "leading[0])",
        "tests/proofs/test_spiked.py",
    ),
    Mutation(
        "solvers/shifts.py", "added = float(shift) / unit", "added = float(shift)",
        "tests/solvers/test_shifts.py",
    ),
    Mutation(
        "solvers/elementsparse/signed_spannogram.py",
        "max(beyond_rank(covariance, V.shape[1]), -shift)",
        "beyond_rank(covariance, V.shape[1]) + shift",
        "tests/solvers/elementsparse/test_signed_spannogram.py",
    ),
    Mutation(
        "proofs/check/a_priori.py", "beyond = max(float(spectrum.high[rank]), 0.0)",
        "beyond = 0.5 * max(float(spectrum.high[rank]), 0.0)", "tests/proofs/test_a_priori.py",
    ),
    Mutation(
        "proofs/check/a_priori.py", "values - off, values + off + unseen, lacking",
        "values + off, values - off, lacking", "tests/proofs/test_a_priori.py",
    ),
    # --- a look while a search goes on, and proofs of one k after another
    Mutation(
        "proofs/search/early.py", "settled = proof.certificate(\"early\").status is Status.OPTIMAL",
        "settled = True", "tests/proofs/test_early.py",
    ),
    Mutation(
        "proofs/search/early.py", "if not problem.covariance.knows_psd:", "if False:",
        "tests/covariance/test_indefinite.py::"
        "test_a_large_matrix_that_nobody_has_asked_about_is_not_bounded_on_the_way",
    ),
    Mutation(
        "solving.py", "return outlook.best.objective <= best.objective * (1 + OPTIMAL_GAP)",
        "return True", "tests/proofs/test_early.py",
    ),
    Mutation(
        "records/check.py", "need(settled, \"status: 'optimal'", "need(True, \"status: 'optimal'",
        "tests/proofs/test_early.py",
    ),
    Mutation(
        "solvers/rowsparse/auto.py", "climber.take(outlook.best)", "pass",
        "tests/proofs/test_early.py",
    ),
    Mutation(
        "proofs/check/witnesses.py", "return min(self.most, choice.largest_size)",
        "return choice.largest_size", "tests/proofs/test_along.py",
    ),
    Mutation(
        "proofs/check/witnesses.py", "bound = split.bound(known, everywhere, _at(problem, most))",
        "bound = split.bound(known, everywhere, _at(problem, problem.n_components))",
        "tests/proofs/test_along.py",
    ),
    Mutation(
        "proofs/check/witnesses.py", "for k in range(fewest, self.most + 1):",
        "for k in range(fewest, fewest):", "tests/proofs/test_along.py",
    ),
    Mutation(
        "proofs/check/witnesses.py",
        "possible = is_count(self.most) and fewest <= self.most <= choice.largest_size",
        "possible = True", "tests/proofs/test_along.py",
    ),
    Mutation(
        "proofs/check/bounds.py",
        "ky_fan = positive_eigenvalue_sum(0.5 * (M + M.T), m, weight, F.shape[1]) + m * error",
        "ky_fan = top_eigenvalue_sum(0.5 * (M + M.T), min(m, len(M))) + m * error",
        "tests/proofs/test_along.py",
    ),
    Mutation(
        "proofs/search/along.py", "max(most, k), known", "most, known",
        "tests/proofs/test_along.py",
    ),
    Mutation(
        "choosing_k/band.py", "widest = int(np.argmax(gaps))", "widest = int(np.argmin(gaps))",
        "tests/choosing_k/test_band.py",
    ),
    Mutation(
        "choosing_k/band.py", "while len(found) < MOST_ALONG and", "while",
        "tests/choosing_k/test_band.py",
    ),
    Mutation(
        "solvers/rowsparse/swaps.py",
        "self[np.isin(self.out, support) & ~np.isin(self.into, support)]",
        "self[np.isin(self.out, support)]", "tests/solvers/rowsparse/test_swaps.py",
    ),
    Mutation(
        "solvers/rowsparse/swaps.py", "left = -A[np.ix_(places, places)]",
        "left = A[np.ix_(places, places)]", "tests/solvers/rowsparse/test_swaps.py",
    ),
    Mutation(
        "problem/choice.py", "sums: FloatArray = scores[:, self.forced].sum(axis=1) +",
        "sums: FloatArray =", "tests/test_choice.py",
    ),
    Mutation(
        "problem/rules.py", "np.array([row[self.select(row)].sum() for row in scores])",
        "np.array([self.best_sum(row) for row in scores])", "tests/test_rules.py",
    ),
    Mutation(
        "linalg/eigen.py", "[:, : -m - 1 : -1] * np.float64(factor)",
        "[:, :m] * np.float64(factor)", "tests/linalg/test_eigen.py",
    ),
    Mutation(
        "choosing_k/smallest.py", "most = max(choice.features.size // 2, choice.size)",
        "most = choice.features.size", "tests/choosing_k/test_smallest.py",
    ),
]  # fmt: skip


def is_seen(mutation: Mutation) -> tuple[bool, str]:
    """Break a copy, and return whether the tests fail, and how it went."""
    original = ROOT / "src" / "kspan" / mutation.file
    text = original.read_text()
    if text.count(mutation.line) != 1:
        return False, f"is there {text.count(mutation.line)} times: mend this list"
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        (source / "kspan" / mutation.file).write_text(text.replace(mutation.line, mutation.broken))
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n0", "-p", "no:cacheprovider"]
        found = subprocess.run(
            [*command, *mutation.tests.split()], cwd=ROOT, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"},
            check=False,
        )  # fmt: skip
    seconds = time.perf_counter() - started
    # 1: a test failed; 2 and more would be an error of this script.
    return found.returncode == 1, f"exit code {found.returncode} after {seconds:.0f} s"


def main() -> int:
    """Break the lines whose numbers are given, or all of them."""
    chosen = [int(number) for number in sys.argv[1:]] or range(len(MUTATIONS))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda number: is_seen(MUTATIONS[number]), chosen))
    for number, (seen, how) in zip(chosen, results, strict=True):
        mutation = MUTATIONS[number]
        word = "seen" if seen else "NOT SEEN"
        sys.stdout.write(f"{number:3d} {word:8s} {mutation.file}: {mutation.line} ({how})\n")
    return 0 if all(seen for seen, _ in results) else 1


if __name__ == "__main__":
    sys.exit(main())
