"""What README says of the price is what was measured."""

import json

from benchmarks.peers import pca_price


def test_the_table_of_readme_is_that_of_the_json():
    rows = json.loads((pca_price.HERE / "pca_price.json").read_text())["rows"]
    assert pca_price.glance(rows) in pca_price.README.read_text()
