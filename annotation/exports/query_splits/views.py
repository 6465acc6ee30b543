"""The page of queries that are held out of training sets."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST

from actions.options import show_refusal
from annotation.access.permissions import Scope, action
from annotation.exports.query_splits.forms import KeptListForm
from annotation.exports.query_splits.lists import delete_split, keep_split, list_splits
from corpus.errors import BadInput


@action("admin")
@require_http_methods(["GET", "POST"])
def query_lists(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the held-out lists; POST stores one."""
    form = KeptListForm(request.POST, request.FILES) if request.method == "POST" else KeptListForm()
    if form.is_valid():
        name = form.cleaned_data["name"]
        try:
            split = keep_split(scope, scope.collection, name, form.read_ids(), made_by=scope.user.username)
        except BadInput as error:
            show_refusal(form, error)
        else:
            words = ngettext(
                "%(n)s query of “%(name)s” stays out of training sets.",
                "%(n)s queries of “%(name)s” stay out of training sets.",
                len(split.query_ids),
            )
            messages.success(request, words % {"n": f"{len(split.query_ids):,}", "name": split.name})
            return redirect("query_lists", scope.collection.name)
    context = {"scope": scope, "lists": list_splits(scope.collection), "form": form}
    return render(request, "query_splits/lists.html", context, status=422 if form.is_bound else 200)


@action("admin")
@require_POST
def delete_query_list(request: HttpRequest, scope: Scope, split: str) -> HttpResponse:
    """Delete a list: training sets may contain its queries from now on."""
    try:
        delete_split(scope, scope.collection, split)
    except BadInput as error:
        messages.error(request, str(error))
    else:
        messages.success(request, _("“%(name)s” was deleted.") % {"name": split})
    return redirect("query_lists", scope.collection.name)
