"""HTML elements and the template escape what comes from outside."""

from __future__ import annotations

import pytest
from jinja2 import UndefinedError

from exactstate.report.html import Html, element, joined, page_template


def test_element_escapes_text_and_attributes_and_keeps_html() -> None:
    inner = element("b", "<x>")
    assert inner == "<b>&lt;x&gt;</b>"
    assert element("p", inner, "&", title='"', font_size="x") == (
        '<p title="&#34;" font-size="x"><b>&lt;x&gt;</b>&amp;</p>'
    )


def test_joined_shows_control_characters_by_their_code_point() -> None:
    assert joined(["a\u202eb", Html("<i>"), "\n\t"]) == "a\\u{202e}b<i>\n\t"


def test_template_escapes_shows_control_characters_and_refuses_what_is_missing() -> None:
    made = page_template().environment.from_string
    assert made("{{ a }}|{{ b }}").render(a='<\u202e">', b=Html("<i>")) == "&lt;\\u{202e}&#34;&gt;|<i>"
    with pytest.raises(UndefinedError):
        made("{{ nothing }}").render()
