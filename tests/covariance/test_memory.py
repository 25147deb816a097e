"""What is kept of data: found again as it was, told from other data, and never in the way."""

import copy
import pickle
import threading

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from kspan import FeatureSparsePCA, Memory, as_covariance
from kspan.covariance import memory as memory_module
from kspan.covariance.digests import WORDS, array_digest, data_digest
from kspan.covariance.memory import Folder, Gram, Leading, Recall
from kspan.io import RowSource, open_data
from kspan.linalg.eigen import EigenPairs
from kspan.storage import save_file
from tests.out_of_core import OUT_OF_CORE, npy


@pytest.fixture
def X(rng):
    return rng.standard_normal((60, 4)) @ rng.standard_normal((4, 12)) + rng.standard_normal(
        (60, 12)
    )


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Data is small here, and kept in files all the same; files are read in several blocks."""
    monkeypatch.setattr(Folder, "least_work", 0.0)
    monkeypatch.setattr(memory_module.Cached, "least_work", 0.0)
    monkeypatch.setattr(RowSource, "block_bytes", 1500)


# --- digests


LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "every second": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "reversed": lambda X: np.ascontiguousarray(X[::-1])[::-1],
    "float32": lambda X: X.astype(np.float32),
    "CSR": sp.csr_array,
    "CSC": sp.csc_array,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_element_that_changes_changes_the_digest(rng, layout):
    X = rng.standard_normal((7, 5))
    seen = {data_digest(LAYOUTS[layout](X))}
    assert data_digest(LAYOUTS[layout](X.copy())) in seen
    for place in np.ndindex(X.shape):
        other = X.astype(np.float32) if layout == "float32" else X.copy()
        other[place] = np.nextafter(other[place], other.dtype.type(np.inf))
        seen.add(data_digest(LAYOUTS[layout](other)))
    assert len(seen) == 1 + X.size


def test_the_order_of_numbers_counts(rng):
    """Rows or columns that change places, a transpose, signs that change in pairs."""
    X = rng.standard_normal((6, 6))
    turned = X.copy()
    turned[0, 0] *= -1
    turned[3, 2] *= -1
    others = [X, X[::-1].copy(), X[:, ::-1].copy(), X.T.copy(), X.T, X.reshape(4, 9), turned]
    assert len({array_digest(other) for other in others}) == len(others)


def test_blocks_beyond_the_first_count(rng):
    values = rng.standard_normal(WORDS)  # two blocks of words
    other = values.copy()
    other[-1] += 1e-9
    swapped = np.concatenate([values[WORDS // 2 :], values[: WORDS // 2]])
    assert len({array_digest(v) for v in (values, other, swapped)}) == 3


def test_integers_as_doubles_are_told_apart():
    """Of such numbers half of the bits are zero, always."""
    seen = {array_digest(np.array([[a, b, c, d]], float))
            for a in range(6) for b in range(6) for c in range(6) for d in range(6)}  # fmt: skip
    assert len(seen) == 6**4


def test_files_are_told_apart(X):
    def digest(values):
        return data_digest(open_data(npy(values), load_bytes=0).rows)

    other = X.copy()
    other[-1, -1] += 1e-12
    assert digest(X) == digest(X.copy()) != digest(other)


# --- the memory


def summary(size=4):
    pairs = EigenPairs(np.arange(2.0), np.eye(size)[:, :2], np.zeros(2), -0.1)
    return Leading(pairs, True)


def test_what_is_found_is_a_copy():
    memory = Memory()
    mine = summary()
    memory.keep("a", mine)
    mine.pairs.vectors[:] = 7
    memory.find("a").pairs.vectors[:] = 8
    assert_array_equal(memory.find("a").pairs.vectors, np.eye(4)[:, :2])
    assert (memory.hits, memory.misses) == (2, 0)
    assert memory.find("b") is None
    assert memory.misses == 1


def test_what_was_not_asked_for_the_longest_goes_first():
    memory = Memory(max_bytes=3 * 800)
    for name in "abc":
        memory.keep(name, Gram(np.zeros((10, 10))))
    memory.find("a")
    memory.keep("d", Gram(np.zeros((10, 10))))
    assert [name for name in "abcd" if memory.find(name) is not None] == ["a", "c", "d"]
    memory.keep("e", Gram(np.zeros((50, 50))))  # larger than all of it
    memory.keep("a", Gram(np.zeros((10, 10))))  # again
    assert memory.n_bytes == 3 * 800
    memory.clear()
    assert memory.n_bytes == 0
    assert memory.find("a") is None


def test_copies_share_and_pickles_begin_anew():
    memory = Memory(max_bytes=5000)
    memory.keep("a", summary())
    assert copy.deepcopy({"memory": memory})["memory"] is memory
    other = pickle.loads(pickle.dumps(memory))
    assert other.max_bytes == 5000
    assert other.n_bytes == 0
    assert repr(memory) == "Memory(max_bytes=5000)"


def test_threads_may_share(rng):
    memory, wrong = Memory(max_bytes=4000), []

    def work(seed):
        own = np.random.default_rng(seed)
        for _ in range(300):
            place = int(own.integers(8))
            found = memory.find(str(place))
            if found is None:
                memory.keep(str(place), Gram(np.full((10, 10), float(place))))
            elif not (found.products == place).all():
                wrong.append(place)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert memory.n_bytes <= 4000


@pytest.fixture(params=["process", "folder", "joblib"])
def store(request, tmp_path):
    """Return a memory, of every kind there is."""
    if request.param == "process":
        return Memory()
    if request.param == "folder":
        return str(tmp_path / "made" / "here")
    return joblib.Memory(tmp_path, verbose=0)


def test_every_store_gives_back_what_was_kept(store):
    recall = Recall(memory_module.store_of(store), "key")
    assert recall.find("pairs", Leading) is None
    kept = summary()
    recall.keep("pairs", kept)
    found = recall.find("pairs", Leading)
    assert found.changed is True
    assert found.pairs.smallest == kept.pairs.smallest
    for name in ("values", "vectors", "residuals"):
        assert_array_equal(getattr(found.pairs, name), getattr(kept.pairs, name))
    assert recall.find("pairs", Gram) is None, "of another kind"
    assert recall.about("other").find("pairs", Leading) is None
    upside_down = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    recall.keep("gram", Gram(upside_down))
    assert recall.find("gram", Gram).products.flags.f_contiguous, "the order adds to the digits"


def test_no_memory_keeps_nothing():
    recall = Recall()
    recall.keep("pairs", summary())
    assert recall.find("pairs", Leading) is None
    assert recall.about("more") is recall


@pytest.mark.parametrize("given", [3, object(), ["folder"]])
def test_what_is_no_memory_is_refused(X, given):
    with pytest.raises(ValueError, match=r"memory.*must be"):
        as_covariance(X, memory=given)


def test_a_file_is_no_folder(X, tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(ValueError, match="is a file, not a folder"):
        as_covariance(X, memory=tmp_path / "taken")


# --- covariances that remember


def formed(X, memory, **how):
    """Return a covariance, its eigenpairs, and how often it read and multiplied for them."""
    covariance = as_covariance(X, memory=memory, **how)
    pairs = covariance.leading(2)
    return covariance, pairs


FORMS = {
    "tall": np.asarray,
    "Fortran": np.asfortranarray,
    "wide": lambda X: X[:8],
    "float32": lambda X: X.astype(np.float32),
    "CSR": lambda X: sp.csr_array(np.where(X > 0, X, 0.0)),
    "wide CSC": lambda X: sp.csc_array(np.where(X[:8] > 0, X[:8], 0.0)),
    **OUT_OF_CORE,
}


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_the_second_time_nothing_is_computed(X, store, form, scale):
    """Neither moments nor A nor XX' nor eigenpairs, and all numbers are the same."""
    given = FORMS[form](X)
    fresh = as_covariance(given, scale=scale)
    fresh.leading(2)
    formed(given, store, scale=scale)
    again, pairs = formed(given, store, scale=scale)
    assert again.n_grams == 0
    assert again.n_passes == 1, "to tell the data"
    assert_array_equal(again.mean, fresh.mean)
    assert_array_equal(again.rest, fresh.rest)
    assert_array_equal(again.scale, fresh.scale)
    assert_array_equal(again.diagonal(), fresh.diagonal())
    assert_array_equal(pairs.values, fresh.leading(2).values)
    assert_array_equal(pairs.vectors, fresh.leading(2).vectors)
    W = np.random.default_rng(1).standard_normal((12, 2))
    assert_array_equal(again.matmat(W), fresh.matmat(W))
    assert_array_equal(again.submatrix(np.array([3, 1])), fresh.submatrix(np.array([3, 1])))
    if fresh.sketch is not None:
        assert_array_equal(again.sketch[1], fresh.sketch[1])


