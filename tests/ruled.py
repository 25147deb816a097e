"""Random rules about features, and which supports keep them, written out."""

from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from kspan.problem import RuledChoice


@st.composite
def rules(draw, most=7, least=1):
    """Arguments of `RuledChoice.of`, some of which leave nothing to choose."""
    d = draw(st.integers(max(2, least), most))
    state = draw(st.lists(st.sampled_from(["free"] * 4 + ["in", "out"]), min_size=d, max_size=d))
    given = {
        "n_features": d,
        "size": draw(st.integers(least, d) | st.none()),
        "include": [i for i in range(d) if state[i] == "in"],
        "exclude": [i for i in range(d) if state[i] == "out"],
        "least": least,
    }
    kinds = draw(st.sets(st.sampled_from(["caps", "together", "costs", "conflicts"])))
    if kinds & {"caps", "together"}:
        label = st.sampled_from(["a", "b", "c", None])
        given["groups"] = draw(st.lists(label, min_size=d, max_size=d))
        if "together" in kinds:
            given["together"] = True
            given["n_groups"] = draw(st.integers(1, d) | st.none())
        else:
            given["max_per_group"] = draw(st.integers(0, 3))
    if "costs" in kinds:
        cost = st.sampled_from([0.0, 0.1, 0.2, 0.3, 1.0, 2.5])
        given["costs"] = draw(st.lists(cost, min_size=d, max_size=d))
        given["budget"] = draw(st.sampled_from([0.0, 0.3, 0.6, 1.5, 4.0]))
    if "conflicts" in kinds:
        pairs = list(combinations(range(d), 2))
        chosen = draw(st.lists(st.sampled_from(pairs), max_size=2 * d, unique=True))
        given["conflicts"] = np.array(chosen, dtype=np.intp).reshape(-1, 2)
    return given


def keeps(given, support):
    """Whether a support keeps the rules, by their words."""
    d, chosen = given["n_features"], set(support)
    size = d if given["size"] is None else given["size"]
    if not max(given["least"], 1) <= len(chosen) <= size:
        return False
    if not set(given["include"]) <= chosen or chosen & set(given["exclude"]):
        return False
    groups = given.get("groups")
    if groups is not None:
        members = {g: {i for i in range(d) if groups[i] == g} for g in set(groups) - {None}}
        if given.get("together"):
            if any(chosen & own and not own <= chosen for own in members.values()):
                return False
            used = sum(bool(chosen & own) for own in members.values())
            used += sum(groups[i] is None for i in chosen)
            if given["n_groups"] is not None and used > given["n_groups"]:
                return False
        elif any(len(chosen & own) > given["max_per_group"] for own in members.values()):
            return False
    if "costs" in given and sum(given["costs"][i] for i in chosen) > given["budget"] + 1e-9:
        return False
    pairs = given.get("conflicts", np.empty((0, 2), dtype=int))
    return not any(i in chosen and j in chosen for i, j in pairs.tolist())


def supports(given):
    """All supports that keep the rules."""
    d = given["n_features"]
    every = (S for size in range(1, d + 1) for S in combinations(range(d), size))
    return [np.array(S) for S in every if keeps(given, S)]


def choice_of(given):
    """The choice, or None when it says that there is none."""
    try:
        return RuledChoice.of(**given)
    except ValueError:
        return None
