import pytest

from kspan.figures.appearance import component_names, one_line, shorten, signed


@pytest.mark.parametrize("longest", [3, 10, 28])
@pytest.mark.parametrize("length", [1, 9, 10, 11, 28, 29, 300])
def test_shortened_names_fit_and_keep_both_ends(length, longest):
    name = "".join(chr(ord("a") + i % 26) for i in range(length))
    short = shorten(name, longest)
    assert len(short) <= longest
    if length > longest:
        assert len(short) == longest
        assert name.startswith(short.split("…")[0])
        assert name.endswith(short.split("…")[1])
    else:
        assert short == name


def test_names_are_one_line_and_never_empty():
    assert shorten("a\n  b\tc", 10) == "a b c"
    assert one_line(" \n") == shorten("", 20) == "(no name)"


def test_a_sign_is_always_written():
    assert [signed(v) for v in (0.0, -0.25, 0.5, -2e-9)] == ["0", "−0.250", "+0.500", "−2e−9"]
    assert [signed(v, 2) for v in (0.5, -0.25, 0.004)] == ["+0.50", "−0.25", "+4e−3"]
    assert signed(2e-12) == "+2e−12"


def test_component_names():
    assert component_names(2) == ["PC1", "PC2"]
