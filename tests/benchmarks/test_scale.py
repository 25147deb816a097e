"""How a fit grows: what the committed figures claim, the model, passes, and a small file."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import kspan.io.rows as row_blocks
from benchmarks.scale import growth, model, very_sparse
from kspan import FeatureSparsePCA
from kspan.covariance import block_kernels, chunked, data_covariance, dense_data
from kspan.covariance.dense_data import DenseDataCovariance
from kspan.covariance.sparse_data import SparseDataCovariance
from kspan.solvers.rowsparse import candidates

HERE = Path(growth.__file__).parent
RECORD = json.loads((HERE / "growth.json").read_text())
SWEEPS = [(name, varied) for name in RECORD["settings"] for varied in RECORD["settings"][name]]


# --- the committed figures


def test_every_setting_is_there():
    assert {name: set(s) for name, s in RECORD["settings"].items()} == {
        name: set(setting.sweeps) for name, setting in growth.SETTINGS.items()
    }
    for name, varied in SWEEPS:
        rows = RECORD["settings"][name][varied]
        assert len(rows) >= 4
        assert rows[-1][varied] >= 8 * rows[0][varied]


@pytest.mark.parametrize(("name", "varied"), SWEEPS)
def test_time_grows_no_faster_than_n_d_m(name, varied):
    found = growth.exponent(RECORD["settings"][name][varied], varied)
    if varied != "k":
        assert found <= growth.MOST_EXPONENT


@pytest.mark.parametrize(("name", "varied"), SWEEPS)
def test_the_model_is_within_a_factor_of_two(name, varied):
    for row in RECORD["settings"][name][varied]:
        ratio = sum(growth.predicted(RECORD, name, row).values()) / growth.measured(row)
        assert 1 / growth.MOST_RATIO <= ratio <= growth.MOST_RATIO, row


def test_at_most_six_passes_over_a_file():
    for rows in RECORD["settings"]["disk, auto"].values():
        assert all(row["passes"] <= 6 for row in rows)


def test_the_tables_are_made_from_the_json():
    assert (HERE / "growth.md").read_text() == growth.markdown(RECORD)
    record = json.loads((HERE / "very_sparse.json").read_text())
    assert (HERE / "very_sparse.md").read_text() == very_sparse.markdown(record)


def test_a_million_sparse_features_in_four_gigabytes():
    rows = json.loads((HERE / "very_sparse.json").read_text())["rows"]
    assert {row["solver"] for row in rows} == {"auto", "ipu"}
    for row in rows:
        assert row["nnz"] == pytest.approx(1e7, rel=0.02)  # ten million drawn, some twice
        assert row["peak"] < very_sparse.MOST_GIGABYTES


# --- the model


def test_the_model_has_the_limits_of_the_code():
    assert model.SKETCH_COLUMNS == chunked.SKETCH_COLUMNS
    assert model.GRAM_LIMIT == data_covariance.GRAM_LIMIT
    assert model.GRAM_WORK == data_covariance.GRAM_WORK
    assert model.LANCZOS_FEATURES == (dense_data.ORDER_A_PRODUCT * dense_data.FEWEST_PRODUCTS)
    assert model.FEWEST_ROWS == block_kernels.FEWEST_PIECE_ROWS == row_blocks.FEWEST_ROWS
    assert model.BLOCK_BYTES == row_blocks.BLOCK_BYTES
    assert model.CACHE_BYTES == block_kernels.CACHE_BYTES
    for name in ("OVERSAMPLING", "PER_FEATURE", "FEWEST", "MOST"):
        assert getattr(model, name) == getattr(candidates, name)


def test_rates_are_interpolated_in_logarithms():
    table = {"1": 1.0, "4": 16.0}
    assert model.at(table, 2) == pytest.approx(4.0)
    assert model.at(table, 8) == pytest.approx(64.0)
    assert model.at(table, 0.5) == pytest.approx(1.0)


@pytest.mark.parametrize("name", growth.SETTINGS)
def test_the_terms_of_a_fit_are_positive_and_grow_with_n(name):
    row = RECORD["settings"][name]["n"][0]
    terms = growth.predicted(RECORD, name, row)
    assert all(value >= 0 for value in terms.values())
    larger = growth.predicted(RECORD, name, row | {"n": 2 * row["n"], "nnz": 2 * row["nnz"]})
    assert sum(terms.values()) < sum(larger.values()) <= 4.0 * sum(terms.values())


def test_twice_the_workers_take_half_the_time_of_a_pass():
    one, two = (
        model.on_cluster(
            1e9, 1e6, 5, 50, itemsize=8, density=None, passes=4,
            cluster=model.Cluster(workers=workers, network=np.inf),
        )
        for workers in (100, 200)
    )  # fmt: skip
    assert one["read"] == 2 * two["read"] == 40_000  # 8 PB, 100 workers, 2 GB/s each
    assert one["work"] == 2 * two["work"]
    assert two["pass"] == two["schedule"] > two["read"]  # one scheduler for all
    assert one["bytes"] == 8e15
    assert not one["fits in memory"]


def test_amounts_and_durations():
    assert [model.duration(v) for v in (1.24, 600, 36_000, 864_000)] == [
        "1.2 s", "10 min", "10 h", "10 days",
    ]  # fmt: skip
    assert [model.amount(v) for v in (12e6, 3.4e9, 8e12, 8e15)] == [
        "12 MB", "3.4 GB", "8 TB", "8 PB",
    ]  # fmt: skip


# --- passes


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("passes")
    tall, large = growth.planted(900, 600, rng), growth.planted(2100, 2060, rng)
    np.save(folder / "tall.npy", tall)
    np.save(folder / "large.npy", large)
    return {
        "tall": tall, "wide": np.ascontiguousarray(tall[:300]), "large": large,
        "sparse": growth.planted_sparse(900, 600, 0.02, rng),
        "disk": folder / "tall.npy", "large disk": folder / "large.npy",
    }  # fmt: skip


@pytest.mark.parametrize("where", model.WHERE)
def test_passes_are_those_of_the_table(kinds, where, monkeypatch):
    X, taken = kinds[where], []

    def noted(original):
        def standard(self, support):
            taken.append(len(support))
            return original(self, support)

        return standard

    for kind in (DenseDataCovariance, SparseDataCovariance):
        monkeypatch.setattr(kind, "_standard", noted(kind._standard))
    options = {
        "ipu": {"max_iter": 3}, "soap": {"max_iter": 3}, "srt": {"max_iter": 3},
        "tpower": {"max_iter": 3}, "fps": {"max_iter": 3},
    }  # fmt: skip
    go = FeatureSparsePCA(2, 8, solver="go").fit(X)
    fixed, each, _ = model.PASSES["go"][where]
    left = go.n_passes_ - fixed - taken.count(8)
    products, rest = divmod(left, each) if each else (0, left)
    assert rest == 0
    for method in model.PASSES:
        if method == "fps" and where.startswith("large"):
            continue  # an eigensolve of order 2060 a step
        taken.clear()
        found = FeatureSparsePCA(
            2, 8, solver=method, solver_options=options.get(method), random_state=0
        ).fit(X)
        expected = model.passes(method, where, products, found.n_iter_, taken.count(8))
        assert found.n_passes_ == expected, method


# --- a small file, with limits that are scaled down from 1.5 GB for a file of 8 GB

ROWS, FEATURES = 20_000, 1100  # just enough that forming A counts as costly
CHILD = """
import json, sys
import numpy as np
from sklearn import set_config
from kspan import FeatureSparsePCA

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))

