"""A virtual environment for every package."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Container
from pathlib import Path

from benchmarks.peers.race.entries import ENVIRONMENTS
from benchmarks.peers.race.launch import scrub


def cache_folder() -> Path:
    """Return where environments are kept unless told otherwise."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "kspan-race"


def install(names: Container[str], cache: Path) -> tuple[dict[str, Path], dict[str, str]]:
    """Return the interpreters, and the message of each environment that cannot be made."""
    pythons, failures = {}, {}
    for name in ENVIRONMENTS:
        if name not in names:
            continue
        print(f"environment {name}", flush=True)
        try:
            pythons[name] = python_of(name, cache)
        except RuntimeError as error:
            failures[name] = f"cannot be installed: {scrub(str(error))}"
    return pythons, failures


def python_of(name: str, cache: Path) -> Path:
    """Return the interpreter of an environment; create and fill the environment if need be.

    Raises `RuntimeError` with the installer's last words if that fails.
    """
    needs = ENVIRONMENTS[name]
    key = hashlib.sha256(" ".join((sys.version, *needs)).encode()).hexdigest()[:8]
    folder = cache / "environments" / f"{name}-{key}"
    python, ready = folder / "bin" / "python", folder / "ready"
    install = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "-q"]
    if not ready.exists():
        _run([sys.executable, "-m", "venv", "--clear", str(folder)])
        _run([*install, *needs])
        ready.touch()
    elif name == "kspan":  # its sources may have changed since
        _run([*install, "--force-reinstall", "--no-deps", *needs])
    return python


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise RuntimeError(lines[-1] if lines else f"ended with code {done.returncode}")
