"""The texts of people: plain text becomes paragraphs, and nothing else."""

import re

from hypothesis import given
from hypothesis import strategies as st

from annotation.templatetags.admin_text import paragraphs, queue_place


@given(st.text())
def test_no_tag_but_our_own_comes_out_of_a_text(text):
    html = paragraphs(text)
    assert set(re.findall(r"</?([a-z0-9]+)", html)) <= {"p", "br", "h3", "ul", "ol", "li"}
    assert "<" not in re.sub(r"</?(p|br|h3|ul|ol|li)>", "", html)


def test_paragraphs_lists_and_headings_are_made_from_plain_text():
    text = "First line\nsecond line\n\nHow to judge\n- closely\n  and twice\n- <b>calmly</b>\n\n1. one\n2. two"
    assert re.sub(r">\s+<", "><", paragraphs(text)).strip() == (
        "<p>First line<br>second line</p>"
        "<h3>How to judge</h3><ul><li>closely and twice</li><li>&lt;b&gt;calmly&lt;/b&gt;</li></ul>"
        "<ol><li>one</li><li>two</li></ol>"
    )
    assert paragraphs(" \n\n ").strip() == ""
    assert (queue_place(-0.0), queue_place(-0.9)) == ("0", "-0.9"), "a priority of minus nothing is 0"
