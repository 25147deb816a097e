"""What the page says is true to the record, and nothing in a record breaks the page."""

import base64
import html
import json
import re
import sys
import zlib
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import plotly.graph_objects
import pytest
from plotly.offline import get_plotlyjs
from sklearn.datasets import load_wine

import kspan
from kspan import FeatureSparsePCA, StiefelSparsePCA
from kspan.figures import ScreeFigure
from kspan.figures.appearance import DARK, LIGHT
from kspan.progress import Status
from kspan.proofs.check.net_bound import NetWitness
from kspan.records import FitRecord
from kspan.records.collect import plain_parameters
from kspan.records.form import ESTIMATORS
from kspan.report import page, render, require_extras, tables, wording, write_report
from kspan.report.charts import charts, variances
from kspan.report.tables import asked as asked_table
from kspan.report.wording import (
    answer,
    at_least,
    at_most,
    hover,
    label,
    meaning,
    percent,
    plain,
    proved,
    title,
)
from tests.report import samples

PLOTLY = get_plotlyjs()

EVERY_KIND = {
    "cancer": samples.cancer,
    "no certificate": samples.wine,
    "nasty names": samples.nasty,
    "nonnegative": samples.nonnegative,
    "stiefel": samples.stiefel,
    "element": samples.element,
    "covariance": samples.of_covariance,
    "orthonormal path": lambda: samples.with_own_path("orthonormal"),
    "separate path": lambda: samples.with_own_path("separate"),
    "no PCA": lambda: replace(samples.wine(), pca_variance=None),
    "no history": lambda: replace(samples.wine(), history=np.empty(0)),
}


@pytest.fixture(params=EVERY_KIND)
def record(request: pytest.FixtureRequest) -> FitRecord:
    return EVERY_KIND[request.param]()


