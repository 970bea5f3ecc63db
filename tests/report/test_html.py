"""HTML elements escape what comes from outside."""

from __future__ import annotations

from exactstate.report.html import Html, element, joined, void_element


def test_element_escapes_text_and_attributes_and_keeps_html() -> None:
    inner = element("b", "<x>")
    assert inner == "<b>&lt;x&gt;</b>"
    assert element("p", inner, "&", title='"', http_equiv="x") == (
        '<p title="&quot;" http-equiv="x"><b>&lt;x&gt;</b>&amp;</p>'
    )


def test_void_element_has_no_closing_tag() -> None:
    assert void_element("img", alt="<") == '<img alt="&lt;">'


def test_joined_shows_control_characters_by_their_code_point() -> None:
    assert joined(["a\u202eb", Html("<i>"), "\n\t"]) == "a\\u{202e}b<i>\n\t"
