"""What results say of themselves: in a line, in a card of a notebook, as JSON, as a data frame."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine

from kspan import (
    Certificate,
    FeatureSparsePCA,
    FitRecord,
    Panel,
    StiefelSparsePCA,
    budget_path,
    selection_stability,
    sparsity_path,
)
from kspan.cards import MOST_ROWS, at_most
from kspan.cli.show import write_csv
from kspan.io.rows import projected
from kspan.proofs.check.net_bound import NetWitness
from kspan.report import tables, wording
from tests.report import samples

X = load_wine(as_frame=True).data


@pytest.fixture(scope="module")
def paths():
    asked = {"scale": True, "random_state": 0}
    costs = [1.0 + i % 3 for i in range(13)]
    panel = Panel(costs=costs, budget=8.0)
    return {
        "features": sparsity_path(X, 2, **asked),
        "orthonormal": sparsity_path(X, 2, estimator="orthonormal", ks=[1, 3], **asked),
        "separate": sparsity_path(X, 2, estimator="separate", ks=[2, 3], **asked),
        "budgets": budget_path(X, 2, panel=panel, **asked),
    }


class Texts(HTMLParser):
    """The tags, and the texts in them."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.open, self.texts = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.open.append(tag)
        assert {name for name, _ in attrs} <= {"style", "class", "scope"}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def checked(result):
    """Return the texts of a card after looking at its HTML."""
    page = result._repr_html_()
    read = Texts(page)
    assert not read.open
    assert set(read.tags) <= {"div", "table", "thead", "tbody", "tr", "th", "td"}
    assert read.tags.count("tr") <= MOST_ROWS + 6
    assert not re.search(r"(?<!-)color:|background", page)  # of the notebook, light or dark
    return read.texts


def plain(value):
    """Say whether a value has the types of JSON alone."""
    if isinstance(value, dict):
        return all(type(key) is str and plain(item) for key, item in value.items())
    if isinstance(value, list):
        return all(map(plain, value))
    return value is None or type(value) in (bool, int, float, str)


def round_trip(value):
    assert plain(value)
    assert json.loads(json.dumps(value, allow_nan=False)) == value
    return value


def test_a_proved_choice_says_so_first():
    proof = samples.cancer().certificates[0]
    assert proof.verdict == "optimal: no other 12 features explain more"
    assert repr(proof).startswith("<Certificate: optimal: no other 12 features explain more; ")
    assert len(repr(proof)) < 160
    texts = checked(proof)
    assert texts[1] == "Optimal: no other 12 features explain more."


def test_a_gap_is_rounded_upwards():
    proof = samples.wine(certify="fast").certificates[0]
    assert not proof.is_optimal
    share = float(re.fullmatch(r"at most ([\d.]+)% below the best possible", proof.verdict)[1])
    assert proof.gap <= share / 100 <= proof.gap + 0.0011
    assert f"{proof.upper:.6g}" in repr(proof)
    assert checked(proof)[2] == proof.advice


def test_a_bound_that_may_fail_says_how_likely_it_holds():
    net = NetWitness(1.0, np.ones((4, 3)), 100, seed=0, delta=0.01, n_random=1, on_data=False)
    proof = replace(samples.nonnegative("net").certificates[0], witness=net)
    assert proof.confidence < 1
    assert proof.verdict.endswith(f"with probability {proof.confidence:.4g}")


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ({"include": ["ash"], "certify": "exact"}, "no other 5 features that may be chosen"),
        ({"n_features_to_select": 13, "certify": True}, "all features that may be chosen are"),
        ({"criterion": "represent", "certify": "exact"}, "no other 5 features tell more"),
        (
            {"groups": [str(i % 4) for i in range(13)], "max_per_group": 2, "certify": "exact"},
            "no other choice that keeps the rules explains more",
        ),
    ],
)
def test_what_is_compared(made, said):
    asked = {"n_features_to_select": 5, "scale": True, "random_state": 0} | made
    proof = FeatureSparsePCA(2, **asked).fit(X).certificate_
    assert proof.is_optimal
    assert said in proof.verdict


def test_components_with_features_of_their_own():
    pca = StiefelSparsePCA(2, n_nonzero_coefs=3, scale=True, certify="exact", random_state=0)
    assert "no other components of so many features" in pca.fit(X).certificate_.verdict
    nonnegative = samples.nonnegative().certificates[0]
    assert "none with a negative loading" in nonnegative.verdict


def test_a_certificate_as_a_dict():
    proof = samples.cancer().certificates[0]
    found = round_trip(proof.to_dict())
    assert found["upper"] == proof.upper
    assert found["support"] == proof.support.tolist()
    assert found["status"] == "optimal"


