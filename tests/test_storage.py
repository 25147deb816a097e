"""Files of certificates: what goes in comes out, and nothing half-written is ever seen."""

import json
import os
import zipfile
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np
import pytest

from kspan import storage
from kspan.proofs import Certificate, CertificateError, verify
from tests.proofs.test_verify import WITNESS, case


class Colour(Enum):
    RED = "red"


@dataclass
class Leaf:
    values: np.ndarray
    size: float = 1.0


@dataclass
class Tree:
    leaves: list = field(default_factory=list)
    colour: Colour = Colour.RED
    name: str = "ash"
    missing: None = None


TYPES = (Leaf, Tree, Colour)


@pytest.mark.parametrize("name", WITNESS)
def test_a_certificate_survives_a_file(tmp_path, name):
    problem, _, certificate = case(name)
    path = tmp_path / "proof.npz"
    certificate.save(path)
    loaded = Certificate.load(path)
    assert loaded.digest == certificate.digest == loaded.compute_digest()
    assert loaded.status is certificate.status
    assert loaded.upper == certificate.upper
    assert loaded.lower == certificate.lower
    np.testing.assert_array_equal(loaded.history, certificate.history)
    assert loaded.seconds == certificate.seconds
    assert verify(problem, loaded) == verify(problem, certificate)


def test_saving_twice_gives_the_same_values(tmp_path):
    _, _, certificate = case("tree")
    certificate.save(tmp_path / "a.npz")
    Certificate.load(tmp_path / "a.npz").save(tmp_path / "b.npz")
    assert Certificate.load(tmp_path / "b.npz").digest == certificate.digest


def test_a_changed_file_loads_but_does_not_verify(tmp_path):
    problem, _, certificate = case("dual")
    replace(certificate, lower=certificate.lower * 0.9).save(tmp_path / "forged.npz")
    with pytest.raises(CertificateError, match="digest"):
        verify(problem, Certificate.load(tmp_path / "forged.npz"))


def test_values_of_all_kinds(tmp_path):
    values = [
        Leaf(np.array([0.1, np.nan, -0.0]), np.inf), Leaf(np.empty((0, 3)), -np.inf),
        Leaf(np.array([True, False]), 5e-324), 3, -7.25, "text", None, True, [1, [2.5]],
    ]  # fmt: skip
    tree = Tree(values)
    storage.save_file(tmp_path / "tree.npz", tree)
    loaded = storage.load_file(tmp_path / "tree.npz", TYPES)
    assert loaded.colour is Colour.RED
    assert loaded.name == "ash"
    assert loaded.missing is None
    assert loaded.leaves[3:] == values[3:]
    for old, new in zip(values[:3], loaded.leaves[:3], strict=True):
        assert new.values.dtype == old.values.dtype
        assert new.values.tobytes() == old.values.tobytes()
        assert new.values.shape == old.values.shape
        assert new.size == old.size


def test_numpy_numbers_become_plain_ones(tmp_path):
    storage.save_file(tmp_path / "x.npz", [np.float64(0.1), np.int64(3), np.bool_(True), np.nan])
    plain = storage.load_file(tmp_path / "x.npz", ())
    assert plain[:3] == [0.1, 3, True]
    assert [type(value) for value in plain] == [float, int, bool, float]
    assert np.isnan(plain[3])


def test_there_are_no_pickles(tmp_path):
    case("tree")[2].save(tmp_path / "proof.npz")
    with np.load(tmp_path / "proof.npz", allow_pickle=False) as file:
        arrays = [file[name] for name in file.files]  # each one is read
    assert len(arrays) > 5
    assert all(array.dtype.kind in "biuf" for array in arrays)


def test_a_pickle_is_refused(tmp_path):
    path = tmp_path / "evil.npz"
    np.savez(path, header=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="not a file of kspan"):
        storage.load_file(path, TYPES)


@pytest.mark.parametrize("value", [{1, 2}, 1j, b"bytes", print])
def test_what_cannot_be_stored_is_refused(tmp_path, value):
    with pytest.raises(TypeError, match="cannot store a"):
        storage.save_file(tmp_path / "x.npz", [value])
    assert list(tmp_path.iterdir()) == []


def test_an_array_of_objects_is_refused_and_leaves_nothing(tmp_path):
    """It would need a pickle."""
    with pytest.raises((TypeError, ValueError)):
        storage.save_file(tmp_path / "x.npz", [np.array([{}, []], dtype=object)])
    assert list(tmp_path.iterdir()) == []


# --- atomic


def test_no_temporary_files_are_left(tmp_path):
    path = tmp_path / "proof.npz"
    for _ in range(3):
        case("dual")[2].save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["proof.npz"]


