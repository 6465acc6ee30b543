"""The start page, and the home of a collection: the overview for admins, their own work for everybody else."""

from django.contrib import messages
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from actions.services import Actor
from annotation.access.audit_log.recording import record
from annotation.access.permissions import Scope, SiteScope, action
from annotation.data.bulk.options import ActOptions
from annotation.data.bulk.services import MOST, plan_act, run_act
from annotation.data.forms import CollectionForm
from annotation.data.imports.importing import import_files
from annotation.data.imports.views import FilesForm
from annotation.home.overview.collection import load_overview
from annotation.home.overview.overview import list_collection_cards, own_work
from annotation.models import Role
from annotation.people.accounts.members import add_member, first_pair_url
from annotation.work.quality_control import onboarding
from corpus.chart_downloads import download
from corpus.errors import BadInput
from corpus.models import Label, Pair

STOP_POLLING = 286  # HTMX stops polling at this status.


@action("site")
@require_GET
def site_home(request: HttpRequest, scope: SiteScope) -> HttpResponse:
    """Show the site's home: the person's collections with their progress."""
    return render(request, "dashboard/site_home.html", {"scope": scope, "cards": list_collection_cards(scope.user)})


@action("own-site")
@require_http_methods(["GET", "POST"])
def new_collection(request: HttpRequest, scope: SiteScope) -> HttpResponse:
    """Show the form of a new collection; POST creates it, with its maker as member, and begins to import its files."""
    is_sent = request.method == "POST"
    form = CollectionForm(request.POST if is_sent else None)
    files_form = FilesForm(request.POST, request.FILES) if is_sent else FilesForm()
    if is_sent and form.is_valid() and files_form.is_valid():
        with transaction.atomic():
            collection = form.save()
            record(scope, "collection.made", collection)
            add_member(user=scope.user, collection=collection, role=Role.ADMIN, by=scope.user)
        if not files_form.cleaned_data["files"]:
            if "log" in request.POST:
                return redirect("import_query_log", collection.name)
            messages.success(request, _("Collection created. Next: import documents and queries, or a query log."))
            return redirect("import", collection.name)
        try:
            row = import_files(collection, scope.user, files_form.cleaned_data["files"])
            return redirect("file_import", collection.name, row.number)
        except BadInput as error:
            messages.error(request, _("Collection created without files: %(reason)s") % {"reason": error})
            return redirect("import", collection.name)
    context = {"scope": scope, "form": form, "files_form": files_form}
    return render(request, "dashboard/new.html", context, status=422 if is_sent else 200)


@action("admin")
@require_POST
def judge_by_hand(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Send pairs without a label to people, of whom the visitor becomes one, and open the judging page."""
    collection = scope.collection
    unlabelled = Pair.objects.filter(~Exists(Label.objects.filter(pair=OuterRef("pk"), aspect=None)))
    pairs = list(unlabelled.filter(collection=collection).order_by("pk").values_list("pk", flat=True)[:MOST])
    try:
        if scope.membership is None:
            add_member(user=scope.user, collection=collection, role=Role.ADMIN, by=scope.user)
        run_act(Actor.of(scope), plan_act(collection=collection, kind="send", pairs=pairs, by=scope.user), ActOptions())
    except BadInput as error:
        messages.error(request, str(error))
        return redirect("collection", collection.name)
    return redirect(first_pair_url(collection))


@action("member")
@require_GET
def collection_home(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show a collection's home, which depends on the person's role."""
    if not scope.may_read_results:
        own = {"scope": scope, "own": own_work(scope.member), "stop": onboarding.find_stop(scope.member)}
        return render(request, "dashboard/own_home.html", own)
    may = {"judges": scope.may_judge, "adjudicates": scope.may_adjudicate}
    reader = scope.user if scope.may_admin else None
    context = {"scope": scope, **load_overview(scope.collection, request.GET.get("campaign", ""), reader, **may)}
    if file := download(request, [context["board"][key] for key in ("labels", "flow", "accuracy", "agreement")]):
        return file
    if not request.headers.get("HX-Request"):
        return render(request, "dashboard/home.html", context)
    # HTMX asks for the part that changes while a campaign runs.
    is_live = context["overview"].is_live
    return render(request, "dashboard/_story.html", context, status=200 if is_live else STOP_POLLING)
