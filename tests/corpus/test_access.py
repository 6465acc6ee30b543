"""Views outside `annotation` are guarded by the same rules (corpus/access.py)."""

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.test import RequestFactory

from annotation.models import Role
from corpus.access import AccessScope, action
from tests.factories import make_collection, make_member, make_user

pytestmark = pytest.mark.django_db


@action("admin")
def settings_of(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    return HttpResponse(f"{scope.user.username} in {scope.collection.name}")


def ask(user: object) -> HttpResponse:
    request = RequestFactory().get("/c/birds/training/")
    request.user = user
    return settings_of(request, name="birds")


def test_an_admin_gets_the_page_with_the_scope_and_everybody_else_does_not() -> None:
    birds = make_collection("birds")
    assert ask(make_member(birds, "alice", Role.ADMIN).user).content == b"alice in birds"
    bob = make_member(birds, "bob", Role.ANNOTATOR)
    with pytest.raises(PermissionDenied):
        ask(bob.user)
    with pytest.raises(Http404):
        ask(make_user("charlie"))
    assert ask(AnonymousUser()).status_code == 302
    assert settings_of.action == "admin", "as the walk over all addresses reads it"