# As the file is smaller than one of 8 GB, so is the memory for blocks: 1 MB each.
set_config(working_memory=64)
FeatureSparsePCA(2, 4).fit(np.random.default_rng(0).standard_normal((500, 300)))
before = peak()
model = FeatureSparsePCA(5, 20, random_state=0).fit(sys.argv[1])
print(json.dumps({
    "passes": model.n_passes_, "bytes": peak() - before,
    "support": model.selected_features_.tolist(),
}))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_a_file_takes_few_passes_and_little_memory(tmp_path):
    path = tmp_path / "planted.npy"
    rng = np.random.default_rng(0)
    data = np.lib.format.open_memmap(path, "w+", shape=(ROWS, FEATURES), dtype=np.float64)
    for start in range(0, ROWS, 2000):
        block = rng.standard_normal((2000, FEATURES))
        for factor in range(5):  # on features 0 to 19, four each
            block[:, 4 * factor : 4 * factor + 4] += (5 - 0.5 * factor) * rng.standard_normal(
                (2000, 1)
            )
        data[start : start + 2000] = block
    data.flush()
    size = data.nbytes
    del data
    assert ROWS * FEATURES**2 > data_covariance.GRAM_WORK
    found = json.loads(subprocess.check_output([sys.executable, "-c", CHILD, str(path)], text=True))
    assert found["passes"] <= 6
    assert found["support"] == list(range(20))
    assert found["bytes"] < 1.5 / 8 * size
