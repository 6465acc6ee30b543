"""Gold: the admin's page of samples, and what was said about them."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation.models import Membership
from annotation.models.quality_control import GoldSet
from annotation.permissions import Scope, action
from annotation.quality_control import gold, gold_reasons
from annotation.quality_control.forms import GoldForm
from corpus.errors import BadInput
from corpus.numbered import numbered_or_404

USUAL = 50  # Pairs of a sample, unless the form says otherwise.


@action("admin")
@require_http_methods(["GET", "POST"])
def gold_sets(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the gold samples and how far they are; POST draws one."""
    form = GoldForm(request.POST or None, initial={"size": USUAL, "seed": scope.collection.seed, "spot": 0.2})
    problem = ""
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        try:
            made = gold.draw(collection=scope.collection, by=scope.user, **given)
        except BadInput as error:
            problem = str(error)
        else:
            n = made.pairs.filter(practice=False).count()
            messages.success(request, _("%(n)s pairs drawn, plus practice pairs.") % {"n": n})
            return redirect("gold", scope.collection.name)
    members = Membership.objects.filter(collection=scope.collection, is_active=True).select_related("user")
    context = {
        "scope": scope,
        "form": form,
        "problem": problem,
        "sets": gold.list_progress(scope.collection),
        "members": members.order_by("-is_expert", "user__username"),
        "drawn": USUAL + gold.PRACTICE,
        "arguments": gold_reasons.of_sample(scope.collection, USUAL + gold.PRACTICE),
    }
    return render(request, "quality_control/gold.html", context, status=422 if form.is_bound else 200)


@action("admin")
@require_POST
def gold_end(request: HttpRequest, scope: Scope, gold_set: int) -> HttpResponse:
    """End a gold sample: its remaining pairs are not assigned any more."""
    rows = GoldSet.objects.select_related("collection")
    row = numbered_or_404(rows, scope.collection, gold_set, _("Gold sample not found."))
    gold.end(gold_set=row, by=scope.user)
    messages.success(request, _("The sample has ended. Expert grades are kept."))
    return redirect("gold", scope.collection.name)


@action("admin")
@require_GET
def gold_answers(request: HttpRequest, scope: Scope, gold_set: int) -> HttpResponse:
    """Show every pair of a sample with what was said about it."""
    row = numbered_or_404(GoldSet.objects, scope.collection, gold_set, _("Gold sample not found."))
    # A sample has hundreds of pairs, so that all their answers are read together.
    pairs = row.pairs.select_related("pair__query", "pair__document").prefetch_related("answers__membership__user")
    context = {"scope": scope, "gold_set": row, "pairs": pairs.order_by("place")}
    return render(request, "quality_control/gold_answers.html", context)
