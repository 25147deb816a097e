"""The race: kspan and its peers on the same data, each in an environment of its own."""
