"""Methods that choose the features from which all others can be told."""
