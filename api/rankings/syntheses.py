"""Synthetic queries: what writing them would cost, the start, what was written, its end, the import of bundles."""

from pathlib import Path
from typing import Any, Literal

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema, Status
from ninja.decorators import decorate_view

from annotation.audit_log.recording import record
from annotation.models.snapshots import Snapshot
from api.authentication import may, scope_of
from api.idempotency import once
from api.models import AccessToken
from api.problems import validate_form
from api.routes.model_jobs import (
    JobAct,
    JobEstimateOut,
    LimitsIn,
    ModelJobOut,
    control_model_job,
    show_estimate,
    show_model_job,
)
from api.routes.pages import Cursor, Limit, Page, page_of
from benchmark.models import Synthesis, SyntheticBundle
from benchmark.synthesis import files, importing, lifecycle, page
from benchmark.synthesis.forms import FORMS, SeedsForm
from benchmark.synthesis.queries import MOST_PAIRS, PAIRS, SHARE
from corpus.errors import BadInput
from corpus.models import Collection
from corpus.numbered import find_numbered, numbered_or_404
from judges.campaigns.selectors import with_campaign_number

router = Router(tags=["synthesis"])
MANAGE = AccessToken.TokenScope.MANAGE
LINES: dict[str, Any] = {
    "responses": {200: {"description": "The file.", "content": {"application/jsonl": {"schema": {"type": "string"}}}}}
}


class SynthesisIn(LimitsIn):
    """Queries for a model to write: with passages (bundles), keyword forms of training queries, or from documents."""

    kind: Literal["bundles", "keywords", "ask"] = "bundles"
    judge: str = Field(max_length=100, description="The model.")
    writer: str = Field("", max_length=100, description="Of bundles: who writes the passages; empty: the same model.")
    limit: int | None = Field(20, ge=1, lt=1 << 31, description="Seeds, drawn at random; null: all queries.")
    seed: int = Field(0, ge=0, lt=1 << 31)
    dev: float | None = Field(None, ge=0, le=lifecycle.MOST_DEV, description="Of bundles: the share of a dev split.")
    export: int | None = Field(None, ge=1, lt=1 << 63, description="Of keywords: the training set's number.")
    share: float = Field(SHARE, ge=0.001, le=1, description="Of keywords: the share of its training queries.")
    pairs: int = Field(PAIRS, ge=1, le=MOST_PAIRS, description="Of keywords and ask: documents for each query.")


class SynthesisOut(ModelJobOut):
    """A synthesis. `made` of the seeds became a query, `dropped` did not."""

    kind: str = Field(description="bundles, keywords or ask.")
    judge: str
    writer: str
    made: int
    dropped: int


class SyntheticQueryOut(Schema):
    """A query that was written from a seed, or why none was. `bundle`: docs/synthesis.md."""

    number: int
    seed: str
    seed_text: str
    query: str | None
    bundle: dict[str, Any] | None
    step: str = Field(description="Where it was dropped; empty: it was not.")
    reason: str


class AddedOut(Schema):
    """Rows that an import of bundles added, all marked synthetic."""

    queries: int
    documents: int
    pairs: int


