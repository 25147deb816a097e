"""Features of cells: what is written into an AnnData object, and that nothing else changes."""

import anndata
import numpy as np
import pytest
import scipy.sparse as sp

from kspan import FeatureSparsePCA
from kspan.anndata import select_features


@pytest.fixture
def cells(rng):
    counts = rng.poisson(rng.gamma(1.0, 2.0, 12), (80, 12)) * (rng.random((80, 12)) < 0.6)
    found = anndata.AnnData(sp.csr_matrix(counts.astype(np.float32)))
    found.var_names = [f"gene{i}" for i in range(12)]
    found.layers["log"] = found.X.log1p()
    return found


@pytest.mark.parametrize("layer", [None, "log"])
@pytest.mark.parametrize("form", ["sparse", "csc", "dense"])
def test_the_result_is_the_estimators(cells, layer, form):
    change = {"sparse": lambda X: X, "csc": sp.csc_matrix, "dense": lambda X: X.toarray()}[form]
    cells.X, cells.layers["log"] = change(cells.X), change(cells.layers["log"])
    X = cells.X if layer is None else cells.layers[layer]
    before = X.copy()
    assert select_features(cells, 2, 5, layer=layer, certify="exact", random_state=0) is None
    model = FeatureSparsePCA(2, 5, certify="exact", random_state=0).fit(X)
    assert cells.var_names[cells.var["kspan"]].tolist() == [
        f"gene{i}" for i in model.get_support(indices=True)
    ]
    np.testing.assert_allclose(cells.varm["kspan"], model.components_.T, atol=1e-6)
    np.testing.assert_allclose(cells.obsm["X_kspan"], model.transform(X), atol=1e-4)
    kept = cells.uns["kspan"]
    assert kept["certificate"]["status"] == "optimal"
    np.testing.assert_allclose(kept["variance"], model.explained_variance_)
    now = cells.X if layer is None else cells.layers[layer]
    assert type(now) is type(before)
    assert abs(now - before).sum() == 0


def test_it_survives_a_file(cells, tmp_path):
    select_features(
        cells, 2, 5, include=["gene3"], exclude=[0], scale=True, certify=True, random_state=0,
        key="panel",
    )  # fmt: skip
    cells.write_h5ad(tmp_path / "x.h5ad")
    back = anndata.read_h5ad(tmp_path / "x.h5ad")
    assert back.var["panel"]["gene3"]
    assert not back.var["panel"]["gene0"]
    assert back.uns["panel"]["params"]["include"].tolist() == [3]
    assert back.obsm["X_panel"].shape == (80, 2)
    assert back.uns["panel"]["certificate"]["upper"] >= back.uns["panel"]["certificate"]["lower"]


def test_a_copy_leaves_the_object_alone(cells):
    changed = select_features(cells, 1, 3, copy=True, random_state=0)
    assert "kspan" in changed.var
    assert "kspan" not in cells.var
    assert not cells.uns


def test_backed_data(cells, tmp_path):
    cells.write_h5ad(tmp_path / "x.h5ad")
    backed = anndata.read_h5ad(tmp_path / "x.h5ad", backed="r")
    select_features(cells, 2, 5, random_state=0)
    select_features(backed, 2, 5, random_state=0)
    assert backed.var["kspan"].equals(cells.var["kspan"])
    backed.file.close()


def test_what_is_not_there_is_named(cells):
    with pytest.raises(ValueError, match="no layer 'raw'; there are: log"):
        select_features(cells, 1, 3, layer="raw")
    with pytest.raises(ValueError, match="include names 'geneX'"):
        select_features(cells, 1, 3, include=["geneX"])
    with pytest.raises(ValueError, match="n_features_to_select=20"):
        select_features(cells, 1, 20)


def test_cells_are_weighted_by_a_column(cells, rng):
    cells.obs["w"] = rng.integers(0, 3, 80)
    select_features(cells, 2, 5, weights="w", certify=True, random_state=0)
    repeated = cells.X.toarray().repeat(cells.obs["w"], axis=0)
    model = FeatureSparsePCA(2, 5, certify=True, random_state=0).fit(repeated)
    np.testing.assert_array_equal(cells.var["kspan"], model.get_support())
    assert cells.uns["kspan"]["objective"] == pytest.approx(model.objective_, rel=1e-5)
    assert len(cells.uns["kspan"]["weights"]) == 64
    with pytest.raises(ValueError, match=r"weights names 'v', which is not a column of .obs"):
        select_features(cells, 2, 5, weights="v")


def test_cells_with_missing_values(cells):
    values = cells.X.toarray()
    values[3, 4] = np.nan
    cells.X = values
    select_features(cells, 2, 5, missing="mean", random_state=0)
    assert cells.uns["kspan"]["n_missing"] == 1
    assert np.isfinite(cells.obsm["X_kspan"]).all()