@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("form", ["tall", "wide"])
def test_more_components_are_computed_as_if_nothing_was_known(X, form, m):
    """Pairs are not cut from others: an eigensolver's last digits depend on how many it finds."""
    memory, given = Memory(), FORMS[form](X)
    formed(given, memory)
    covariance = as_covariance(given, memory=memory)
    pairs, fresh = covariance.leading(m), as_covariance(given).leading(m)
    assert covariance.n_grams == 0, "A and XX' are the same for any number"
    assert_array_equal(pairs.values, fresh.values)
    assert_array_equal(pairs.vectors, fresh.vectors)


def test_pairs_of_a_matrix_that_is_formed_are_kept_apart(X, monkeypatch):
    """By Lanczos on data, or from A when it is there: their last digits differ."""
    import kspan.covariance.data_covariance as data_covariance
    import kspan.covariance.dense_data as dense_data

    monkeypatch.setattr(data_covariance, "GRAM_WORK", 0)
    monkeypatch.setattr(dense_data, "ORDER_A_PRODUCT", 0.1)
    monkeypatch.setattr(dense_data, "FEWEST_PRODUCTS", 0)

    def taken(memory, prepare):
        covariance = as_covariance(X, memory=memory)
        if prepare:
            covariance.prepare()
        vectors = covariance.leading(2).vectors
        return vectors, covariance._gram is not None

    fresh = {prepare: taken(None, prepare) for prepare in (False, True)}
    memory = Memory()
    for prepare in (False, True, False, True):
        vectors, is_formed = taken(memory, prepare)
        assert_array_equal(vectors, fresh[prepare][0])
        assert is_formed == fresh[prepare][1] == prepare


