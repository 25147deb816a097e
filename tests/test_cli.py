import subprocess
import sys

import pytest
from typer.testing import CliRunner

import kspan
from kspan.cli import app

run = CliRunner().invoke


def test_the_demo_shows_features_rivals_and_time():
    result = run(app, ["demo", "-m", "2", "-k", "6"], env={"COLUMNS": "120"})
    assert result.exit_code == 0
    assert result.output.count("pixel_") == 6
    for word in ("plain PCA", "kspan", "highest variances", "Fitted in"):
        assert word in result.output
    numbers = {
        line.split("│")[1].strip(): float(line.split("│")[3])
        for line in result.output.splitlines()
        if "%" in line
    }
    assert numbers["highest variances"] <= numbers["kspan"] <= numbers["plain PCA"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "-m", "5", "-k", "3"], "--features 3 must be at least --components 5"),
        (["demo", "-k", "65"], "--features"),
        (["nonsense"], "No such command"),
    ],
)
def test_wrong_use_exits_with_two(arguments, message):
    result = run(app, arguments, env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert message in result.output


def test_version():
    assert run(app, ["--version"]).output.strip() == f"kspan {kspan.__version__}"


def test_as_a_module():
    result = subprocess.run(
        [sys.executable, "-m", "kspan", "--help"], capture_output=True, text=True, check=True
    )
    assert "demo" in result.stdout
