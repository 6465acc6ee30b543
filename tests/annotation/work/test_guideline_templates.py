"""Templates of guidelines: two worked examples each, in all languages, around the definition of relevance."""

import pytest
from django.conf import settings

from annotation.models import Role
from annotation.work.settings import guidelines
from tests.factories import client_of, make_collection, make_member

LANGUAGES = [code for code, _name in settings.LANGUAGES]
WORDS = {
    "en": ("Example 1", "Example 2", "- Relevant.", "- Not relevant."),
    "zh-hans": ("示例 1", "示例 2", "- 相关。", "- 不相关。"),
}
pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", guidelines.TEMPLATES)
def test_each_has_two_examples_one_of_either_answer_and_the_judges_definition(name: str, language: str) -> None:
    books = make_collection("books")
    text = guidelines.template_text(books.relevance, name, language)
    assert all(text.count(words) == 1 for words in WORDS[language]) and "{" not in text
    author = make_member(books, "alice").user
    guidelines.write(collection=books, text=text, author=author)
    assert guidelines.follows_definition(books)


def test_a_template_fills_the_editor_and_is_saved_only_by_the_button() -> None:
    books = make_collection("books")
    charlie = client_of(make_member(books, "charlie", Role.ADMIN))
    address = "/c/books/settings/guidelines/"
    page = charlie.get(address)
    assert page.text.count("?template=") == len(guidelines.TEMPLATES) * len(LANGUAGES)
    chosen = charlie.get(f"{address}?template=products.zh-hans")
    assert "防水登山靴" in chosen.context["form"]["text"].value()
    assert not books.guidelines.exists()
    text = guidelines.template_text(books.relevance, "web", "en").replace("an egg", "a duck's egg")
    for name in ("web.fr", "other.en", "web", "../web.en", ""):
        page = charlie.get(address, {"template": name})
        assert page.status_code == 200 and "Example 1" not in page.context["form"]["text"].value()
    charlie.post(address, {"text": text, "base": "0"})
    assert "a duck's egg" in guidelines.current(books)[1]
    assert charlie.get("/c/books/settings/instruction/").text.count("?template=") == 0