@pytest.mark.parametrize("kind", ["features", "orthonormal", "separate", "budgets"])
def test_a_path(paths, kind):
    path = paths[kind]
    assert repr(path).startswith(f"<{type(path).__name__}: ")
    assert len(repr(path)) < 200
    assert "of what plain PCA explains" in checked(path)[1]
    found = round_trip(path.to_dict())
    assert len(found["path"]) == len(path.supports)
    assert found["path"][0]["selected"] == [X.columns[j] for j in path.supports[0]]
    assert len(found["certificates"]) == len(path.certificates)
    frame = path.to_frame()
    pd.testing.assert_frame_equal(frame, pd.DataFrame(path.columns()))
    if kind == "separate":
        assert len(found["path"][0]["components"]) == 2


def test_a_long_path_shows_some_rows_with_both_ends():
    rng = np.random.default_rng(0)
    path = sparsity_path(rng.normal(size=(60, 40)), 1, certify=False, ks=range(1, 41))
    texts = checked(path)
    assert f"{MOST_ROWS} of 40 rows" in texts
    assert {"1", "40"} <= set(texts)


def test_a_record():
    record = samples.cancer()
    assert repr(record).startswith("<FitRecord: 12 of 30 features carry ")
    assert len(repr(record)) < 200
    texts = checked(record)
    assert texts[1].startswith("12 of 30 features carry ")
    assert texts[2] == "The selection: optimal: no other 12 features explain more."
    round_trip(record.to_dict())
    frame = record.to_frame()
    assert frame.index.tolist() == record.selected_names
    np.testing.assert_array_equal(frame[["PC1", "PC2", "PC3"]], record.loadings)


def test_names_of_strangers_stay_texts():
    record = samples.nasty()
    texts = "\n".join(checked(record))
    assert "<script>window.hacked" in texts
    checked(replace(record, source="half \ud800"))
    round_trip(record.to_dict())


@pytest.mark.parametrize("make", [samples.nonnegative, samples.stiefel, samples.wine])
def test_records_of_all_kinds(make):
    record = make()
    assert "Nothing is proved about it." in checked(record) or record.certificates
    assert len(repr(record)) < 400
    round_trip(record.to_dict())


def test_stability():
    found = selection_stability(X, 2, 5, n_resamples=4, scale=True, random_state=0)
    rows = round_trip(found.to_dict())["frequencies"]
    frame = found.to_frame()
    assert [(row["feature"], row["frequency"]) for row in rows] == list(
        frame.itertuples(index=False, name=None)
    )
    assert len(frame) == 13
    assert frame["frequency"].is_monotonic_decreasing


def test_a_saved_certificate_is_the_same(tmp_path):
    proof = samples.cancer().certificates[0]
    proof.save(tmp_path / "proof")
    assert repr(Certificate.load(tmp_path / "proof")) == repr(proof)


def test_without_pandas_a_frame_says_what_to_install(paths, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"to_frame needs pandas: pip install 'kspan\[all\]'"):
        paths["features"].to_frame()


def test_the_command_writes_the_same_dictionary(tmp_path):
    out = tmp_path / "fit.kspan"
    asked = ["fit", "wine", "-m", "2", "-k", "5", "--scale", "--json", "--quiet", "--out", str(out)]
    done = subprocess.run(
        [sys.executable, "-m", "kspan", *asked], capture_output=True, text=True, check=True
    )
    written = json.loads(done.stdout)
    del written["files"]
    assert written == FitRecord.load(out).to_dict()


@pytest.mark.parametrize("share", [0.5, 0.0123, 1e-3, 3.1e-5, 2e-9])
def test_at_most_is_never_less(share):
    assert float(at_most(share)[:-1]) >= 100 * share


def test_zeros_have_no_sign(tmp_path):
    """Of data that varies in one feature alone, every other number is a zero."""
    Z = np.zeros((6, 3))
    Z[:, 1] = [0.0, -1.0, 2.0, 0.0, 5.0, -6.0]
    with pytest.warns(UserWarning, match="rank"):
        pca = FeatureSparsePCA(2, 2, random_state=0).fit(Z)
    record = FitRecord.from_estimator(pca, Z)
    arrays = [
        pca.components_,
        pca.explained_variance_,
        pca.transform(Z),
        pca.panel().transform(Z[:, pca.get_support()]),
    ]
    arrays += [pca.inverse_transform(pca.transform(Z)), record.transform(Z), record.to_frame()]
    for array in arrays:
        values = np.asarray(array)
        assert not np.signbit(values[values == 0]).any()
    signed_zeros = replace(record, loadings=-0.0 * record.loadings)
    write_csv(signed_zeros, tmp_path / "loadings.csv")
    assert "-0.0" not in (tmp_path / "loadings.csv").read_text()
    assert "-0.0" not in json.dumps(signed_zeros.to_dict())
    assert not any(np.signbit(row[2]) for row in tables.csv_rows(signed_zeros))
    assert wording.percent(-1e-17) == "0.0%"
    assert wording.number(-0.0) == "0"
    assert wording.number(-0.25) == "−0.25"


def test_scores_that_vanish_have_no_sign():
    values = projected(np.array([[-1.0, 0.0]]), np.zeros((2, 1)), np.zeros(1), np.float32)
    assert not np.signbit(values).any()
