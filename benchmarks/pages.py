"""All that README and the documentation show of committed results, made from them again.

Run: ``python -m benchmarks.pages`` after a benchmark, or after changing how a page shows one. What
stands between ``<!-- from SOURCE -->`` and ``<!-- end -->`` is written by the functions below and
by nobody else. Sentences outside such marks have their figures checked: tests/docs/figures has a
file for each page.
"""

import json
from pathlib import Path
from typing import Any

from benchmarks.certificates import pages as certificates
from benchmarks.measure import fill
from benchmarks.papers.fspca import how_good
from benchmarks.papers.fspca import pages as fspca
from benchmarks.papers.nspca import pages as nspca
from benchmarks.papers.sadmm import pages as sadmm
from benchmarks.peers import pca_price, waiting
from benchmarks.peers.race import table as race
from benchmarks.peers.represent import heldout
from benchmarks.peers.represent import table as represent
from benchmarks.scale import growth
from benchmarks.soundness import counts

HERE = Path(__file__).parent
ROOT = HERE.parent
DOCS = ROOT / "docs"


def result(name: str) -> Any:
    """Return what a committed file of results holds, by its place: "papers/fspca/table2"."""
    return json.loads((HERE / f"{name}.json").read_text())


def texts() -> dict[tuple[Path, str], str]:
    """Return what belongs where: pages, and the marks in them."""
    raced, told = result("peers/race/race"), result("peers/represent/represent")
    return {
        **certificates.texts(),
        **{(fspca.PAGE, mark): text for mark, text in fspca.texts().items()},
        **{
            (how_good.PAGE, mark): text
            for mark, text in how_good.texts(result("papers/fspca/how_good")).items()
        },
        **{(nspca.PAGE, mark): text for mark, text in nspca.texts().items()},
        **{(sadmm.PAGE, mark): text for mark, text in sadmm.texts().items()},
        **{
            (growth.PAGE, mark): text for mark, text in growth.texts(result("scale/growth")).items()
        },
        (DOCS / "scaling.md", "pca_price.json"): pca_price.glance(
            result("peers/pca_price")["rows"]
        ),
        (DOCS / "race.md", "race.json: at a glance"): race.glance(raced),
        (DOCS / "race.md", "race.json"): race.summary(raced),
        (DOCS / "which_question.md", "represent.json"): (
            f"{represent.summary(told)}\n\n{represent.outcome(told)}"
        ),
        (DOCS / "which_question.md", "heldout.json"): heldout.summary(
            result("peers/represent/heldout")
        ),
        (waiting.PAGE, "waiting.json"): waiting.glance(result("peers/waiting")["rows"]),
        (counts.PAGE, "soundness.json"): counts.summary(result("soundness/soundness")),
    }


def main() -> None:
    for (page, mark), text in texts().items():
        fill(page, mark, text)


if __name__ == "__main__":
    main()
