"""Words: numbers and names as people read them, and the answer in whole sentences.

The sentences need no statistics, and are true to the letter. Shares that somebody may rely on are
rounded to the safe side: "no more than" up, "at least" down.
"""

import html
import math
import re
import textwrap
from typing import Any

import numpy as np

from kspan.arrays import FloatArray
from kspan.cards import at_most, unsigned_zero
from kspan.cards import counted as count
from kspan.choosing_k import SparsityPath
from kspan.figures.appearance import MINUS, one_line, shorten
from kspan.progress import Status
from kspan.proofs.check.certificate import OPTIMAL_GAP, Certificate
from kspan.records import FitRecord
from kspan.records.form import NONNEGATIVE


def number(value: float, digits: int = 6) -> str:
    """Return a number with so many digits that matter."""
    return unsigned_zero(f"{value:.{digits}g}").replace("-", MINUS)


def percent(share: float, decimals: int = 1) -> str:
    """Return a share in percent; what is a little less than all is never shown as all of it."""
    text = f"{100 * share:.{decimals}f}"
    if share < 1 - 1e-9 and float(text) >= 100:
        return f"more than {100 - 10**-decimals:.{decimals}f}%"
    return f"{unsigned_zero(text)}%".replace("-", MINUS)


def at_least(share: float) -> str:
    """Return a share in percent rounded down, so that "at least" stays true."""
    return f"{math.floor(1000 * share) / 10:.1f}%"


def seconds(value: float | None) -> str:
    """Return a time, in minutes and hours when it is long."""
    if value is None:
        return "not recorded"
    if value < 120:
        return f"{value:.2g} s" if value < 10 else f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.1f} h"


