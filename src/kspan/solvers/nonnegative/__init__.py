"""Methods for nonnegative sparse components, one file each."""
