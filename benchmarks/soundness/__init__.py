"""A fuzzer that tries to make kspan say something false with the word "proved" on it."""
