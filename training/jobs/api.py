"""Training jobs and the models that they publish."""

from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from django.db.models import QuerySet
from django.http import Http404, HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema, Status
from ninja.decorators import decorate_view

from actions.services import Actor
from api.authentication import MANAGE, may, scope_of
from api.downloads import DOWNLOAD
from api.idempotency import once
from api.operations import operation
from api.paging import Cursor, Limit, Page, find_row, page_of
from corpus.numbered import numbered_or_404
from store.downloads import send_file
from store.files import fetch
from training.jobs import model_files, pages, services
from training.jobs.options import UseOptions
from training.lineage.model_sources import count_changed
from training.models import Job, Model

router = Router(tags=["training"])
Use = Literal["evaluate", "rerank", "order", "generate"]


class TrainingSetOut(Schema):
    """An export that a training can learn from."""

    export: int
    format: str
    description: str


class JobOut(Schema):
    """A job of training: a training, or scoring with a model that one published."""

    number: int
    kind: str
    state: str
    device: str
    phase: str
    done: int
    total: int
    error: str
    verdict: str = Field(description="Whether the training gained anything, in a sentence.")
    model: int | None = Field(description="The model that a training published.")
    created_at: datetime
    ended_at: datetime | None


class ModelOut(Schema):
    """A published model. `is_here`: its files are on this machine, to be served and used."""

    number: int
    name: str
    recipe: str
    base: str
    summary: dict[str, Any]
    is_here: bool
    changed_labels: int = Field(description="Labels that it learned from and that are others now.")
    created_at: datetime


class ModelFileOut(Schema):
    """A file of a model."""

    name: str
    bytes: int


@router.get("/collections/{slug:name}/trainings", auth=may("admin"), response=Page[JobOut])
def list_trainings(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the trainings."""
    return page_of(_jobs(request).filter(kind=Job.Kind.TRAIN), after, limit, _show_job)


@router.get("/collections/{slug:name}/trainings/sets", auth=may("admin"), response=list[TrainingSetOut])
def list_training_sets(request: HttpRequest, name: str) -> Any:
    """List the exports that a training can learn from, the newest first."""
    collection = scope_of(request).collection
    labels = dict(pages.training_sets(collection))
    return [
        {"export": row.number, "format": row.format, "description": labels[row.folder]}
        for row in services.exports_of(collection)
    ]


@router.get("/collections/{slug:name}/trainings/{number}", auth=may("admin"), response=JobOut)
def read_training(request: HttpRequest, name: str, number: int) -> Any:
    """Read how far a training, or another job with a model, is."""
    return _show_job(_find_job(request, number))


@router.post("/collections/{slug:name}/trainings/{number}/{act}", auth=may("admin", MANAGE), response=JobOut)
@decorate_view(once)
def control_training(request: HttpRequest, name: str, number: int, act: Literal["cancel", "go-on"]) -> Any:
    """Cancel a job, or let a cancelled or failed one go on from its newest checkpoint."""
    return _show_job(services.control_job(Actor.of(scope_of(request)), _find_job(request, number), act))


def _jobs(request: HttpRequest) -> QuerySet[Job]:
    return Job.objects.filter(collection=scope_of(request).collection).select_related("model")


def _find_job(request: HttpRequest, number: int) -> Job:
    return numbered_or_404(_jobs(request), scope_of(request).collection, number, _("Training not found."))


def _show_job(job: Job) -> dict[str, Any]:
    fields = ("kind", "state", "device", "phase", "done", "total", "error", "verdict", "created_at", "ended_at")
    model = getattr(job, "model", None)
    return {"number": job.number, "model": model and model.pk, **{name: getattr(job, name) for name in fields}}


operation(router, services.start_training, "POST", "/trainings", response=JobOut, show=_show_job)


@router.get("/collections/{slug:name}/models", auth=may("admin"), response=Page[ModelOut])
def list_models(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the models that were trained here."""
    page = page_of(_models(request), after, limit)
    changed = count_changed(page["items"])
    return {**page, "items": [_show_model(model, changed.get(model.pk, 0)) for model in page["items"]]}


@router.get("/collections/{slug:name}/models/{number}", auth=may("admin"), response=ModelOut)
def read_model(request: HttpRequest, name: str, number: int) -> Any:
    """Read a model."""
    model = _find_model(request, number)
    return _show_model(model, count_changed([model]).get(model.pk, 0))


@router.get("/collections/{slug:name}/models/{number}/files", auth=may("admin"), response=list[ModelFileOut])
def list_model_files(request: HttpRequest, name: str, number: int) -> Any:
    """List the files of a model; none where a command wrote it outside of the site's own folder."""
    sizes = model_files.list_model_files(_find_model(request, number))
    return [{"name": file, "bytes": size} for file, size in sizes.items()]


@router.get(
    "/collections/{slug:name}/models/{number}/files/{path:file}",
    auth=may("admin"),
    openapi_extra=DOWNLOAD,
)
def read_model_file(request: HttpRequest, name: str, number: int, file: str) -> Any:
    """Download a file of a model."""
    path = model_files.model_file(_find_model(request, number), file)
    if path is None:
        raise Http404(_("File not found."))
    return send_file(request, path, content_type="application/octet-stream")


@router.post("/collections/{slug:name}/models/{number}/{act}", auth=may("admin", MANAGE), response={201: JobOut})
@decorate_view(once)
def use_model(request: HttpRequest, name: str, number: int, act: Use, body: UseOptions) -> Any:
    """Begin a job with a model: evaluate it, rerank with it, order the queue by it, or measure what it writes."""
    actor, model = Actor.of(scope_of(request)), _find_model(request, number)
    return Status(201, _show_job(services.use_model(actor, model, body, act=act)))


def _models(request: HttpRequest) -> Any:
    return Model.objects.filter(collection=scope_of(request).collection).select_related("job")


def _find_model(request: HttpRequest, number: int) -> Model:
    model: Model = find_row(_models(request), number, _("Model not found."))
    return model


def _show_model(model: Model, changed: int) -> dict[str, Any]:
    fields = {name: getattr(model, name) for name in ("name", "recipe", "base", "summary", "created_at")}
    # A small file that every model has: if the store can fetch it from the machine that trained the model, it can
    # fetch the rest.
    is_here = fetch(Path(model.folder) / "reranker.json").exists()
    return {"number": model.pk, **fields, "is_here": is_here, "changed_labels": changed}
