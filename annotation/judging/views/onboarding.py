"""Pages that an annotator answers before the next pair: consent, returned batches, changed guidelines."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from annotation.judging.forms import Invalid, parse_whole_number
from annotation.judging.views import judging
from annotation.models import Membership
from annotation.permissions import Scope, action
from annotation.quality_control import consent, onboarding
from corpus.errors import BadInput


@action("judge")
@require_POST
def judge_consent(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Agree to the current consent text; the answer is the next pair."""
    try:
        consent.accept(membership=scope.member, version=parse_whole_number(request.POST, "version"))
    except (BadInput, Invalid) as error:
        return judging.render_task(request, scope, status=409, problem=str(error))
    scope.member.refresh_from_db(fields=["consent"])
    return judging.respond_with_next(request, scope)


@action("judge")
@require_http_methods(["GET", "POST"])
def judge_returned(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the member's returned batches; POST says that they were read."""
    if request.method == "POST":
        Membership.objects.filter(pk=scope.member.pk).update(returned=0)
        return redirect("judge", scope.collection.name)
    context = {"scope": scope, "section": "judge", "batches": onboarding.returned_batches(scope.member)}
    return render(request, "judging/returned.html", context)


@action("judge")
@require_http_methods(["GET", "POST"])
def judge_guidelines(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show what is new in the guidelines; POST says that it was read."""
    if request.method == "POST":
        try:
            onboarding.acknowledge_guidelines(scope.member, parse_whole_number(request.POST, "version"))
        except Invalid as error:
            return HttpResponse(str(error), status=422, content_type="text/plain; charset=utf-8")
        return redirect("judge", scope.collection.name)
    number, lines = onboarding.guideline_changes(scope.member)
    context = {"scope": scope, "section": "judge", "number": number, "lines": lines}
    return render(
        request, "judging/guidelines_changed.html", context | {"news": onboarding.has_new_guidelines(scope.member)}
    )
