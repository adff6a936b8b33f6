"""Cards: the same content as text and as HTML."""

import html
import re

from lesson.cards import Card, Row, Score, Scores
from lesson.findings import Finding

FINDING = Finding(
    kind="read-before-wait",
    says="Thread 0 reads <tile> early.",
    cure="Wait & read.",
    source="x = tile[i] < 1;",
    state=(("barrier", "bar"), ("phase", "0")),
)
CARD = Card(
    "Who says what:",
    (Row("bits", "wrong"), Row("finding", "read-before-wait", FINDING)),
    False,
    "!",
)


def words(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def test_text_and_html_say_the_same():
    text = " ".join(str(CARD).replace("> x", "x").split())
    assert words(CARD._repr_html_()) == text
    assert text == (
        "Who says what: bits wrong finding read-before-wait x = tile[i] < 1; Thread 0 reads <tile>"
        " early. Proof: barrier bar; phase 0. Cure: Wait & read. !"
    )


def test_text_fits_a_terminal_of_92_columns():
    card = Card("A:", (Row("bits", "wrong " * 40), Row("all", "so", FINDING)))
    assert max(map(len, str(card).splitlines())) <= 92


def test_the_first_line_of_a_folded_output_gives_nothing_away():
    assert CARD._repr_html_().split("\n")[0] == "<figure>"
    assert str(CARD).split("\n")[0].endswith(":")


def test_good_bad_and_neutral_cards_differ_in_their_bar():
    bars = {
        re.search(r"border-left: 4px solid (#\w+)", Card("A:", CARD.rows, good)._repr_html_())[1]
        for good in (True, False, None)
    }
    assert len(bars) == 3


def test_a_card_shown_outside_of_a_notebook_is_printed(capsys):
    CARD.show()
    assert capsys.readouterr().out == f"{CARD}\n"


def test_a_table_of_scores_says_the_same_as_text_and_as_html():
    scores = Scores((Score("no wait", "wrong", "nothing", "read-before-wait"),))
    assert str(scores).split("\n")[0] == "Who noticed:"
    for said in ("no wait", "wrong", "nothing", "read-before-wait", "an H200"):
        assert said in str(scores)
        assert said in words(scores._repr_html_())
