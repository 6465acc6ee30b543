"""The start page: the collections that one may see."""

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from annotation.audit_log.recording import record
from annotation.dashboard import overview
from annotation.data.forms import CollectionForm
from annotation.permissions import SiteScope, action


@action("site")
@require_GET
def home(request: HttpRequest, scope: SiteScope) -> HttpResponse:
    """Collections with their progress."""
    return render(
        request, "dashboard/site_home.html", {"scope": scope, "cards": overview.list_collection_cards(scope.user)}
    )


@action("own-site")
@require_http_methods(["GET", "POST"])
def new_collection(request: HttpRequest, scope: SiteScope) -> HttpResponse:
    """Owners begin a collection."""
    form = CollectionForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with transaction.atomic():
            collection = form.save()
            record(scope, "collection.made", collection)
        messages.success(request, _("The collection is there. Next: bring in its documents and queries."))
        return redirect("collection", collection.name)
    status = 422 if form.is_bound else 200
    return render(request, "dashboard/new.html", {"scope": scope, "form": form}, status=status)
