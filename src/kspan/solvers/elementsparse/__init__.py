"""Methods in which every component has k features of its own."""
