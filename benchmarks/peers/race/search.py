"""Find the penalty, or the number of features of a component, at which k features are used."""

from collections.abc import Callable, Iterator

MOST_FITS = 16


def by_penalty(
    used: Callable[[float], float], start: float, k: int, most: int = MOST_FITS
) -> Iterator[float]:
    """Yield penalties; `used` says how many features the fit at each of them has.

    From the authors' value in steps that grow (100, 10^4, 10^8 times) to either side of k,
    then halving on a log scale until k features are used or `most` fits are spent.

    Examples
    --------
    >>> [round(value, 2) for value in by_penalty(lambda value: int(100 / value), 1.0, 30)]
    [1.0, 100.0, 10.0, 3.16]
    """
    weak = strong = None  # penalties that leave too many features, and few enough
    value, factor = start, 100.0
    for _ in range(most):
        yield value
        count = used(value)
        if count == k:
            return
        if count > k:
            weak = value
        else:
            strong = value
        if weak is not None and strong is not None:
            if abs(strong / weak - 1) < 1e-3:
                return
            value = (weak * strong) ** 0.5
        else:
            value = value * factor if strong is None else value / factor
            factor = min(factor**2, 1e8)


def by_cardinality(used: Callable[[int], float], m: int, k: int) -> Iterator[int]:
    """Yield numbers of features of a component, from k/m up while the union may be within k.

    The union is counted: components that share features leave room for more of them.
    """
    low, high = max(k // m, 1), k
    yield low
    if used(low) > k:
        return
    while high - low > 1:
        middle = (low + high) // 2
        yield middle
        if used(middle) <= k:
            low = middle
        else:
            high = middle
    yield high
