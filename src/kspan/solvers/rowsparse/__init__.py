"""Methods in which all components share the same k features."""
