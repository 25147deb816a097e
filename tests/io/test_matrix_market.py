"""MatrixMarket with names beside it, and folders of 10x."""

import gzip

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from kspan import FeatureSparsePCA
from kspan.io import TableError, read_table
from tests.test_cli import run

COUNTS = np.random.default_rng(0).poisson(1.0, (6, 20))  # genes x cells
GENES = [f"ENSG{i}\tG{i}\tGene Expression" for i in range(6)]
CELLS = [f"CELL{i}-1" for i in range(20)]


def write(folder, *, prefix="", genes=GENES, features="features.tsv", packed=True, counts=COUNTS):
    folder.mkdir(exist_ok=True)
    scipy.io.mmwrite(folder / f"{prefix}matrix.mtx", sp.coo_array(counts))
    (folder / f"{prefix}{features}").write_text("\n".join(genes) + "\n")
    (folder / f"{prefix}barcodes.tsv").write_text("\n".join(CELLS) + "\n")
    for path in list(folder.iterdir()) if packed else ():
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    return folder


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("features", ["features.tsv", "genes.tsv"])
def test_folders_of_10x(tmp_path, packed, features):
    genes = GENES if features == "features.tsv" else [line.rpartition("\t")[0] for line in GENES]
    folder = write(tmp_path / "filtered", genes=genes, features=features, packed=packed)
    matrix = folder / f"matrix.mtx{'.gz' if packed else ''}"
    for path in (folder, str(folder) + "/", matrix):
        table = read_table(path)
        assert sp.issparse(table.X)
        assert table.X.format == "csr"
        np.testing.assert_array_equal(table.X.toarray(), COUNTS.T)
        assert table.feature_names == tuple(f"G{i}" for i in range(6))
        assert table.sample_names == tuple(CELLS)
        assert "10x: cells are rows" in table.notes
    fitted = FeatureSparsePCA(2, 3, random_state=0).fit(folder)
    expected = FeatureSparsePCA(2, 3, random_state=0).fit(COUNTS.T.astype(float))
    np.testing.assert_array_equal(fitted.get_support(), expected.get_support())
    assert set(fitted.selected_features_) <= set(table.feature_names)
    result = run("fit", folder, "-k", 3, "--out", tmp_path / "fit.kspan")
    assert result.exit_code == 0, result.output
    assert "10x: cells are rows" in result.stderr
    assert run("verify", tmp_path / "fit.kspan", folder).exit_code == 0


def test_samples_that_begin_the_names(tmp_path):
    folder = write(tmp_path / "geo", prefix="GSM1_")
    table = read_table(folder / "GSM1_matrix.mtx.gz")
    assert table.sample_names == tuple(CELLS)
    np.testing.assert_array_equal(table.X.toarray(), COUNTS.T)


def test_symbols_that_repeat_and_features_that_are_no_genes(tmp_path):
    genes = [*GENES[:3], "ENSG3\tG0\tGene Expression", "A1\tCD3\tAntibody Capture", "E5\t\t"]
    genes[-1] = "E5\t\tGene Expression"
    table = read_table(write(tmp_path / "f", genes=genes))
    assert table.feature_names == ("G0 (ENSG0)", "G1", "G2", "G0 (ENSG3)", "E5")
    np.testing.assert_array_equal(table.X.toarray(), COUNTS[[0, 1, 2, 3, 5]].T)
    assert "left out: 1 features that are no genes (Antibody Capture)" in table.notes


def test_names_beside_a_file(tmp_path):
    path = tmp_path / "counts.mtx"
    scipy.io.mmwrite(path, sp.coo_array(COUNTS.T))
    assert read_table(path).feature_names is None
    (tmp_path / "counts_cols.txt").write_text("\n".join("abcdef"))
    table = read_table(path)
    assert (table.feature_names, table.sample_names) == (tuple("abcdef"), None)
    assert "names of cols: counts_cols.txt" in table.notes
    (tmp_path / "counts.mtx_rows").write_text("\n".join(CELLS))
    assert read_table(path).sample_names == tuple(CELLS)
    table = read_table(path, drop=["b", "c"], index="a")
    assert table.feature_names == tuple("def")
    np.testing.assert_array_equal(table.X.toarray(), COUNTS.T[:, 3:])
    assert table.sample_names == tuple(map(str, COUNTS[0]))


def test_what_is_wrong_is_said(tmp_path):
    folder = write(tmp_path / "f", packed=False)
    (folder / "barcodes.tsv").write_text("one\n")
    with pytest.raises(TableError, match=r"barcodes\.tsv: has 1 names for 20 columns"):
        read_table(folder)
    (folder / "barcodes.tsv").unlink()
    with pytest.raises(TableError, match=r"f: has matrix\.mtx, but not features\.tsv"):
        read_table(folder)
    assert read_table(folder / "matrix.mtx").X.shape == (6, 20)
    (folder / "matrix.mtx").unlink()
    with pytest.raises(TableError, match=r"f: is a folder, and none of 10x"):
        read_table(folder)
    write(folder, packed=False)
    (folder / "features.tsv").write_bytes(b"\xff\xfe")
    with pytest.raises(TableError, match=r"features\.tsv: cannot be read"):
        read_table(folder)
    path = tmp_path / "counts.mtx"
    scipy.io.mmwrite(path, sp.coo_array(COUNTS))
    (tmp_path / "counts_rows.tsv").write_text("a\nb\n")
    with pytest.raises(TableError, match=r"counts_rows\.tsv: has 2 names for 6 rows"):
        read_table(path)
