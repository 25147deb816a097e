"""Dataclasses of arrays to one file and back: no pickles, written atomically, read warily."""

from kspan.storage.files import FORMAT, load_file, load_notes, save_file
from kspan.storage.places import replacing, require_writable
from kspan.storage.values import digest, misfit, size_in_bytes

__all__ = [
    "FORMAT",
    "digest",
    "load_file",
    "load_notes",
    "misfit",
    "replacing",
    "require_writable",
    "save_file",
    "size_in_bytes",
]
