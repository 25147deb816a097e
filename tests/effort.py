"""How hard property tests try."""

import os

from hypothesis import settings

# Four tenths of the examples in the fast tests; KSPAN_EXAMPLES=1 has them all, 10 ten times those.
EFFORT = float(os.environ.get("KSPAN_EXAMPLES", "0.4"))


def examples(count: int) -> settings:
    """Return the settings of a test that looks at so many examples, with full effort."""
    return settings(max_examples=max(round(count * EFFORT), 5))
