"""Two people who make a thing of one name at once: the page answers the second as if they had come a moment later."""

from typing import Any

import pytest
from django.test import Client

from annotation.models import Role
from annotation.quality.panels import applying
from corpus.models import Collection
from judges.models import JudgeVersion, Panel
from judges.panels.offline_panel import ensure_offline
from tests.factories import make_collection, make_member, make_user

pytestmark = pytest.mark.django_db


def test_the_second_of_two_collections_of_one_name_keeps_its_form(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.force_login(make_user("olga", is_owner=True))
    make_collection("c")
    look, looks = Collection.validate_unique, []

    def validate_unique(row: Collection, *args: Any, **kwargs: Any) -> None:
        """The first look, before the other request has stored its collection, finds nothing."""
        looks.append(row)
        if len(looks) > 1:
            look(row, *args, **kwargs)

    monkeypatch.setattr(Collection, "validate_unique", validate_unique)
    refused = client.post("/collections/new/", {"name": "c", "grades": "4"})
    assert refused.status_code == 422 and 'value="c"' in refused.content.decode()
    assert refused.context["form"].errors["name"] and (Collection.objects.count(), len(looks)) == (1, 2)


def test_of_two_first_panels_of_a_collection_the_later_holds(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    ensure_offline()
    books = make_collection("books")
    client.force_login(make_member(books, "charlie", Role.ADMIN).user)
    for name in ("a", "b"):
        JudgeVersion.objects.create(name=name, provider="openai", model=name)
    applying.make_panel(collection=books, judges=["b"])
    found, looks = applying.base_panel, []

    def base_panel(*args: Any, **kwargs: Any) -> Panel:
        """The first look, before the other request has stored its panel, finds the default."""
        looks.append(args)
        return ensure_offline() if len(looks) == 1 else found(*args, **kwargs)

    monkeypatch.setattr(applying, "base_panel", base_panel)
    assert client.post("/c/books/models/panel/", {"judge": ["a"]}).status_code == 302
    assert Panel.objects.get(name="books:chosen").ensemble == ["a"] and len(looks) == 2