CHANGES = {
    "data": lambda X: ((X + np.eye(60, 12) * 1e-13,), {}),
    "weights": lambda X: ((X,), {"sample_weight": np.arange(60.0)}),
    "scale": lambda X: ((X,), {"scale": True}),
    "given scale": lambda X: ((X,), {"scale": np.arange(12.0) + 1}),
    "ddof": lambda X: ((X,), {"ddof": 0}),
    "type": lambda X: ((X.astype(np.float32),), {}),
    "rows": lambda X: ((X[::-1].copy(),), {}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_matters_is_part_of_the_key(X, change):
    memory = Memory()
    formed(X, memory)
    (other,), how = CHANGES[change](X)
    covariance, pairs = formed(other, memory, **how)
    assert covariance.n_grams == 1
    assert_array_equal(pairs.values, as_covariance(other, **how).leading(2).values)


def test_moments_are_known_whatever_the_scale(X):
    memory = Memory()
    formed(X, memory)
    covariance = as_covariance(X, scale=True, memory=memory)
    assert covariance.n_passes == 1
    assert_array_equal(covariance.scale, as_covariance(X, scale=True).scale)


@pytest.mark.parametrize("rule", ["mean", "pairwise"])
@pytest.mark.parametrize("weights", [None, np.arange(60.0)], ids=["plain", "weighted"])
def test_data_with_holes(X, store, rule, weights):
    X[[3, 9, 30], [0, 5, 11]] = np.nan
    how = {"missing": rule, "sample_weight": weights}
    fresh = as_covariance(X, **how)
    for _ in range(2):
        covariance, pairs = formed(X, store, **how)
        assert_array_equal(covariance.submatrix(np.arange(5)), fresh.submatrix(np.arange(5)))
        assert_array_equal(pairs.vectors, fresh.leading(2).vectors)
        assert covariance.missing.count == 3
        assert covariance.fingerprint() == fresh.fingerprint()
    other = X.copy()
    other[4, 4] = np.nan
    assert as_covariance(other, memory=store, **how).missing.count == 4


def test_bad_data_is_refused_every_time(X, store):
    X[2, 3] = np.nan
    for _ in range(2):
        with pytest.raises(ValueError, match="1 NaN in 1 column"):
            as_covariance(X, memory=store)
    for _ in range(2):
        with pytest.raises(ValueError, match="All features are constant"):
            as_covariance(np.ones((4, 3)), memory=store)


def test_a_given_matrix(X, store):
    A = np.cov(X.T)
    fresh = as_covariance(A, kind="covariance").leading(2)
    formed(A, store, kind="covariance")
    again = as_covariance(A, kind="covariance", memory=store)
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patch:
        patch.setattr("kspan.covariance.matrix.leading_dense", None)  # would not be called
        pairs = again.leading(2)
    assert_array_equal(pairs.vectors, fresh.vectors)
    assert pairs.smallest == fresh.smallest


def test_a_matrix_that_is_mended_warns_every_time(X, monkeypatch):
    """It is settled by the eigensolver beyond some size: that it was is not forgotten."""
    monkeypatch.setattr("kspan.covariance.matrix.CHOLESKY_LIMIT", 3)
    monkeypatch.setattr("kspan.linalg.eigen.LAPACK_LIMIT", 1)
    Q = np.linalg.qr(np.random.default_rng(3).standard_normal((12, 12)))[0]
    A = (Q * np.append(np.arange(1.0, 12.0) ** 2, -0.5)) @ Q.T
    A = (A + A.T) / 2
    memory, found = Memory(), []
    for given in (None, memory, memory):
        covariance = as_covariance(A, kind="covariance", memory=given)
        with pytest.warns(UserWarning, match="not positive semidefinite"):
            pairs = covariance.leading(2)
        found.append((pairs, covariance.psd_slack(), covariance.indefiniteness))
    for pairs, slack, lacking in found[1:]:
        assert_array_equal(pairs.vectors, found[0][0].vectors)
        assert_array_equal(slack, found[0][1])
        assert lacking == found[0][2] > 0


# --- files


def test_files_that_are_damaged_are_made_anew(X, tmp_path):
    fresh = formed(X, None)[1]
    formed(X, tmp_path)
    files = sorted(tmp_path.iterdir())
    assert len(files) == 3  # moments, A, pairs
    for damage in (
        lambda file, whole: file.write_bytes(whole[: len(whole) // 2]),
        lambda file, whole: file.write_bytes(b""),
        lambda file, whole: file.write_bytes(b"no archive at all"),
        lambda file, whole: file.write_bytes(_with_a_digit_changed(whole)),
        lambda file, whole: save_file(file, [1, 2]),
        lambda file, whole: file.write_bytes(files[0].read_bytes() + b"x"),
    ):
        for file in files:
            damage(file, file.read_bytes())
        covariance, pairs = formed(X, tmp_path)
        assert covariance.n_grams == 1
        assert_array_equal(pairs.vectors, fresh.vectors)
        assert formed(X, tmp_path)[0].n_grams == 0, "whole again"
    assert sorted(tmp_path.iterdir()) == files


def _with_a_digit_changed(whole):
    """Change a byte in the numbers of the last array."""
    place = whole.rindex(b"array_") - 100 - 400
    return whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]


def test_a_file_under_another_name_is_not_believed(X, tmp_path):
    formed(X, tmp_path)
    other = X + 1.0
    before = set(tmp_path.iterdir())
    fresh = formed(other, None)[1]
    formed(other, tmp_path)
    added = set(tmp_path.iterdir()) - before
    for mine in added:
        (theirs,) = (file for file in before if file.name.partition("-")[2] ==
                     mine.name.partition("-")[2])  # fmt: skip
        mine.write_bytes(theirs.read_bytes())
    covariance, pairs = formed(other, tmp_path)
    assert covariance.n_grams == 1
    assert_array_equal(pairs.values, fresh.values)


def test_a_folder_that_cannot_be_written_is_told(X, tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError("no space left")

    monkeypatch.setattr(memory_module, "save_file", full)
    with pytest.warns(UserWarning, match="could not be written: no space left"):
        _, pairs = formed(X, tmp_path)
    assert_array_equal(pairs.values, formed(X, None)[1].values)


def test_small_data_is_not_worth_a_file(X, tmp_path, monkeypatch):
    monkeypatch.setattr(Folder, "least_work", memory_module.FILE_WORK)
    covariance, _ = formed(X, tmp_path)
    assert covariance.n_passes == as_covariance(X).n_passes + 1  # moments and A
    assert not list(tmp_path.iterdir())


def test_the_data_itself_is_not_kept(X, tmp_path):
    for given in (X[:8], X, npy(X)):
        FeatureSparsePCA(2, 3, solver="ipu", memory=tmp_path).fit(given)
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert len(kept) > 0
    assert not any(number.tobytes() in kept for number in X.ravel())
