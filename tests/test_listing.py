"""Source lines as the notebook shows them."""

from lesson.listing import Listing

LISTING = Listing("k.cu", 9, ("    int a = 1;  // one <b>", "", "      f(a);"))


def test_a_listing_shows_the_files_line_numbers_and_no_common_indentation():
    assert str(LISTING) == (
        "k.cu, lines 9 to 11\n   9  int a = 1;  // one <b>\n  10\n  11    f(a);"
    )


def test_in_jupyter_code_is_escaped_comments_are_pale_and_numbers_are_not_read_aloud():
    page = LISTING._repr_html_()
    assert "// one &lt;b&gt;</span>" in page
    assert "<b>" not in page
    assert 'aria-hidden="true">   9  </span>int a = 1;' in page
    assert "k.cu, lines 9 to 11" in page


def test_tabs_count_as_four_columns():
    assert Listing("k.cu", 1, ("\tx;", "\t\ty;")).numbered() == [(1, "x;"), (2, "    y;")]