def plain(value: Any) -> str:
    """Return a parameter as a line of text."""
    if isinstance(value, dict):
        return ", ".join(f"{key} = {plain(item)}" for key, item in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(plain(item) for item in value) or "none"
    if isinstance(value, str):
        return place(value)
    return repr(value)


def place(text: str) -> str:
    """Return a text as it is, but of an absolute path only the file's name.

    A page is passed on, and folders tell about the machine and its user.
    """
    if re.match(r"[/~\\]|[A-Za-z]:[/\\]", text):
        return re.split(r"[/\\]+", text.rstrip("/\\"))[-1]
    return text


def label(name: str, width: int = 30) -> str:
    """Return a name for a figure, where plotly would read ``<b>`` and ``&lt;`` as HTML."""
    return html.escape(shorten(name, width), quote=False)


def hover(name: str) -> str:
    """Return the whole name for a hover box, in lines."""
    lines = textwrap.wrap(one_line(name)[:600], 50)
    return "<br>".join(html.escape(line, quote=False) for line in lines)


# Features with more distinct signals than this share of their number hardly repeat each other.
ALL_DISTINCT = 0.9

# A larger gap is called a weak proof.
WEAK = 0.25

_EARLY = {
    Status.TIME_LIMIT: "time ran out",
    Status.INTERRUPTED: "it was interrupted",
    Status.STOPPED: "it was told to stop",
}


def title(record: FitRecord) -> str:
    """Return the title of the page."""
    what = "Nonnegative sparse PCA" if record.estimator == NONNEGATIVE else "Sparse PCA"
    return f"{what} of {place(record.source)}" if record.source else f"{what}: a report"


def answer(record: FitRecord) -> list[str]:
    """Return what was found, and what is proved about it."""
    return [found(record), *proved(record)]


# So many names fit into a sentence.
NAMED = 12


def meaning(record: FitRecord) -> list[str]:
    """Return what the answer means: what to measure, which question it is, what to know of data."""
    k, d, m = record.support.size, record.n_features, record.n_components
    said = []
    if 0 < k < d:
        scores = "the score" if m == 1 else f"all {m} scores" if m > 2 else "both scores"
        weights: FloatArray = (record.loadings**2).sum(axis=1)
        order = np.argsort(-weights, kind="stable")[:NAMED]
        names = [shorten(record.selected_names[i], 40) for i in order]
        more = f" and {k - len(names):,} more" if k > len(names) else ""
        needs = f"these {k:,} features" if k > 1 else "this feature"
        need = "needs" if m == 1 else "need"
        said.append(
            f"What it means: {scores} of a new sample {need} {needs} and none of the others: "
            f"{', '.join(names)}{more}."
        )
    return [*said, question(record), *record.remarks()]


def question(record: FitRecord) -> str:
    """Say which question was answered."""
    k, d, m = record.support.size, record.n_features, record.n_components
    if record.tells_all:
        scores = "one score" if m == 1 else f"{m} scores"
        return (
            f"Asked: which {count(k, 'feature')} tell the most about all {count(d, 'feature')}, by "
            f"{scores} made of them?"
        )
    if record.is_row_sparse:
        made = "a principal component" if m == 1 else f"{m} principal components"
        return (
            f"Asked: which {count(k, 'feature')} have the most variance of their own, in {made} "
            "made of them and measured on them?"
        )
    sparse = "component" if m == 1 else f"{m} components"
    return f"Asked: which {sparse} of few features each explain the most variance?"


def found(record: FitRecord) -> str:
    """Say how many features explain, or tell, how much."""
    if record.tells_all:
        return _found_telling(record)
    k, d, m = record.support.size, record.n_features, record.n_components
    who = f"All {count(d, 'feature')}" if k == d else f"{k:,} of {count(d, 'feature')}"
    carry = "carries" if k == 1 else "carry"
    if not record.is_row_sparse:
        who += f", {_each(record)},"
    pca = 0.0 if record.pca_variance is None else float(record.pca_variance.sum())
    if pca > 0:
        share = record.objective / pca
        of = "all" if share >= 1 - 1e-9 else percent(share)
        return f"{who} {carry} {of} of what plain PCA with {count(m, 'component')} explains."
    if record.total_variance <= 0:
        return f"{who} were chosen."
    share = record.objective / record.total_variance
    of = "all" if share >= 1 - 1e-9 else percent(share)
    return f"{who} {carry} {of} of the variance of the data, with {count(m, 'component')}."


def _found_telling(record: FitRecord) -> str:
    """Say how much a choice tells of all features."""
    k, d, m = record.support.size, record.n_features, record.n_components
    scores, tell = ("One score", "tells") if m == 1 else (f"{m} scores", "tell")
    who = f"all {count(d, 'feature')}" if k == d else f"{k:,} of {count(d, 'feature')}"
    share = float(record.explained_variance.sum()) / record.total_variance
    said = f"{scores} made of {who} {tell} {percent(share)} of the variance of all of them"
    if record.pca_share is None:
        return f"{said}."
    return f"{said}; PCA on all of them would tell {percent(record.pca_share)}."


def told(record: FitRecord) -> list[str]:
    """Say what the scores and the chosen features tell of all features, and what is meant by it."""
    k, d, m = record.support.size, record.n_features, record.n_components
    if record.represented_share is None or record.panel_share is None:
        return []
    scores, tell = ("score", "tells") if m == 1 else (f"{m} scores", "tell")
    everything = "the feature" if d == 1 else f"all {count(d, 'feature')}"
    said = [
        f"The {scores} {tell} {percent(record.represented_share)} of the variance of {everything}: "
        f"so much of it a linear regression on the {scores} gives back."
    ]
    if record.pca_share is not None:
        limit = "one score" if m == 1 else f"{m} scores"
        said.append(
            f"PCA on {everything} would tell {percent(record.pca_share)}, the most that {limit} "
            "can."
        )
    if 1 < k < d:
        together = f"All {k:,} chosen features" if k > 2 else "Both chosen features"
        said.append(f"{together}, each as a predictor, tell {percent(record.panel_share)}.")
    if k > 1 and record.effective_features is not None:
        who = "They" if k < d else f"The {k:,} features"
        said.append(f"{who} carry {_distinct(record.effective_features, k)}.")
    on_their_own = record.parameters.get("criterion", "variance") == "variance"
    if on_their_own and record.total_variance > 0 and k < d:
        said.append(_on_their_own(record))
    return said


def told_along(path: SparsityPath) -> str:
    """Say what the columns of a path mean that are about all features."""
    scores = "the score" if path.n_components == 1 else f"the {path.n_components} scores"
    return (
        f"Scores tell, features tell: the share of the variance of all "
        f"{count(path.n_features, 'feature')} that a linear regression on {scores}, or on all "
        "chosen features, gives back."
    )


def _distinct(signals: float, k: int) -> str:
    """Say how many distinct signals features carry, and whether they tell the same."""
    if signals < 1.05:
        same = "both tell the same" if k == 2 else "all tell the same"
    elif signals > ALL_DISTINCT * k:
        same = "they differ" if k == 2 else "hardly any two tell the same"
    else:
        same = "some tell the same" if k > 2 else "they tell much of the same"
    return f"{signals:.1f} of at most {k} distinct signals: {same}"


def _on_their_own(record: FitRecord) -> str:
    """Say what is meant by explained variance, beside what is told of all features."""
    k, m, proofs = record.support.size, record.n_components, record.certificates
    who = "The component explains" if m == 1 else "The components explain"
    own = count(k, "chosen feature")
    said = (
        f"{who} {percent(record.objective / record.total_variance)} of all variance: that is "
        f"variance on the {own} alone"
    )
    plain_choice = record.panel.is_plain and not (
        record.parameters.get("include") or record.parameters.get("exclude")
    )
    proved_best = record.is_row_sparse and proofs and _is_optimal(proofs[0])
    if proved_best and plain_choice and proofs[0].confidence == 1:
        made = "one component" if m == 1 else f"{m} components"
        return f"{said}, and no other {count(k, 'feature')} have more in {made}."
    return f"{said}, which is what is maximised."


def _each(record: FitRecord) -> str:
    """Say how many features the components have."""
    sizes = np.count_nonzero(record.loadings, axis=0)
    few, many = int(sizes.min()), int(sizes.max())
    of = count(many, "feature") if few == many else f"{few} to {many} features"
    return f"in {count(sizes.size, 'component')} with {of}{' each' if sizes.size > 1 else ''}"


def proved(record: FitRecord) -> list[str]:
    """Say what is proved; one sentence, and a second when there is something to add."""
    proofs = record.certificates
    if not proofs:
        early = {status.value: why for status, why in _EARLY.items()}.get(record.status)
        and_early = [f"The search ended early: {early}."] if early else []
        return [_unproved(record), *and_early]
    if any(proof.lower <= 0 for proof in proofs):
        return ["How much better another choice could be is not known: nothing is explained."]
    say = _joint if record.is_joint else _row_sparse if record.is_row_sparse else _one_by_one
    said = [say(record)]
    stopped = [proof.status for proof in proofs if proof.status in _EARLY]
    if stopped and not all(map(_is_optimal, proofs)):
        said.append(f"The proof ended early: {_EARLY[stopped[0]]}. More time may narrow this.")
    elif max(proof.gap for proof in proofs) > WEAK:
        said.append(
            "That leaves much open: it does not mean that the choice is bad, only that this proof "
            "is weak."
        )
    return said


def _unproved(record: FitRecord) -> str:
    if record.is_asked_to_prove:
        return (
            "Whether another choice could explain more is not known: the fit ended before a proof "
            "was begun."
        )
    if record.is_provable:
        return (
            "Whether another choice could explain more is not known: no proof was asked for "
            "(certify=)."
        )
    return (
        "Whether other components could explain more is not known: where a penalty says how sparse "
        "they are there are no proofs."
    )


def _row_sparse(record: FitRecord) -> str:
    proof = record.certificates[0]
    k = count(proof.n_features_to_select, "feature")
    of = f" of {k}"
    if not record.panel.is_plain:
        given = record.parameters["n_features_to_select"] is not None
        of = f"{f' of at most {k}' if given else ''} that keeps the rules"
    if record.support.size == record.n_features:
        return "All are used, so there is nothing to choose."
    asked = record.parameters
    allowed = " that was allowed" if asked.get("include") or asked.get("exclude") else ""
    verb, noise = ("tell", _noise(proof)) if record.tells_all else ("explain", "")
    if _is_optimal(proof):
        claim = f"No other choice{of}{allowed} {verb}s more"
    else:
        more = at_most(_more(proof))
        claim = f"No other choice{of}{allowed} can {verb} more than {more} more"
    return f"{claim}{noise}: {_how_sure(record.certificates)}."


def _noise(proof: Certificate) -> str:
    """Say with what noise of the features a proof counts."""
    if not proof.ridge:
        return ""
    return f", if each is measured with noise of {100 * proof.ridge:.2g}% of its variance"


def _joint(record: FitRecord) -> str:
    proof, more, m = record.certificates[0], "more", record.n_components
    best, rules = _is_optimal(proof), _joint_rules(record)
    if not best:
        more = f"more than {at_most(_more(proof))} more"
    claim = f"No other component{rules} {'explains' if best else 'can explain'} {more}"
    if m > 1:
        add = "add up to" if best else "can add up to"
        claim = f"The variances of no other {m} orthonormal components{rules} {add} {more}"
    return f"{claim}: {_how_sure(record.certificates)}."


def _joint_rules(record: FitRecord) -> str:
    """Say which components are compared, by what was asked for."""
    asked = record.parameters
    each, total = asked.get("n_nonzero_coefs"), asked.get("n_nonzero_total")
    limits = [] if each is None else [each] if isinstance(each, int) else each
    rules = []
    if limits:
        sizes = [f"{limit:,}" for limit in limits]
        if len(set(sizes)) > 1:
            rules.append(f"of at most {', '.join(sizes[:-1])} and {sizes[-1]} features")
        else:
            apiece = " each" if record.n_components > 1 else ""
            rules.append(f"of at most {count(limits[0], 'feature')}{apiece}")
    if total is not None:
        rules.append(f"of at most {count(total, 'feature')} in all")
    if asked.get("disjoint"):
        rules.append("none in two of them")
    if not rules:
        return ""
    return f" {rules[0]}" + "".join(f", {rule}" for rule in rules[1:]) + ("," if rules[1:] else "")


def proof_about(record: FitRecord) -> str:
    """Say which variances the certificates are about, where components share some."""
    if record.is_joint:
        return "the variances of all components, added up although they share some"
    return "the variance of each component in what is left when those before it are taken out"


def _one_by_one(record: FitRecord) -> str:
    proofs, m = record.certificates, record.n_components
    rules = f"at most {count(proofs[0].n_features_to_select, 'feature')}"
    if record.estimator == NONNEGATIVE:
        rules += " and no negative loading"
    more = "more"
    if not all(map(_is_optimal, proofs)):
        more = f"more than {at_most(max(map(_more, proofs)))} more"
    can = "explains" if more == "more" else "can explain"
    if m == 1:
        claim = f"No other component of {rules} {can} {more}"
    elif len(proofs) == m:
        claim = (
            f"Taken one after the other, no component could be exchanged for one of {rules} that "
            f"{can.replace('can explain', 'explains')} {more}"
        )
    else:
        claim = (
            f"For the first {len(proofs)} of {m} components, taken one after the other, none of "
            f"{rules} {can} {more}; for the rest there is no proof"
        )
    return f"{claim}: {_how_sure(proofs)}."


def _is_optimal(proof: Certificate) -> bool:
    return proof.gap <= OPTIMAL_GAP


def _more(proof: Certificate) -> float:
    """Return how much more than this something else may explain, as a share of this."""
    return proof.upper / proof.lower - 1


def _how_sure(proofs: list[Certificate]) -> str:
    """Say "proved", or with which probability; that all of several hold is less sure than each."""
    doubt = sum(1 - proof.confidence for proof in proofs)
    if doubt <= 0:
        return "proved"
    return f"this holds with a probability of at least {at_least(max(1 - doubt, 0.0))}"