class Reader(HTMLParser):
    """Collects elements, ids, attributes and texts."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text.replace(PLOTLY, ""))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def numbers_of(text: str) -> dict:
    inside = re.search(r'<script type="application/json" id="numbers">(.*?)</script>', text, re.S)
    assert inside is not None
    return json.loads(inside[1])


# --- sentences


def with_proof(record: FitRecord, **changed: object) -> FitRecord:
    return replace(
        record, certificates=[replace(proof, digest="", **changed) for proof in record.certificates]
    )


def test_what_it_means_comes_after_result_and_proof() -> None:
    needs, question = meaning(samples.cancer())
    assert needs.startswith(
        "What it means: all 3 scores of a new sample need these 12 features and none of the others:"
    )
    assert all(name in needs for name in samples.cancer().selected_names)
    assert question == (
        "Asked: which 12 features have the most variance of their own, in 3 principal components "
        "made of them and measured on them?"
    )
    assert meaning(samples.stiefel())[1].startswith("Asked: which ")
    assert meaning(samples.nasty())[0].startswith("Asked: which ")  # with all features
    text = render(samples.cancer())
    places = [text.index(f'id="{name}"') for name in ("title", "found", "good", "asked", "made")]
    assert places == sorted(places)
    assert text.index(answer(samples.cancer())[0]) < text.index("What it means") < places[1]


def test_parameters_that_were_not_set_are_not_shown() -> None:
    names = [name for name, _ in asked_table(samples.cancer())]
    assert {"n_components", "n_features_to_select", "scale", "certify"} <= set(names)
    assert not {"budget", "groups", "psd", "solver", "criterion", "missing"} & set(names)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_defaults_are_those_of_the_estimators(name: str) -> None:
    estimator = getattr(kspan, name)()
    record = replace(
        samples.wine(), estimator=name, parameters=plain_parameters(estimator, 13)
    )  # fmt: skip
    assert record.set_parameters == {"n_components": 2}


def test_variances_of_many_decades_have_a_logarithmic_scale() -> None:
    record = samples.wine()
    axis = variances(ScreeFigure.from_record(record)).layout["yaxis"]
    assert "type" not in axis
    wide = replace(record, explained_variance=np.array([3.0, 1e-4]))
    chart = variances(ScreeFigure.from_record(wide))
    assert chart.layout["yaxis"]["type"] == "log"
    assert "logarithmic" in chart.caption


def test_the_page_is_less_than_half_of_plotly_and_unpacks_to_it() -> None:
    text = render(samples.wine())
    inside = re.search(r'<script type="text/plain" id="plotly">([\w+/=]*)</script>', text)
    assert inside is not None
    assert zlib.decompress(base64.b64decode(inside[1])).decode() == PLOTLY
    assert len(text) < 0.5 * len(PLOTLY)


def test_features_that_tell_all_others() -> None:
    wine = load_wine(as_frame=True).data
    model = FeatureSparsePCA(
        2, 3, scale=True, criterion="represent", certify="exact", random_state=0
    ).fit(wine)
    record = FitRecord.from_estimator(model, wine)
    assert answer(record) == [
        "2 scores made of 3 of 13 features tell 49.6% of the variance of all of them; PCA on all "
        "of them would tell 55.4%.",
        "No other choice of 3 features tells more, if each is measured with noise of 0.001% of its "
        "variance: proved.",
    ]
    assert "told, 89.5%" in render(record)
    assert meaning(record)[1] == (
        "Asked: which 3 features tell the most about all 13 features, by 2 scores made of them?"
    )
    record.verify(wine)


def test_optimal() -> None:
    assert answer(samples.cancer()) == [
        "12 of 30 features carry 53.5% of what plain PCA with 3 components explains.",
        "No other choice of 12 features explains more: proved.",
    ]


def test_a_gap_is_rounded_up() -> None:
    record = samples.wine(certify="fast")
    proof = record.certificates[0]
    record = with_proof(record, upper=proof.lower * 1.00281)
    assert answer(record)[1:] == [
        "No other choice of 5 features can explain more than 0.3% more: proved."
    ]


def test_a_weak_proof_is_called_weak() -> None:
    record = samples.wine(certify="fast")
    said = answer(with_proof(record, upper=record.certificates[0].lower * 2))
    assert "more than 100.0% more: proved." in said[1]
    assert "does not mean that the choice is bad" in said[2]


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (Status.TIME_LIMIT, "time ran out"),
        (Status.INTERRUPTED, "it was interrupted"),
        (Status.STOPPED, "it was told to stop"),
    ],
)
def test_a_proof_that_ended_early(status: Status, why: str) -> None:
    said = answer(with_proof(samples.wine(certify="fast"), status=status))
    assert "can explain more than" in said[1]
    assert said[2] == f"The proof ended early: {why}. More time may narrow this."


def test_forced_features_limit_the_claim() -> None:
    said = answer(samples.wine(certify="exact", exclude=(0,)))
    assert said[1] == "No other choice of 5 features that was allowed explains more: proved."


def test_no_certificate() -> None:
    said = answer(samples.wine())
    assert "is not known: no proof was asked for" in said[1]
    assert "proved" not in " ".join(said)
    stopped = answer(replace(samples.wine(), status="time limit"))
    assert stopped[2] == "The search ended early: time ran out."


def test_an_estimator_without_certificates() -> None:
    said = answer(samples.stiefel())
    assert "components with 4 features each, carry" in said[0]
    assert "no proof was asked for" in said[1]


def test_components_of_either_sign() -> None:
    said = answer(samples.element())
    assert "components with 4 features each, carry" in said[0]
    assert said[1] == (
        "Taken one after the other, no component could be exchanged for one of at most 4 features "
        "that explains more: proved."
    )
    assert "no proof was asked for" in answer(samples.element(certify=False))[1]


def test_nonnegative() -> None:
    record = samples.nonnegative()
    claim = (
        "Taken one after the other, no component could be exchanged for one of at most 3 features "
        "and no negative loading that explains more"
    )
    assert answer(record)[1] == f"{claim}: proved."
    loose = replace(
        record.certificates[1], upper=record.certificates[1].lower * 1.021, digest="",
        status=Status.BOUNDED,
    )  # fmt: skip
    said = answer(replace(record, certificates=[record.certificates[0], loose]))
    assert said[1] == f"{claim} than 2.1% more: proved."
    said = answer(replace(record, certificates=record.certificates[:1]))
    assert said[1].startswith("For the first 1 of 2 components")
    assert "for the rest there is no proof" in said[1]
    single = answer(samples.nonnegative(m=1))
    assert single[1].startswith("No other component of at most 3 features and no negative loading")
    assert "no proof was asked for" in answer(samples.nonnegative(certify=False))[1]


def test_confidence_below_one_is_not_called_proved() -> None:
    record = samples.nonnegative(certify="net")
    net = NetWitness(1.0, np.ones((4, 3)), 100, seed=0, delta=0.01, n_random=1, on_data=False)
    record = with_proof(record, witness=net)
    said = " ".join(answer(record))
    assert "this holds with a probability of at least 98.0%" in said  # two may fail
    assert "proved" not in said


def test_no_pca_variance() -> None:
    said = answer(replace(samples.wine(), pca_variance=None))
    assert re.fullmatch(
        r"5 of 13 features carry \d+\.\d% of the variance of the data, with 2 components\.", said[0]
    )


def test_all_features() -> None:
    assert answer(samples.nasty()) == [
        "All 13 features carry all of what plain PCA with 2 components explains.",
        "All are used, so there is nothing to choose.",
    ]


def test_titles() -> None:
    assert title(samples.cancer()) == "Sparse PCA of breast_cancer.csv"
    assert title(samples.of_covariance()) == "Sparse PCA: a report"
    assert title(samples.nonnegative()) == "Nonnegative sparse PCA of wine"


def test_wording() -> None:
    assert percent(0.99999) == "more than 99.9%"
    assert (percent(1.0), percent(0.9236)) == ("100.0%", "92.4%")
    assert (at_most(0.0021), at_most(0.00001234), at_least(0.9999)) == ("0.3%", "0.002%", "99.9%")
    assert plain({"checkpoint": "/home/me/search.npz", "k_grid": [1, 2]}) == (
        "checkpoint = search.npz, k_grid = 1, 2"
    )
    assert plain("C:\\Users\\me\\search.npz") == "search.npz"
    assert [plain(text) for text in ("~/a/b.csv", "data/b.csv", "low-rank")] == [
        "b.csv", "data/b.csv", "low-rank",
    ]  # fmt: skip
    assert label("<b>&amp;</b>") == "&lt;b&gt;&amp;amp;&lt;/b&gt;"
    assert all(len(line) <= 50 for line in hover("x" * 700).split("<br>"))


# --- the page


def test_every_kind_of_record_makes_a_page(record: FitRecord) -> None:
    text = render(record)
    reader = Reader(text)
    ids = [attrs["id"] for _, attrs in reader.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    for _, attrs in reader.tags:
        assert (attrs.get("aria-labelledby") or "title") in ids
        assert not any(name.startswith("on") for name in attrs)
    levels = [int(tag[1]) for tag, _ in reader.tags if tag in ("h1", "h2", "h3", "h4")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    said = " ".join(reader.texts)
    assert "nan" not in said.lower().split()
    assert all(sentence in said for sentence in answer(record))
    for word in ("kspan verify RECORD DATA", record.fingerprint, record.estimator, record.solver):
        assert word in said
    for proof in record.certificates:
        assert proof.digest in said
        assert proof.advice in said


def test_nothing_is_fetched(record: FitRecord) -> None:
    reader = Reader(render(record))
    for tag, attrs in reader.tags:
        assert "src" not in attrs
        assert tag not in ("link", "img", "iframe", "object", "base")
        assert (attrs.get("href") or "#").startswith("#")
    policy = next(a["content"] for _, a in reader.tags if "http-equiv" in a)
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy
    # Plotly is last but one; what is ours has no address in it, but for the names' own.
    ours = Path(page.__file__).parent
    for name in ("template.html", "style.css", "script.js"):
        text = (ours / name).read_text("utf-8")
        assert not re.search(r"https?://|@import|url\(", text), name


def test_nothing_about_this_machine() -> None:
    text = render(replace(samples.cancer(), source=str(Path.home() / "folder" / "table.csv")))
    assert "Sparse PCA of table.csv" in text
    for word in (str(Path.home()), str(Path.cwd()), sys.prefix):
        assert len(word) < 4 or word not in text


def test_names_are_escaped() -> None:
    record = samples.nasty()
    text = render(record)
    reader = Reader(text)
    assert [tag for tag, _ in reader.tags].count("script") == 3
    assert {tag for tag, _ in reader.tags} & {"b", "img"} == set()
    assert {attrs["href"] for tag, attrs in reader.tags if tag == "a"} == {
        "#main", "#asked", "#found", "#good", "#figures", "#made",
    }  # fmt: skip
    numbers = numbers_of(text)
    assert sorted(row[0] for row in numbers["rows"]) == sorted(samples.NASTY)
    before, after = text.split('id="numbers">')
    assert "<" not in after.split("</script>")[0]
    assert "\u2028" not in after.split("</script>")[0]
    assert "<script>window" not in before

    def strings(value):
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, list):
            return [text for item in value for text in strings(item)]
        return [value] if isinstance(value, str) else []

    for text in strings(numbers["charts"]):
        assert "<" not in re.sub(r"<br>|<extra>[\w ,]*</extra>", "", text)


def test_the_table_has_the_numbers_of_the_record() -> None:
    record = samples.cancer()
    numbers = numbers_of(render(record))
    assert numbers["columns"] == [
        "feature", "index", "PC1", "PC2", "PC3", "contribution", "frequency",
    ]  # fmt: skip
    rows = {row[0]: row for row in numbers["rows"]}
    assert sum(row[5] for row in numbers["rows"]) == pytest.approx(1)
    for name, place, loadings in zip(
        record.selected_names, record.support, record.loadings, strict=True
    ):
        assert rows[name][1:5] == [place, *loadings]
        assert rows[name][6] == record.stability.frequencies[place]


def test_figures_are_what_plotly_takes(record: FitRecord) -> None:
    def painted(value, key=""):
        if isinstance(value, dict):
            return {name: painted(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [painted(item) for item in value]
        if key == "colorscale":
            return "Cividis"
        return "#000000" if key.endswith("color") else value

    for chart in charts(record):
        for layout in (chart.layout, chart.layout | chart.narrow):
            plotly.graph_objects.Figure(painted(chart.data), painted(layout))


def test_each_figure_is_there_when_its_numbers_are() -> None:
    def keys(record):
        return [chart.key for chart in charts(record)]

    assert keys(samples.cancer()) == [
        "loadings", "variance", "path", "biplot", "gap", "stability", "steps",
    ]  # fmt: skip
    bare = replace(samples.wine(), scores=None, history=np.empty(0))
    assert keys(bare) == ["loadings", "variance"]
    assert "gap" in keys(samples.nonnegative())
    assert "biplot" in keys(samples.nonnegative(m=1))


def test_the_same_record_gives_the_same_bytes(tmp_path: Path) -> None:
    record = samples.cancer()
    record.save(tmp_path / "fit.kspan")
    assert render(record) == render(FitRecord.load(tmp_path / "fit.kspan"))


def test_a_large_record(rng: np.random.Generator) -> None:
    k, d, m = 2500, 100_000, 10
    W = np.linalg.qr(rng.normal(size=(k, m)))[0]
    record = replace(
        samples.of_covariance(), n_features=d, support=np.arange(k) * 40, loadings=W,
        explained_variance=np.ones(m), pca_variance=np.full(m, 2.0), total_variance=100.0,
        objective=10.0,
    )  # fmt: skip
    text = render(record)
    assert "2,500 of 100,000 features carry 50.0%" in text
    assert "The 2000 largest contributions are shown; the CSV has all 2500." in text
    assert text.count("<tr data-row=") == 2000
    assert len(numbers_of(text)["rows"]) == k
    assert len(numbers_of(text)["charts"][0]["data"][0]["z"]) == 40
    assert "Only the 40 largest of 2,500 are shown" in text
    assert len(text) < 8e6


def test_half_a_character_in_a_name(tmp_path: Path) -> None:
    record = samples.wine()
    record = replace(record, feature_names=["\ud800 broken", *record.feature_names[1:]])
    write_report(record, tmp_path / "fit.html")
    assert "? broken" in (tmp_path / "fit.html").read_text("utf-8")


# --- the file, the extra


def test_write_is_atomic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "fit.html"
    target.write_text("old")
    with monkeypatch.context() as patch:
        patch.setattr(page, "render", _fails)
        with pytest.raises(RuntimeError, match="no page"):
            write_report(samples.wine(), target)
    assert target.read_text() == "old"
    write_report(samples.wine(), target)
    assert target.read_text("utf-8") == render(samples.wine())
    assert [file.name for file in tmp_path.iterdir()] == ["fit.html"]
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write_report(samples.wine(), tmp_path / "nowhere" / "fit.html")


def _fails(record: FitRecord) -> str:
    raise RuntimeError("no page")


@pytest.mark.parametrize(("module", "name"), [("jinja2", "jinja2"), ("plotly.offline", "plotly")])
def test_a_missing_extra_names_itself(
    module: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    wanted = re.escape(f'A report needs {name}: pip install "kspan[report]"')
    with pytest.raises(ImportError, match=wanted):
        require_extras()
    with pytest.raises(ImportError, match=wanted):
        render(samples.wine())


# --- colours


def _luminance(colour: str) -> float:
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_can_be_told_apart(theme) -> None:
    for text in ("ink", "muted", "accent"):
        for ground in ("paper", "sheet"):
            assert _contrast(theme[text], theme[ground]) >= 4.5
    for ground in ("negative", "zero", "positive"):  # numbers in the heat map
        assert _contrast(theme["ink"], theme[ground]) >= 4.5
    for mark in ("edge", "focus", "other"):  # boxes, marks
        assert _contrast(theme[mark], theme["paper"]) >= 3


def test_the_page_has_the_colours_of_the_palette() -> None:
    text = render(samples.wine())
    for theme, count in ((LIGHT, 1), (DARK, 2)):  # the system's dark is the button's dark
        for name, colour in theme.items():
            assert text.count(f"--{name}:{colour};") == count
    own = {path.name: path.read_text("utf-8") for path in Path(page.__file__).parent.iterdir()
           if path.suffix in (".css", ".js")}  # fmt: skip
    tokens = re.findall(r"var\(--(\w+)\)", own["style.css"])
    tokens += re.findall(r'colour\("(\w+)"\)', own["script.js"])
    assert set(tokens) <= {*LIGHT, "sans", "serif", "mono"}
    assert not re.search(r"#[0-9a-fA-F]{6}", "".join(own.values()))


def orthonormal(**asked):
    """A record of orthonormal components, and what its page says about them."""
    X = load_wine(as_frame=True).data
    pca = StiefelSparsePCA(scale=True, certify="fast", random_state=0, **asked).fit(X)
    return FitRecord.from_estimator(pca, X, source="wine")


@pytest.mark.parametrize(
    ("asked", "rules"),
    [
        ({"n_nonzero_coefs": 4}, " of at most 4 features each "),
        ({"n_nonzero_coefs": [4, 3]}, " of at most 4 and 3 features "),
        ({"n_nonzero_total": 7}, " of at most 7 features in all "),
        (
            {"n_nonzero_coefs": 4, "n_nonzero_total": 6, "disjoint": True},
            " of at most 4 features each, of at most 6 features in all, none in two of them, ",
        ),
    ],
)
def test_a_joint_claim_names_all_rules(asked, rules):
    """Without one of them it would be about more components, and false."""
    record = orthonormal(**asked)
    said = proved(record)[0]
    more = at_most(record.certificates[0].upper / record.certificates[0].lower - 1)
    who = f"The variances of no other 2 orthonormal components{rules}"
    assert said == f"{who}can add up to more than {more} more: proved."
    assert tables.proof_columns(record) == ["value"]
    assert tables.proof_rows(record)[0][2] == "variances of all components added up, tr(V'AV)"
    text = render(record)
    assert "The proof is about other numbers: the variances of all components" in text


def test_a_single_orthonormal_component_explains_what_is_proved():
    record = orthonormal(n_components=1, n_nonzero_coefs=13)
    assert proved(record) == ["No other component of at most 13 features explains more: proved."]
    assert "The proof is about other numbers" not in render(record)


@pytest.mark.parametrize("kind", ["orthonormal", "separate", "nonnegative"])
def test_a_path_of_features_of_their_own_claims_what_is_proved(kind):
    record = samples.with_own_path(kind)
    (chart,) = (chart for chart in charts(record) if chart.key == "path")
    assert chart.layout["xaxis"]["title"]["text"] == "number of features in each component k"
    drawn = [curve["name"] for curve in chart.data]
    rows, told = tables.path_rows(record), ["scores tell", "features tell"]
    if kind == "orthonormal":
        assert tables.path_columns(record) == ["k", "found", "limit", "gap", *told]
        assert drawn[:3] == ["the best possible lies here", "proved limit", "found"]
    else:
        assert tables.path_columns(record) == ["k", "found", "gap of PC1", "gap of PC2", *told]
        assert drawn[0] == "found"
        assert "nothing is proved about what they explain together" in chart.caption
    assert [row[0] for row in rows] == ["2", "4", "7"]
    assert all(len(row) == 6 for row in rows)
    assert [row[-2:] for row in rows] == [
        [percent(share), percent(panel)]
        for share, panel in zip(record.path.represented, record.path.panel, strict=True)
    ]
    note = "that a linear regression on the 2 scores, or on all chosen features, gives back."
    assert note in render(record)
    old = replace(record, path=replace(record.path, represented=None, panel=None))
    assert all(len(row) == 4 for row in tables.path_rows(old))
    assert note not in render(old)


def test_what_is_told_of_all_features_is_explained() -> None:
    record = replace(
        samples.wine(), n_features=2308, feature_names=None, represented_share=0.38,
        panel_share=0.52, effective_features=3.1, total_variance=400.0, objective=6.4,
        pca_variance=np.array([100.0, 64.0]),
    )  # fmt: skip
    said = [
        "The 2 scores tell 38.0% of the variance of all 2,308 features: so much of it a linear "
        "regression on the 2 scores gives back.",
        "PCA on all 2,308 features would tell 41.0%, the most that 2 scores can.",
        "All 5 chosen features, each as a predictor, tell 52.0%.",
        "They carry 3.1 of at most 5 distinct signals: some tell the same.",
        "The components explain 1.6% of all variance: that is variance on the 5 chosen features "
        "alone, which is what is maximised.",
    ]
    assert wording.told(record) == said
    assert wording.told(replace(record, pca_variance=None)) == [said[0], *said[2:]]
    assert wording.told(replace(record, represented_share=None)) == []
    page = html.unescape(render(record))
    assert all(sentence in page for sentence in said)
    assert "What it tells of all features" in page


def test_only_what_is_proved_is_called_the_most() -> None:
    best = "and no other 5 features have more in 2 components."
    rest = "which is what is maximised."
    proved = samples.wine(certify="exact")
    assert wording.told(proved)[-1].endswith(best)
    assert wording.told(samples.wine())[-1].endswith(rest)
    forced = samples.wine(certify="exact", exclude=(0,))
    assert wording.told(forced)[-1].endswith(rest)
    assert wording.told(samples.stiefel())[-1].endswith(rest)
    everything = wording.told(samples.wine(n_features_to_select=13))
    assert not any("alone" in line or "predictor" in line for line in everything)
    assert everything[-1].startswith("The 13 features carry")


@pytest.mark.parametrize(
    ("signals", "k", "same"),
    [
        (1.0, 2, "both tell the same"),
        (1.4, 2, "they tell much of the same"),
        (1.95, 2, "they differ"),
        (1.02, 8, "all tell the same"),
        (5.1, 8, "some tell the same"),
        (7.9, 8, "hardly any two tell the same"),
    ],
)
def test_distinct_signals(signals, k, same) -> None:
    assert wording._distinct(signals, k) == f"{signals:.1f} of at most {k} distinct signals: {same}"