@router.get("/collections/{slug:name}/syntheses", auth=may("admin"), response=Page[SynthesisOut])
def list_syntheses(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the syntheses, the oldest first."""
    return page_of(_syntheses(request), after, limit, _show_synthesis)


@router.post("/collections/{slug:name}/syntheses/estimate", auth=may("admin"), response=JobEstimateOut)
def estimate_synthesis(request: HttpRequest, name: str, body: SynthesisIn) -> Any:
    """Estimate the calls and cost of a synthesis; nothing starts."""
    collection = scope_of(request).collection
    return show_estimate(lifecycle.estimate_cost(collection, _form_of(collection, body).options()))


@router.post("/collections/{slug:name}/syntheses", auth=may("admin", MANAGE), response={201: SynthesisOut})
@decorate_view(once)
def start_synthesis(request: HttpRequest, name: str, body: SynthesisIn) -> Any:
    """Start a synthesis, or go on with the one of the same seeds and options; a worker does the work."""
    scope = scope_of(request)
    options = _form_of(scope.collection, body).options()
    with transaction.atomic():
        made = lifecycle.start_or_join(collection=scope.collection, options=options, by=scope.user.username)
        record(scope, "synthesis.started", synthesis=made.number)
    return Status(201, _show_synthesis(_find_synthesis(request, made.number)))


def _form_of(collection: Collection, body: SynthesisIn) -> SeedsForm:
    """Fill the page's form of this kind of synthesis. Raises ValidationError, which names wrong fields."""
    given = body.dict()
    if body.kind == "keywords":
        row = find_numbered(Snapshot.objects, collection, body.export)
        # The page's form knows training sets by their folders, a request by the export's number.
        given["source"] = Path(row.folder).name if row else ""
    form = FORMS[body.kind](given, collection=collection)
    validate_form(form, {"source": "export"})
    return form


@router.get("/collections/{slug:name}/syntheses/{number}", auth=may("admin"), response=SynthesisOut)
def read_synthesis(request: HttpRequest, name: str, number: int) -> Any:
    """Read how far a synthesis is."""
    return _show_synthesis(_find_synthesis(request, number))


@router.get(
    "/collections/{slug:name}/syntheses/{number}/queries",
    auth=may("admin"),
    response=Page[SyntheticQueryOut],
)
def list_synthetic_queries(
    request: HttpRequest, name: str, number: int, dropped: bool = False, after: Cursor = 0, limit: Limit = 100
) -> Any:
    """List the queries that were written, or with `dropped` the seeds from which none was."""
    found = _find_synthesis(request, number)
    rows = SyntheticBundle.objects.filter(synthesis=found)
    rows = rows.exclude(step="") if dropped else rows.filter(bundle__isnull=False)
    return page_of(rows, after, limit, _show_query)


@router.get("/collections/{slug:name}/syntheses/{number}/file", auth=may("admin"), openapi_extra=LINES)
def read_synthesis_file(request: HttpRequest, name: str, number: int) -> Any:
    """Download what was written so far as JSON lines."""
    found = _find_synthesis(request, number)
    headers = {"Content-Disposition": f'attachment; filename="synthetic-{found.number}.jsonl"'}
    text = files.lines_of(files.read_bundles(found))
    return HttpResponse(text, content_type="application/jsonl; charset=utf-8", headers=headers)


@router.post(
    "/collections/{slug:name}/syntheses/{number}/import",
    auth=may("admin", MANAGE),
    response=AddedOut,
)
@decorate_view(once)
def import_bundles(request: HttpRequest, name: str, number: int) -> Any:
    """Import the bundles that there are: queries, documents and pairs to judge. A second time changes nothing."""
    scope, found = scope_of(request), _find_synthesis(request, number)
    if found.kind != Synthesis.Product.BUNDLES:
        raise BadInput(_("Queries without passages are in the collection as soon as they are written."))
    with transaction.atomic():
        new = importing.import_bundles(found)
        record(scope, "synthesis.imported", synthesis=found.number, new=new)
    return new


@router.post(
    "/collections/{slug:name}/syntheses/{number}/{act}",
    auth=may("admin", MANAGE),
    response=SynthesisOut,
)
@decorate_view(once)
def control_synthesis(request: HttpRequest, name: str, number: int, act: JobAct, body: LimitsIn | None = None) -> Any:
    """Cancel a synthesis, or make the rest of one that was cancelled or failed."""
    found = _find_synthesis(request, number)
    control_model_job(
        request,
        found,
        act,
        body,
        acts={"cancel": lifecycle.cancel_synthesis, "go-on": lifecycle.go_on},
        set_limits=lifecycle.set_limits,
        audit="synthesis.control",
        synthesis=found.number,
    )
    return _show_synthesis(_find_synthesis(request, number))


def _syntheses(request: HttpRequest) -> Any:
    return with_campaign_number(page.list_syntheses(scope_of(request).collection).select_related("collection"))


def _find_synthesis(request: HttpRequest, number: int) -> Synthesis:
    rows, collection = _syntheses(request), scope_of(request).collection
    found: Synthesis = numbered_or_404(rows, collection, number, _("Synthesis not found."))
    return found


def _show_synthesis(row: Any) -> dict[str, Any]:
    judge = row.options["judge"]
    named = {"kind": row.kind, "judge": judge, "writer": row.options.get("writer") or judge}
    return {**show_model_job(row), **named, "made": row.made, "dropped": row.dropped}


def _show_query(row: SyntheticBundle) -> dict[str, Any]:
    bundle = row.bundle
    said = {"seed": row.seed_id, "seed_text": row.seed_text, "step": row.step, "reason": row.reason}
    return {"number": row.pk, **said, "query": bundle and bundle.get("query"), "bundle": bundle}
