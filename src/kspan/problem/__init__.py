"""What is asked, what is allowed, and what is answered."""

from kspan.problem.choice import Choice, HasChoice, require_count
from kspan.problem.patterns import Patterns
from kspan.problem.problems import (
    ElementSparseProblem,
    Look,
    NonnegativeProblem,
    RowSparseProblem,
    StiefelProblem,
    default_nonzero_coefs,
    explained_at_least,
)
from kspan.problem.represent import RepresentProblem
from kspan.problem.rules import RuledChoice
from kspan.problem.shared_features import SharedFeatures
from kspan.problem.shares import VarianceShares, shares_along, variance_shares
from kspan.problem.solution import (
    Candidate,
    LoadingsSolution,
    Outlook,
    Solution,
    adjusted_variances,
)

__all__ = [
    "Candidate",
    "Choice",
    "ElementSparseProblem",
    "HasChoice",
    "LoadingsSolution",
    "Look",
    "NonnegativeProblem",
    "Outlook",
    "Patterns",
    "RepresentProblem",
    "RowSparseProblem",
    "RuledChoice",
    "SharedFeatures",
    "Solution",
    "StiefelProblem",
    "VarianceShares",
    "adjusted_variances",
    "default_nonzero_coefs",
    "explained_at_least",
    "require_count",
    "shares_along",
    "variance_shares",
]