@pytest.mark.parametrize("place", ["write_array", "replace"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch, place, error):
    path = tmp_path / "proof.npz"
    storage.save_file(path, [1])
    before = path.read_bytes()

    def fail(*_, **__):
        raise error

    where = np.lib.format if place == "write_array" else storage.os
    with monkeypatch.context() as patch:
        patch.setattr(where, place, fail)
        with pytest.raises(type(error)):
            storage.save_file(path, [2])
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["proof.npz"]
    storage.save_file(path, [2])
    assert storage.load_file(path, ()) == [2]


def test_the_name_is_the_one_that_was_asked_for(tmp_path):
    """`np.savez` adds ``.npz`` to names; this does not."""
    storage.save_file(tmp_path / "checkpoint", [1])
    assert [file.name for file in tmp_path.iterdir()] == ["checkpoint"]
    storage.save_file(str(tmp_path / "text"), [2])
    assert storage.load_file(str(tmp_path / "text"), ()) == [2]


def test_a_relative_name_in_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    storage.save_file("proof.npz", [1])
    assert storage.load_file("proof.npz", ()) == [1]


@pytest.mark.skipif(os.name != "posix", reason="permission bits are POSIX's")
def test_others_may_read_the_file_as_they_may_any_other(tmp_path):
    """A temporary file is private; a certificate is made to be passed on."""
    (tmp_path / "plain").write_text("x")
    storage.save_file(tmp_path / "proof.npz", [1])
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("plain", "proof.npz")]
    assert modes[0] == modes[1]


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        storage.save_file(tmp_path / "nowhere" / "proof.npz", [1])


# --- refused


def write_document(path, document, arrays=()):
    header = np.frombuffer(json.dumps(document).encode(), dtype=np.uint8)
    named = {f"array_{i}": array for i, array in enumerate(arrays)}
    with open(path, "wb") as file:
        np.savez(file, header=header, **named)


@pytest.mark.parametrize("version", [0, 1])
def test_an_earlier_format_is_refused_in_one_sentence(tmp_path, version):
    write_document(tmp_path / "x.npz", {"format": version, "value": 1})
    message = r"x\.npz was written by an earlier kspan, in a format that is no longer read; make it"
    with pytest.raises(ValueError, match=message):
        storage.load_file(tmp_path / "x.npz", TYPES)


@pytest.mark.parametrize("version", [storage.FORMAT + 1, "1", None])
def test_another_format_is_refused(tmp_path, version):
    write_document(tmp_path / "x.npz", {"format": version, "value": 1})
    with pytest.raises(ValueError, match=f"format .*this version reads {storage.FORMAT}"):
        storage.load_file(tmp_path / "x.npz", TYPES)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"type": "Path", "fields": {}}, "unknown type 'Path'"),
        ({"enum": "Status", "name": "OPTIMAL"}, "unknown type 'Status'"),
        ({"type": "Leaf", "fields": {"size": 1.0}}, "a Leaf in the file has other fields"),
        ({"type": "Leaf", "fields": {"values": 1, "size": 1, "more": 2}}, "has other fields"),
        ({"something": 1}, "unknown type None"),
    ],
)
def test_unknown_values_are_refused(tmp_path, value, message):
    write_document(tmp_path / "x.npz", {"format": storage.FORMAT, "value": [value]})
    with pytest.raises(ValueError, match=message):
        storage.load_file(tmp_path / "x.npz", TYPES)


def test_a_file_of_something_else_is_not_a_certificate(tmp_path):
    path = tmp_path / "list.npz"
    storage.save_file(path, [1, 2])
    with pytest.raises(CertificateError, match="does not hold a certificate"):
        Certificate.load(path)


def test_a_certificate_that_contradicts_itself_cannot_be_loaded(tmp_path):
    path = tmp_path / "proof.npz"
    certificate = case("dual")[2]
    forged = replace(certificate)
    object.__setattr__(forged, "upper", 0.5 * certificate.lower)
    forged.save(path)
    with pytest.raises(CertificateError, match="is below lower"):
        Certificate.load(path)


@pytest.mark.parametrize("content", ["npy", "text", "other npz"])
def test_files_of_other_programs_are_refused_in_words(tmp_path, content):
    path = tmp_path / "file"
    if content == "text":
        path.write_text("hello")
    else:
        with path.open("wb") as file:
            np.save(file, np.arange(3)) if content == "npy" else np.savez(file, a=np.arange(3))
    with pytest.raises(ValueError, match="file"):
        Certificate.load(path)


# --- bytes and notes


def test_the_same_value_gives_the_same_bytes(tmp_path, monkeypatch):
    value = {"leaf": Leaf(np.arange(5.0)), "names": ["a", "b"], "none": None}
    storage.save_file(tmp_path / "one", value, notes={"seconds": 1.0})
    monkeypatch.setattr("time.time", lambda: 2e9)
    storage.save_file(tmp_path / "two", value, notes={"seconds": 1.0})
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    back = storage.load_file(tmp_path / "one", TYPES)
    assert back["names"] == ["a", "b"]
    assert back["none"] is None
    np.testing.assert_array_equal(back["leaf"].values, np.arange(5.0))


def test_notes_stand_apart(tmp_path):
    for name, seconds in (("one", 1.0), ("two", 2.0)):
        storage.save_file(tmp_path / name, [1], notes={"seconds": seconds})
        assert storage.load_notes(tmp_path / name) == {"seconds": seconds}
        assert storage.load_file(tmp_path / name, ()) == [1]
    members = []
    for name in ("one", "two"):
        with zipfile.ZipFile(tmp_path / name) as archive:
            members.append({n: archive.read(n) for n in archive.namelist() if n != "notes.json"})
    assert members[0] == members[1]
    storage.save_file(tmp_path / "none", [1])
    assert storage.load_notes(tmp_path / "none") == {}


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        storage.save_file(tmp_path / "nowhere" / "file", [1])
