"""The ``kspan`` command: parse, call, write. Every command has a file of its own.

What a command needs is imported when it runs, so that ``kspan --help`` answers at once.
"""

from kspan.cli.app import app, main

__all__ = ["app", "main"]
