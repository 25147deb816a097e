"""A fuzzer that tries to make kspan say something false with the word "proved" on it.

``python -m benchmarks.soundness --seconds 60`` draws problems (`problems.py`), runs every way to
make a certificate on them (`routes.py`, `joint_routes.py`), holds what comes back (`claims.py`)
against enumeration in extended precision (`oracle.py` and `joint_oracle.py`, which share no code
with kspan), forges certificates, records and files (`mutations.py`), kills, interrupts and fills
the disk (`faults.py`). What is wrong is reduced to a few lines in a folder (`reduce.py`), and the
exit code is then 1. With ``--add`` the counts are added to `soundness.json`, and `soundness.md` is
its table (`counts.py`): delete both to start anew.

A new kind of problem is a function and a line in ``problems.KINDS``; a new way to make certificates
is a function and a line in ``routes.HONEST`` or ``joint_routes.JOINT``.
"""
