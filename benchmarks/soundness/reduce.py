"""From a failure to the few lines that show it."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.soundness.examine import examine, same_failure
from benchmarks.soundness.joint_routes import JOINT
from benchmarks.soundness.problems import Case
from benchmarks.soundness.routes import HONEST

# Routes that are easy to follow, tried in the place of the one that failed.
SIMPLE_ROUTES = ("fast", "tight", "exact")


@dataclass(frozen=True, eq=False)
class Failure:
    """A claim that is not true: the case, the route and the seed that show it."""

    case: Case
    route: str
    seed: int
    claim: str
    sentence: str

    @property
    def name(self) -> str:
        """What its file is called."""
        text = f"{self.case.kind} {self.route} {self.claim}"
        return "".join(c if c.isalnum() else "-" for c in text)

    @property
    def group(self) -> tuple[str, str]:
        """What is told once: forgeries and faults by what they are, all else by kind too."""
        kind = self.case.kind if self.route in (*HONEST, *JOINT) else ""
        return kind, self.claim.removeprefix("verified ")

    def shows(self) -> bool:
        """Say whether it fails (again)."""
        try:
            return same_failure(examine(self.case, self.route, self.seed), self.claim)
        except Exception:  # a smaller case may make no sense at all
            return False


def reduced(failure: Failure, seconds: float = 10.0) -> Failure:
    """Return a smaller problem that fails in the same way, found within some seconds."""
    end = time.perf_counter() + seconds
    shrinks = True
    while shrinks:
        shrinks = False
        for smaller in smaller_failures(failure):
            if time.perf_counter() > end:
                shrinks = False
                break
            if smaller.shows():
                failure, shrinks = smaller, True
                break
    wrong = examine(failure.case, failure.route, failure.seed).wrong
    sentence = next((text for claim, text in wrong if claim == failure.claim), failure.sentence)
    return replace(failure, sentence=sentence)


def smaller_failures(failure: Failure) -> Iterator[Failure]:
    """Yield failures that would be simpler, the boldest first."""
    if failure.route not in SIMPLE_ROUTES:
        for route in SIMPLE_ROUTES:
            yield replace(failure, route=route)
    for case in smaller_cases(failure.case):
        yield replace(failure, case=case)


def smaller_cases(case: Case) -> Iterator[Case]:
    """Yield cases with fewer rows, columns, rules and digits."""
    data = case.data
    if hasattr(data, "toarray"):
        yield replace(case, data=data.toarray())
        return  # once dense, it is made smaller
    if not case.given:
        yield from _fewer_rows(case)
    if case.d > 1:
        for column in range(case.d):
            yield from _without_column(case, column)
    for changes in (
        {} if case.form == "measured" else {"form": "array"}, {"weights": ()}, {"include": ()},
        {"exclude": ()}, {"scale": False}, {"m": case.m - 1}, {"k": case.k - 1},
    ):  # fmt: skip
        changed = replace(case, **changes)
        if vars(changed) != vars(case) and 1 <= changed.m <= changed.k:
            yield changed
    if data.dtype.kind == "f":
        for digits in (1, 3, 6, 10):
            rounded = _rounded(data, digits)
            if not np.array_equal(rounded, data):
                yield replace(case, data=rounded)


def _fewer_rows(case: Case) -> Iterator[Case]:
    n = len(case.data)
    step = n // 2
    while step >= 1:
        for start in range(0, n, step):
            kept = np.delete(case.data, slice(start, start + step), axis=0)
            weights = tuple(np.delete(case.weights, slice(start, start + step)).tolist())
            if len(kept) >= 2:
                yield replace(case, data=kept, weights=weights)
        if step == 1 or n > 40:  # of many rows only halves and quarters are tried at once
            return
        step //= 2


def _without_column(case: Case, column: int) -> Iterator[Case]:
    def renumbered(features: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(j - (j > column) for j in features if j != column)

    data = np.delete(case.data, column, axis=1)
    data = np.delete(data, column, axis=0) if case.given else data
    include, exclude = renumbered(case.include), renumbered(case.exclude)
    k = min(case.k, data.shape[1] - len(exclude))
    for size in {k, k - 1}:
        if size >= max(1, len(include)):
            yield replace(case, data=data, include=include, exclude=exclude, k=size,
                          m=min(case.m, size))  # fmt: skip


def _rounded(data: np.ndarray, digits: int) -> np.ndarray:
    """Round every number to some digits."""
    shorter: Callable[[Any], float] = lambda x: float(f"{x:.{digits}g}")  # noqa: E731
    return np.vectorize(shorter, otypes=[float])(data).astype(data.dtype)


# --- as a script


def script(failure: Failure) -> str:
    """Return a few lines that show the failure, with exact numbers."""
    case = failure.case
    default = {"scale": False, "given": False, "include": (), "exclude": (), "form": "array",
               "weights": ()}  # fmt: skip
    rules = {name: getattr(case, name) for name in default}
    more = "".join(f", {name}={value!r}" for name, value in rules.items() if value != default[name])
    sparse = hasattr(case.data, "toarray")
    dense = case.data.toarray() if sparse else case.data
    rows = ",\n    ".join(repr(row) for row in dense.tolist()).replace("nan", "np.nan")
    data = f"np.array([\n    {rows},\n], dtype={str(dense.dtype)!r})"
    return f'''"""{failure.sentence}"""

import numpy as np
import scipy.sparse

from benchmarks.soundness.examine import examine
from benchmarks.soundness.problems import Case

data = {f"scipy.sparse.{type(case.data).__name__}({data})" if sparse else data}
case = Case({case.kind!r}, data, m={case.m}, k={case.k}{more})
judgement = examine(case, {failure.route!r}, seed={failure.seed})
print(*dict.fromkeys(sentence for _, sentence in judgement.wrong), sep="\\n")
'''


def save(failure: Failure, folder: Path) -> Path:
    """Write the script of a failure, and return where."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("*\n")  # these are no part of the repository
    place = folder / f"{failure.name}.py"
    place.write_text(script(failure))
    return place
