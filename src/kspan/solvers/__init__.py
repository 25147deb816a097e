"""Published methods, one file each. They take a problem and return a solution."""
