"""The search for witnesses: closed forms, relaxations, branch and bound, bounds of wide data."""
