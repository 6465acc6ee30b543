"""Pages of the second person's review: progress and results, claiming a query, the steps of a review."""

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation.access.permissions import Scope, action
from annotation.work.aspects import forms, review_figures, review_steps, reviews
from annotation.work.aspects.review_page import describe_review
from annotation.work.aspects.views.aspects import require_active
from corpus.errors import BadInput
from corpus.models.aspects import AspectReview, ReviewStep

REVIEWS = AspectReview.objects.select_related("query__collection", "revision__author", "reviewer")


@action("adjudicate")
@require_GET
def overview(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show progress, figures and the newest reviews; `?as=csv`, `tex` or `json` downloads the table."""
    if form := request.GET.get("as"):
        if form not in review_figures.FORMS:
            raise Http404(_("Choose CSV, LaTeX or JSON."))
        text = review_figures.write_table(scope.collection, form)
        name = f"{scope.collection.name}-aspect-reviews.{form}"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return HttpResponse(text, content_type=f"{review_figures.FORMS[form]}; charset=utf-8", headers=headers)
    counts = reviews.count_states(scope.collection)
    context = {
        "scope": scope,
        "counts": counts,
        "mine": reviews.open_review(scope.member),
        "waiting": reviews.reviewable_queries(scope.member).count(),
        "figures": review_figures.measure_reviews(scope.collection),
        "reviews": reviews.list_reviews(scope.collection),
        "levels": range(1, 6),
    }
    return render(request, "aspects/reviews.html", context)


@action("adjudicate")
@require_POST
def claim(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Claim the next query to review."""
    try:
        require_active(scope)
        review = reviews.claim_review(scope.member)
    except BadInput as error:
        messages.error(request, str(error))
        return redirect("aspect_reviews", scope.collection.name)
    return redirect("aspect_review", scope.collection.name, review.pk)


@action("adjudicate")
@require_http_methods(["GET", "POST"])
def review(request: HttpRequest, scope: Scope, review: int) -> HttpResponse:
    """Show the next step of the member's review, or the answers of a review; POST stores a step."""
    row = get_object_or_404(REVIEWS, pk=review, query__collection=scope.collection)
    mine, problem, status = row.reviewer_id == scope.member.assessor_id, "", 200
    if request.method == "POST":
        try:
            require_active(scope)
            if not mine:
                raise BadInput(_("Only the reviewer can answer here."))
            post, member = request.POST, scope.member
            match post.get("step"):
                case ReviewStep.Kind.WEIGHTS:
                    review_steps.give_weights(row, member, forms.read_importances(post))
                case ReviewStep.Kind.ASPECTS:
                    base = forms.read_row_number(post, "base")
                    importances = forms.read_importances(post)
                    review_steps.judge_aspects(row, member, forms.read_verdicts(post), importances, base)
                case ReviewStep.Kind.DOCUMENTS:
                    base = forms.read_row_number(post, "base")
                    verdicts = forms.read_document_verdicts(post, review_steps.decisions_under_review(row))
                    review_steps.judge_documents(row, member, verdicts, base)
                case _:
                    raise BadInput(_("This step is not the next one of the review. Reload the page."))
            row.refresh_from_db()
            if row.state == AspectReview.State.SUBMITTED:
                messages.success(request, _("Review submitted."))
            return redirect("aspect_review", scope.collection.name, row.pk)
        except BadInput as error:
            # 409 where the review was submitted or taken over in the meantime.
            problem, status = str(error), 422 if row.state == AspectReview.State.OPEN else 409
    context = describe_review(row, request.POST, mine=mine)
    context |= {"scope": scope, "mine": mine, "problem": problem}
    return render(request, "aspects/review.html", context, status=status)


@action("adjudicate")
@require_POST
def undo(request: HttpRequest, scope: Scope, review: int) -> HttpResponse:
    """Undo the newest step of the member's review."""
    row = _own_or_404(scope, review)
    try:
        require_active(scope)
        review_steps.undo_step(row, scope.member)
    except BadInput as error:
        messages.error(request, str(error))
    return redirect("aspect_review", scope.collection.name, row.pk)


@action("adjudicate")
@require_POST
def release(request: HttpRequest, scope: Scope, review: int) -> HttpResponse:
    """Release the member's review."""
    with transaction.atomic():
        reviews.release_review(scope.member, _own_or_404(scope, review))
    messages.success(request, _("The query can now be reviewed by another person."))
    return redirect("aspect_reviews", scope.collection.name)


def _own_or_404(scope: Scope, review: int) -> AspectReview:
    own = REVIEWS.filter(reviewer=scope.member.assessor)
    return get_object_or_404(own, pk=review, query__collection=scope.collection)
