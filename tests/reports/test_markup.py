"""Elements put together: what is not markup already is text, whatever it holds."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keypatch.reports.markup import Markup, element, join


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@given(st.text(st.characters(exclude_characters="\0\r", exclude_categories=["Cs"])))
def test_any_text_comes_back_as_text_and_any_attribute_as_itself(text: str) -> None:
    reader = Reader()
    reader.feed(element("p", text, title=text))
    reader.close()
    assert reader.tags == [("p", {"title": text})]
    assert reader.text == text


def test_markup_stays_and_parts_are_joined() -> None:
    assert element("td", element("b", "<"), [" & ", element("br")]) == "<td><b>&lt;</b> &amp; <br></td>"
    assert isinstance(join(["a", Markup("<br>")]), Markup)


@pytest.mark.parametrize(("value", "written"), [(None, ""), (False, ""), (True, " checked"), (0, ' checked="0"')])
def test_an_attribute_may_be_left_out_or_stand_alone(value: object, written: str) -> None:
    assert element("input", checked=value) == f"<input{written}>"


def test_underscores_are_hyphens_and_a_trailing_one_is_dropped() -> None:
    assert element("p", class_="a", aria_label="b") == '<p class="a" aria-label="b"></p>'


def test_half_a_surrogate_pair_can_still_be_written_to_a_file() -> None:
    assert element("p", "a\ud800").encode("utf-8") == b"<p>a?</p>"
