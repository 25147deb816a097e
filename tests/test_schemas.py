"""What ``--json`` writes and a record holds is what ``kspan/schemas`` says, and nothing else."""

import copy
import io
import json
import zipfile
from dataclasses import fields
from importlib.resources import files

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from sklearn.datasets import load_wine
from typer.testing import CliRunner

import kspan
from kspan import Certificate, FitRecord
from kspan.choosing_k import BudgetPath, ComponentPath, SparsityPath, Stability
from kspan.cli import app
from kspan.progress import Status
from kspan.records.form import ESTIMATORS, VERSION
from kspan.storage import FORMAT

SCHEMAS = {
    place.name.removesuffix(".json"): json.loads(place.read_text())
    for place in (files("kspan") / "schemas").iterdir()
}


def strict(text):
    """Read JSON as others do: Python alone knows NaN."""

    def refuse(word):
        raise ValueError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


def check(name, value):
    Draft202012Validator(SCHEMAS[name]).validate(value)


def is_valid(name, value):
    return Draft202012Validator(SCHEMAS[name]).is_valid(value)


def run(*arguments):
    result = CliRunner().invoke(app, [str(word) for word in arguments])
    assert result.exit_code in (0, 1), result.output
    return strict(result.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("schemas")
    wine = load_wine(as_frame=True)
    data, kinds = wine.data.iloc[::4, :6], wine.target_names[wine.target[::4]]
    data.assign(kind=kinds).to_csv(place / "wine.csv", index=False)
    holes = data.mask(np.random.default_rng(0).random(data.shape) < 0.02)
    holes.to_csv(place / "holes.csv", index=False)
    prices = [f"{name},{1 + j % 3}" for j, name in enumerate(data.columns)]
    (place / "prices.csv").write_text("\n".join(prices))
    return place


WINE = ["wine.csv", "--label", "kind", "--scale"]
FITS = {
    "nothing proved": [*WINE, "-k", 3],
    "all features told": [*WINE, "-k", 3, "--criterion", "represent"],
    "a covariance": ["pitprops", "-m", 1, "-k", 4, "--level", "fast"],
    "orthonormal": [*WINE, "-k", 2, "--estimator", "orthonormal", "--certify"],
    "separate": [*WINE, "-k", 2, "--estimator", "separate", "--certify", "--path"],
    "nonnegative": [*WINE, "-k", 2, "--estimator", "nonnegative", "--certify"],
    "values missing": ["holes.csv", "--scale", "-k", 3, "--missing", "mean"],
    "path and stability": [*WINE, "-k", 3, "--path", "--stability", 3, "--certify"],
    "a budget": [
        *WINE, "-k", 4, "--costs", "prices.csv", "--budget", 6, "--report", "budget.html",
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def fits(folder):
    """Return the output of every fit, and its record."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return {
            name: (
                run("fit", *asked, "--json", "--quiet", "--out", f"{name}.kspan"),
                folder / f"{name}.kspan",
            )
            for name, asked in FITS.items()
        }


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_one(name):
    Draft202012Validator.check_schema(SCHEMAS[name])
    assert SCHEMAS[name]["$id"] == f"urn:kspan:{name}"


@pytest.mark.parametrize("name", FITS)
def test_fits_are_as_they_should(fits, name):
    check("fit", fits[name][0])


def members(path):
    """Return the header and the notes of a record."""
    with zipfile.ZipFile(path) as archive:
        header = np.load(io.BytesIO(archive.read("header.npy")))
        return strict(header.tobytes()), strict(archive.read("notes.json"))


@pytest.mark.parametrize("name", FITS)
def test_records_are_as_they_should(fits, name):
    header, notes = members(fits[name][1])
    check("record", header)
    check("record_times", notes)


@pytest.mark.parametrize(
    ("name", "part"),
    [("path and stability", "path"), ("path and stability", "stability"),
     ("separate", "path"), ("a budget", "budget_path")],
)  # fmt: skip
def test_these_records_have_parts(fits, name, part):
    assert getattr(FitRecord.load(fits[name][1]), part) is not None


@pytest.mark.parametrize(
    "more",
    [
        ["-m", 2],
        ["-m", 2, "--no-certify"],
        ["-m", 1, "--criterion", "represent"],
        ["-m", 2, "--estimator", "orthonormal"],
        ["-m", 2, "--estimator", "separate"],
        ["-m", 1, "--estimator", "nonnegative"],
    ],
    ids=lambda more: " ".join(map(str, more)),
)
def test_paths_are_as_they_should(folder, more, monkeypatch):
    monkeypatch.chdir(folder)
    check("path", run("path", *WINE, "-k", "2,3", *more, "--json", "--quiet"))


def test_what_verify_says_is_as_it_should(fits, folder):
    record, data = fits["values missing"][1], folder / "holes.csv"
    found = run("verify", record, data, "--json", "--quiet")
    assert found["holds"]
    check("verify", found)
    found = run("verify", record, "wine", "--json", "--quiet")
    assert not found["holds"]
    check("verify", found)


def test_the_list_of_data_sets_is_as_it_should(monkeypatch):
    monkeypatch.delenv("KSPAN_DATA", raising=False)
    check("datasets", run("datasets", "--json"))


def changed(value):
    """Return copies of an object, each with one field less, more, or of a type that is none."""
    for key in value:
        less, other = copy.deepcopy(value), copy.deepcopy(value)
        del less[key]
        other[key] = [{"what": "this"}] if isinstance(value[key], str | dict) else "three"
        yield f"without {key}", less
        yield f"another {key}", other
    yield "one more", {**value, "more": 1}


def test_a_changed_one_fails(fits, folder, monkeypatch):
    monkeypatch.chdir(folder)
    fit, place = fits["path and stability"]
    header, notes = members(place)
    record = header["value"]["fields"]
    path = run("path", *WINE, "-k", "2,3", "--json", "--quiet")

    def within(whole, *places):
        """Return the whole again and again, with one part of it changed."""
        part = whole
        for step in places:
            part = part[step]
        for what, other in changed(part):
            copied = other
            if places:
                copied = copy.deepcopy(whole)
                inner = copied
                for step in places[:-1]:
                    inner = inner[step]
                inner[places[-1]] = other
            yield what, copied

    cases = [
        ("fit", fit, ()), ("fit", fit, ("selected", 0)), ("fit", fit, ("certificates", 0)),
        ("fit", fit, ("missing",)), ("path", path, ()), ("path", path, ("path", 0)),
        ("path", path, ("suggestion",)), ("record", header, ()),
        ("record", header, ("value", "fields")), ("record_times", notes, ()),
        ("record", header, ("value", "fields", "certificates", 0, "fields")),
        ("record", header, ("value", "fields", "path", "fields")),
        ("record", header, ("value", "fields", "stability", "fields")),
    ]  # fmt: skip
    assert record["certificates"]
    for name, whole, places in cases:
        passed = [what for what, other in within(whole, *places) if is_valid(name, other)]
        assert not passed, f"{name} {places}"


def classes(name):
    """Return the classes that a schema describes, with their fields."""
    for part in SCHEMAS[name]["$defs"].values():
        for kind in part.get("anyOf", [part]):
            properties = kind.get("properties", {})
            if "const" in properties.get("type", {}):
                yield properties["type"]["const"], set(properties["fields"]["properties"])


def test_words_and_fields_are_those_of_the_code():
    described = (FitRecord, Certificate, SparsityPath, ComponentPath, BudgetPath, Stability)
    assert dict(classes("record")) == {
        kind.__name__: {field.name for field in fields(kind)} for kind in described
    }
    record = SCHEMAS["record"]
    assert record["properties"]["format"]["const"] == FORMAT
    of_fit = record["$defs"]["record"]["properties"]["fields"]["properties"]
    assert of_fit["version"]["const"] == VERSION
    for name in ("fit", "path"):
        words = SCHEMAS[name]["$defs"]["status"]["enum"]
        assert sorted(words) == sorted(status.value for status in Status)
    assert sorted(SCHEMAS["fit"]["properties"]["estimator"]["enum"]) == sorted(ESTIMATORS)
    assert all(hasattr(kspan, name) for name in ESTIMATORS)
