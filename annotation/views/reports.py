"""Pages of agreement and exports."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from annotation.permissions import Scope, action


@require_GET
@action("admin")
def agreement(request: HttpRequest, scope: Scope) -> HttpResponse:
    """How far the assessors of the collection agree."""
    return render(request, "reports/agreement.html", {"scope": scope, "section": "agreement"})


@require_GET
@action("admin")
def exports(request: HttpRequest, scope: Scope) -> HttpResponse:
    """The snapshots that were made, and how to make one."""
    return render(request, "reports/exports.html", {"scope": scope, "section": "exports"})
