"""Contribution and evidence of a pair, edited and saved."""

from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_POST
from psycopg import Connection

from annotation.judging import evidence, submitting
from annotation.judging.views.judging import decide
from annotation.permissions import Scope, action
from annotation.queue.annotators import AnnotatorContext


@action("judge")
@require_POST
def judge_evidence(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Save contribution and evidence of a pair, and claim the next."""

    def work(db: Connection[Any], desk: AnnotatorContext) -> int | None:
        form = evidence.parse_edit(request.POST, scope.member)
        write = partial(evidence.append_target, scope.member, form)
        return submitting.finish(db, desk, form.item, form.token, form.texts, write)

    return decide(request, scope, work)
