"""Pictures and the template escape what comes from outside."""

from __future__ import annotations

import pytest
from jinja2 import UndefinedError

from exactstate.report.html import Html, drawing, page_template


def test_drawing_escapes_its_text() -> None:
    assert drawing(b"", "a\u202e<b>").endswith('alt="a\\u{202e}&lt;b&gt;">')


def test_template_escapes_shows_control_characters_and_refuses_what_is_missing() -> None:
    made = page_template().environment.from_string
    assert made("{{ a }}|{{ b }}").render(a='<\u202e">', b=Html("<i>")) == "&lt;\\u{202e}&#34;&gt;|<i>"
    with pytest.raises(UndefinedError):
        made("{{ nothing }}").render()
