"""What can be wrong about options is said before data is read, in the words of the command."""

from collections.abc import Sequence

from kspan.cli.options import Criterion, Estimator


def check_numbers(
    *, share: float | None, time_limit: float | None, n_jobs: int | None = None,
    max_correlation: float | None = None, budget: float | None = None,
) -> None:  # fmt: skip
    """Refuse numbers that cannot be meant."""
    if share is not None and not 0 < share <= 1:
        raise ValueError(f"--share {share:g} must be above 0 and at most 1.")
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"--time-limit {time_limit:g} must be above 0 seconds.")
    if n_jobs == 0:
        raise ValueError("--jobs 0: give a number of processes, or -1 for all cores.")
    if max_correlation is not None and not 0 < max_correlation <= 1:
        raise ValueError(f"--max-correlation {max_correlation:g} must be above 0 and at most 1.")
    if budget is not None and not budget > 0:
        raise ValueError(f"--budget {budget:g} must be above 0.")


def check_solver(solver: str | None, estimator: Estimator, criterion: Criterion) -> None:
    """Refuse a name that no method has."""
    if solver is None:
        return
    from kspan.method_tables import KINDS, method_names

    kind = {
        Estimator.FEATURES: "row-sparse",
        Estimator.NONNEGATIVE: "nonnegative",
        Estimator.ORTHONORMAL: "stiefel",
        Estimator.SEPARATE: "element-sparse",
    }[estimator]
    for_whom = f"--estimator {estimator}"
    if criterion is Criterion.REPRESENT:
        kind, for_whom = "represent", f"--criterion {criterion}"
    names = method_names(KINDS[kind])
    if solver not in names:
        raise ValueError(f"--solver {solver!r} is none of {for_whom}: {', '.join(names)}.")


def check_sizes(
    estimator: Estimator, m: int, ks: Sequence[int] = (), *, total: int | None = None,
    option: str = "-k", n_features: int | None = None, source: str = "",
) -> None:  # fmt: skip
    """Refuse numbers of components and features that do not go together, or not with the data.

    Parameters
    ----------
    estimator : whether components share their features
    m : of components
    ks : of features, as `option` says them
    total : of features of all components together
    n_features, source : of the data, once it is read, and what it is called
    """
    for k in ks:
        if k < 1:
            raise ValueError(f"{option} {k}: every number of features must be 1 or more.")
        if estimator is Estimator.FEATURES and k < m:
            raise ValueError(
                f"{option} {k} must be at least -m {m}: so many components need as many features."
            )
    if total is not None and total < m:
        raise ValueError(f"--total {total} must be at least -m {m}: each component has a feature.")
    if n_features is None:
        return
    for name, number in [("-m", m), *((option, k) for k in ks)]:
        if number > n_features:
            there = "one feature" if n_features == 1 else f"{n_features} features"
            raise ValueError(f"{name} {number} is more than the {there} of {source}.")
