"""Features from which all others can be told: kspan and its peers, in a race of their own."""
