"""The page of the Lab: what each page for research is for."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from annotation.access.permissions import Scope, action
from config.navigation import address_of, lab_groups


@action("admin")
@require_GET
def lab(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the pages of the Lab as cards; where the collection has no Lab, how it gets one."""
    groups = [
        (title, [(address_of(tab, scope.collection), tab.title, tab.about) for tab in tabs])
        for title, tabs in lab_groups(scope)
    ]
    return render(request, "lab.html", {"scope": scope, "groups": groups})
