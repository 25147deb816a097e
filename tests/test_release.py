"""What a release is made of says the same everywhere, and leaves nothing out."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import kspan

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PAGES = [*ROOT.glob("*.md"), ROOT / "CITATION.cff", *(ROOT / "docs").glob("*.*")]
PAGES += [*(ROOT / "recipe").iterdir(), *(ROOT / ".github").rglob("*.yml")]


def read(name):
    return yaml.safe_load((ROOT / name).read_text())


def spaced(dependency):
    """``numpy>=1.26`` as a recipe writes it."""
    return re.sub(r"\s*([<>=!~].*)", r" \1", dependency)


def test_the_version_is_the_same_everywhere():
    newest = re.search(r"^## \[([^\]]+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1]
    assert newest in (kspan.__version__, "Unreleased")
    assert read("CITATION.cff")["version"] == kspan.__version__
    assert read("recipe/recipe.yaml")["context"]["version"] == kspan.__version__


def test_the_recipe_needs_what_the_package_needs():
    recipe, project = read("recipe/recipe.yaml"), PROJECT["project"]
    python = f"python {project['requires-python']}"
    needs = recipe["requirements"]
    assert needs["run"] == [python, *map(spaced, project["dependencies"])]
    assert needs["host"] == [python, "pip", *map(spaced, PROJECT["build-system"]["requires"])]
    scripts = [f"{name} = {place}" for name, place in project["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == scripts
    assert recipe["build"]["noarch"] == "python"
    assert recipe["about"]["license"] == project["license"]


def test_every_python_that_is_named_is_checked():
    named = [
        line.rpartition(" ")[2]
        for line in PROJECT["project"]["classifiers"]
        if re.search(r":: 3\.\d+$", line)
    ]
    job = read(".github/workflows/ci.yml")["jobs"]["check"]
    assert job["strategy"]["matrix"]["python"] == named
    assert job["steps"][-1] == {"run": ".ci/run"}
    assert (ROOT / ".ci" / "run").exists()
    assert f">={named[0]}" == PROJECT["project"]["requires-python"]


def test_a_release_runs_what_is_there():
    steps = [
        step.get("run", "")
        for job in read(".github/workflows/release.yml")["jobs"].values()
        for step in job["steps"]
    ]
    tests = re.findall(r"tests/[\w/]+(?:\.py)?", " ".join(steps))
    assert tests
    assert all((ROOT / test).exists() for test in tests)


def test_the_sdist_holds_all_there_is():
    include = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert all((ROOT / name.strip("/")).exists() for name in include)
    # What the build adds itself, what only a checkout has, and what tools and runs leave behind.
    own = {"LICENSE", "README.md", "pyproject.toml", "PKG-INFO", ".git", ".gitignore"}
    left = {".venv", "dist", "build", ".pytest_cache", ".mypy_cache", ".ruff_cache",
            ".hypothesis", ".import_linter_cache", "__pycache__"}  # fmt: skip
    there = {place.name for place in ROOT.iterdir()} - own - left
    assert there <= {name.strip("/") for name in include}


def test_placeholders_are_in_one_place():
    assert all(place.startswith("https://") for place in PROJECT["project"]["urls"].values())
    named = [page.name for page in PAGES if "example.org" in page.read_text()]
    assert named == ["CONTRIBUTING.md"]  # which says where they are


def test_papers_of_the_methods_are_cited():
    from kspan.solvers.registry import class_names, method_class

    cited = read("CITATION.cff")
    assert cited["cff-version"] == "1.2.0"
    assert {"message", "title", "authors", "references"} <= set(cited)
    known = {
        (paper["authors"][0]["family-names"], str(paper["year"])) for paper in cited["references"]
    }
    found = {method_class(name).reference for name in class_names()}
    asked = {text for text in found if text[-4:].isdigit()}  # not "this project"
    assert len(asked) > 10
    missing = [
        text
        for text in asked
        if (re.match(r"[^\W\d_-]+(?:-[^\W\d_]+)?", text)[0], text[-4:]) not in known
    ]
    assert not missing


@pytest.mark.parametrize("name", ["SECURITY.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md"])
def test_links_of_these_pages_lead_somewhere(name):
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", (ROOT / name).read_text())
    assert not [link for link in links if "://" not in link and not (ROOT / link).exists()]
