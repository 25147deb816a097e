"""The house rules: imports point down, importing is cheap, nothing is printed."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import kspan

SOURCE = Path(kspan.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))


def run_python(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_imports_point_down_only():
    """The contract is in pyproject.toml; `lint-imports` explains what breaks it."""
    from importlinter.cli import lint_imports

    assert lint_imports(config_filename=str(Path(__file__).parents[1] / "pyproject.toml")) == 0


def test_importing_kspan_imports_nothing_heavy():
    loaded = run_python(
        "import sys, kspan; print([m for m in ('numpy', 'scipy', 'sklearn') if m in sys.modules])"
    )
    assert loaded == "[]"


def test_an_estimator_imports_no_extra_and_no_compiler():
    extras = ("matplotlib", "pandas", "polars", "typer", "rich", "numba", "dask")
    # scikit-learn loads some packages itself when they are there: only what kspan adds counts.
    added = run_python(
        "import sys, sklearn.decomposition, sklearn.feature_selection; before = set(sys.modules); "
        "import kspan; kspan.FeatureSparsePCA; "
        f"print([m for m in {extras!r} if m in sys.modules and m not in before])"
    )
    assert added == "[]"


def test_public_names_load_and_are_listed():
    for name in kspan.__all__:
        assert getattr(kspan, name).__name__ == name
        assert name in dir(kspan)
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        kspan.nope  # noqa: B018


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_io_and_covariance_look_at_input_types(path):
    words = {"issparse", "isspmatrix"}
    names = {
        node.attr
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
    }
    if path.parent.name not in ("covariance", "io"):
        assert not names & words


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_print_and_no_global_random_state(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            call = ast.unparse(node.func)
            assert call != "print"
            assert not call.startswith("np.random.") or call in (
                "np.random.default_rng",
                "np.random.Generator",
            )
