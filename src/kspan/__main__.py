"""``python -m kspan`` is the ``kspan`` command."""

from kspan.cli import main

main()
