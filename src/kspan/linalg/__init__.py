"""Pure functions of arrays: eigensolvers, selections, moments. No validation, no I/O."""
