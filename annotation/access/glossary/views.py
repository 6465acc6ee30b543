"""The page of the glossary."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from annotation.access.glossary.terms import TERMS
from annotation.access.permissions import SiteScope, action


@action("site", "GET")
def glossary(request: HttpRequest, scope: SiteScope) -> HttpResponse:
    """Show every term with its explanation."""
    return render(request, "glossary/glossary.html", {"scope": scope, "terms": TERMS})
