"""Files of certificates: what goes in comes out, and nothing half-written is ever seen."""

import json
import os
import subprocess
import sys
import tracemalloc
import warnings
import zipfile
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kspan import storage
from kspan.proofs import Certificate, CertificateError, verify
from kspan.storage import places
from kspan.storage.archive import Limits
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

    where = np.lib.format if place == "write_array" else os
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


# --- files of strangers: one sentence, and nothing large is unpacked


def npy_header(shape, dtype="<f8"):
    text = repr({"descr": dtype, "fortran_order": False, "shape": shape})
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def write_members(path, **members):
    """A file with a good header, and whatever else is given."""
    text = json.dumps({"format": storage.FORMAT, "value": {"array": 0}}).encode()
    good = {"header": npy_header((len(text),), "|u1") + text}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (good | members).items():
            archive.writestr(f"{name}.npy", content)


def peak_of(work):
    """Return the largest number of bytes that Python and NumPy held at a time."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def zeros(n_bytes, piece=1 << 20):
    for _ in range(n_bytes // piece):
        yield bytes(piece)


def bomb(path, member, header, n_bytes):
    """A member that is small in the file and large outside."""
    write_members(path)
    archive = zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED)
    with archive, archive.open(member, "w", force_zip64=True) as stream:
        stream.write(header)
        for piece in zeros(n_bytes):
            stream.write(piece)
    assert path.stat().st_size < 2 << 20


SMALL = Limits(total=1 << 22, text=1 << 16)


@pytest.mark.parametrize(
    "limits",
    [pytest.param(None, id="default", marks=pytest.mark.slow), pytest.param(SMALL, id="small")],
)
def test_zeros_that_unpack_to_more_than_is_allowed(tmp_path, limits):
    path, n_bytes = tmp_path / "bomb", (1 << 30) + (1 << 20) if limits is None else 1 << 26
    bomb(path, "array_0.npy", npy_header((n_bytes // 8,)), n_bytes)
    more = {} if limits is None else {"limits": limits}

    def refused():
        with pytest.raises(ValueError, match=r"unpack to [\d,]+ MiB, more than the [\d,]+ MiB"):
            storage.load_file(path, (), **more)

    assert peak_of(refused) < 1 << 20


def test_a_large_file_may_hold_some_times_its_size(tmp_path):
    """What hardly gets smaller is no trick: it is as large outside as it is in the file."""
    value = np.random.default_rng(0).standard_normal(1 << 20)
    storage.save_file(tmp_path / "x", value)
    np.testing.assert_array_equal(storage.load_file(tmp_path / "x", (), limits=SMALL), value)


def test_a_header_or_notes_without_end(tmp_path):
    text = b"[" + b"0," * (1 << 20) + b"0]"
    write_members(tmp_path / "x", header=npy_header((len(text),), "|u1") + text)
    with pytest.raises(ValueError, match=r"its header\.npy would unpack"):
        storage.load_file(tmp_path / "x", (), limits=SMALL)
    storage.save_file(tmp_path / "y", [1], notes={"a": [0] * (1 << 20)})
    with pytest.raises(ValueError, match=r"its notes\.json would unpack"):
        storage.load_notes(tmp_path / "y", limits=SMALL)


def test_a_directory_that_lies(tmp_path):
    """It says less, or more, than there is: no more than it says is unpacked."""
    path, content = tmp_path / "x", npy_header((1 << 17,)) + bytes(1 << 20)
    write_members(path, array_0=content)
    data = path.read_bytes()
    size = len(content).to_bytes(4, "little")
    for claimed in (200, len(content) - 8, len(content) + 8):
        path.write_bytes(data.replace(size, claimed.to_bytes(4, "little")))
        with pytest.raises(ValueError, match="not a file of kspan"):
            storage.load_file(path, ())


SHAPES = {
    "too large": npy_header((1 << 40,)) + bytes(64),
    "overflowing": npy_header((1 << 33, 1 << 33)) + bytes(64),
    "negative": npy_header((-8,)) + bytes(64),
    "negative twice": npy_header((-2, -4)) + bytes(64),
    "too small": npy_header((7,)) + bytes(64),
    "of objects": npy_header((8,), "|O") + bytes(64),
    "complex": npy_header((4,), "<c16") + bytes(64),
    "of records": npy_header((8,), [("a", "<f8")]) + bytes(64),
    "of text": npy_header((8,), "<U2") + bytes(64),
    "no header": b"\x93NUMPY\x01\x00\xff\xff{",
    "a later version": b"\x93NUMPY\x09" + npy_header((8,))[7:] + bytes(64),
    "nothing": b"",
    "code": npy_header("__import__('os')") + bytes(64),
}


@pytest.mark.parametrize("name", SHAPES)
def test_arrays_that_are_none(tmp_path, name):
    path = tmp_path / "x"
    write_members(path, array_0=SHAPES[name])

    def refused():
        with pytest.raises(ValueError, match="x: not a file of kspan"):
            storage.load_file(path, ())

    refused()  # what is imported on the way is not counted
    assert peak_of(refused) < 1 << 20


def encrypted(path):
    data = bytearray(path.read_bytes())
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = -1
        while (at := data.find(mark, at + 1)) >= 0:
            data[at + place] |= 1
    path.write_bytes(data)


def twice(path):
    with zipfile.ZipFile(path, "a") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr("header.npy", b"x")


DAMAGE = {
    "encrypted": (encrypted, "is encrypted"),
    "empty": (lambda path: path.write_bytes(b""), "not a file of kspan"),
    "cut off": (lambda path: path.write_bytes(path.read_bytes()[:-30]), "not a file of kspan"),
    "two of one name": (twice, "two members of one name"),
    "no arrays": (lambda path: write_document(path, {"format": 2, "value": {"array": 0}}),
                  "array 0 is not in the file"),
    "one array twice": (lambda path: write_members(path, header=two_of_one(), array_0=eight()),
                        "array 0 is there twice"),
    "no format": (lambda path: write_document(path, [1]), "has no format"),
    "deep": (lambda path: deep(path, 100_000), "not a file of kspan"),
    "rather deep": (lambda path: deep(path, 900), "nested too deeply|not a file of kspan"),
    "bzip2": (lambda path: bzip2(path), "compressed in a way"),
}  # fmt: skip


def two_of_one():
    text = json.dumps({"format": storage.FORMAT, "value": [{"array": 0}] * 2}).encode()
    return npy_header((len(text),), "|u1") + text


def eight():
    return npy_header((8,)) + bytes(64)


def deep(path, depth):
    text = b'{"format": 2, "value": ' + b"[" * depth + b"]" * depth + b"}"
    write_members(path, header=npy_header((len(text),), "|u1") + text)


def bzip2(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("header.npy", b"x")


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_file_is_refused_in_one_sentence(tmp_path, name):
    path = tmp_path / "x"
    storage.save_file(path, [Leaf(np.arange(3.0))])
    damage, message = DAMAGE[name]
    damage(path)
    with pytest.raises(ValueError, match=message) as error:
        storage.load_file(path, TYPES)
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)


def test_what_is_no_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        storage.load_file(tmp_path / "nothing", TYPES)
    for load in (lambda path: storage.load_file(path, TYPES), storage.load_notes):
        with pytest.raises(ValueError, match="is a folder, not a file of kspan"):
            load(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is not a file"):
        storage.load_file(tmp_path / "pipe", TYPES)


@dataclass
class Typed:
    number: float = 1.0
    count: int = 1
    name: str | None = None
    flags: NDArray[np.bool_] | None = None
    leaves: list[Leaf] = field(default_factory=list)
    words: dict[str, int] = field(default_factory=dict)


LEAF = {"type": "Leaf", "fields": {"values": {"array": 0}, "size": 1.0}}
WRONG_FIELDS = {
    "text for a number": ({"number": "1"}, "a Typed in the file: number is a str, not a float"),
    "a list for a number": ({"number": [1]}, "number is a list"),
    "true for a number": ({"number": True}, "number is a bool"),
    "nothing for a number": ({"number": None}, "number is nothing, not a float"),
    "a fraction": ({"count": 1.5}, "count is a float, not a int"),
    "a number for a name": ({"name": 3}, "name is a int, not a str"),
    "a list for an array": ({"flags": [True]}, "flags is a list, not an array"),
    "floats for flags": ({"flags": {"array": 0}}, "flags is an array of float64"),
    "one leaf": ({"leaves": LEAF}, "leaves is a Leaf, not a list"),
    "no leaves": ({"leaves": [LEAF, 3]}, "leaves is a list in which one is a int, not a Leaf"),
    "a list for names": ({"words": []}, "words is a list, not names with values"),
    "no count": ({"words": {"dict": {"a": "b"}}}, "words holds one that is a str, not a int"),
    "an array by name": ({"flags": {"array": "0"}}, "array '0' is not in the file"),
    "an array by no number": ({"flags": {"array": True}}, "array True is not in the file"),
    "a negative array": ({"flags": {"array": -1}}, "array -1 is not in the file"),
    "text as a float": ({"number": {"float": "many"}}, "'many' is not a number"),
    "a list as a float": ({"number": {"float": [1]}}, "is not a number"),
    "an unknown member": ({"name": {"enum": "Colour", "name": "BLUE"}}, "unknown Colour 'BLUE'"),
    "a member by number": ({"name": {"enum": "Colour", "name": 1}}, "unknown Colour 1"),
    "a class as a member": ({"name": {"enum": "Leaf", "name": "x"}}, "unknown Leaf 'x'"),
    "a type by number": ({"name": {"type": 1}}, "unknown type 1"),
    "a type as a list": ({"name": {"type": ["Leaf"]}}, "unknown type"),
    "fields as a list": ({"name": {"type": "Leaf", "fields": []}}, "a list stands where names"),
    "an enum with fields": ({"name": {"type": "Colour", "fields": {}}}, "other fields"),
    "a list as a dict": ({"words": {"dict": []}}, "a list stands where names"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_FIELDS)
def test_fields_of_a_wrong_type_are_refused(tmp_path, name):
    change, message = WRONG_FIELDS[name]
    parts = {"number": 1, "count": 1, "name": None, "flags": None, "leaves": [], "words": {}}
    parts["words"] = {"dict": {}}
    value = {"type": "Typed", "fields": parts | change}
    write_document(tmp_path / "x", {"format": storage.FORMAT, "value": value}, [np.arange(3.0)])
    with pytest.raises(ValueError, match=message) as error:
        storage.load_file(tmp_path / "x", (*TYPES, Typed))
    assert str(error.value).startswith(f"{tmp_path / 'x'}: ")


def test_fields_of_the_right_type_are_taken(tmp_path):
    value = Typed(np.inf, 3, "a", np.array([True]), [Leaf(np.arange(2.0))], {"a": 1})
    storage.save_file(tmp_path / "x", value)
    back = storage.load_file(tmp_path / "x", (*TYPES, Typed))
    assert (back.number, back.count, back.name, back.words) == (np.inf, 3, "a", {"a": 1})


@pytest.mark.parametrize("seed", range(4))
def test_bytes_that_are_flipped_or_lost(tmp_path, seed):
    """Whatever happens to a file on its way: it loads, or a sentence says that it is broken."""
    rng = np.random.default_rng(seed)
    path = tmp_path / "x"
    storage.save_file(path, Tree([Leaf(np.arange(6.0))]), notes={"seconds": 1.0})
    whole = np.frombuffer(path.read_bytes(), dtype=np.uint8)
    for _ in range(150):
        data = whole.copy()
        for place in rng.integers(data.size, size=rng.integers(1, 4)):
            data[place] ^= 1 << rng.integers(8)
        path.write_bytes(data[: rng.integers(data.size)] if rng.random() < 0.2 else data)
        for load in (lambda: storage.load_file(path, TYPES), lambda: storage.load_notes(path)):
            said = f"{path}: "
            try:
                load()
            except ValueError as error:
                said = str(error)
            assert said.startswith(f"{path}: ")
            assert "\n" not in said


# --- what a killed process left behind


@pytest.mark.skipif(os.name != "posix", reason="processes are asked for as POSIX does")
def test_leftovers_of_dead_processes_are_removed(tmp_path, monkeypatch):
    def left_by(process, target):
        with monkeypatch.context() as patch:
            patch.setattr("os.getpid", lambda: process)
            handle, name = places._temporary(target)
        os.close(handle)
        return Path(name)

    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()  # its number is free again
    target, other = tmp_path / "proof.npz", tmp_path / "proof.npz.2"
    dead, alive = left_by(child.pid, target), left_by(os.getppid(), target)
    foreign = left_by(child.pid, other)
    stranger = tmp_path / ".proof.npz.swp"
    stranger.write_text("of an editor")
    storage.save_file(target, [1])
    assert not dead.exists()
    kept = {alive, foreign, stranger, target}
    assert set(tmp_path.iterdir()) == kept, "only those of this target and of dead processes go"


def test_places_that_cannot_be_written_to(tmp_path, monkeypatch):
    storage.require_writable(tmp_path / "new")
    (tmp_path / "file").write_text("x")
    storage.require_writable(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "x"
    with pytest.raises(IsADirectoryError, match="is a folder; name a file in it"):
        storage.require_writable(tmp_path)
    for folder in ("nowhere", "file"):
        with pytest.raises(FileNotFoundError, match="there is no folder"):
            storage.require_writable(tmp_path / folder / "x")

    def read_only(*_, **__):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.mkstemp", read_only)
    with pytest.raises(OSError, match=r"x: cannot write in the folder .*: Read-only file system"):
        storage.require_writable(tmp_path / "x")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_link_stays_a_link_and_a_device_is_refused(tmp_path):
    real, link = tmp_path / "real.bin", tmp_path / "link.bin"
    real.write_bytes(b"old")
    link.symlink_to(real)
    with places.replacing(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="is a device or a pipe"):
        places.require_writable(pipe)
    with pytest.raises(OSError, match="is a device or a pipe"), places.replacing(pipe):
        pass
    assert pipe.is_fifo()
