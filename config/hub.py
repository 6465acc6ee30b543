"""Pushing an export or a model to a hub by huggingface_hub's upload of a folder: the service and its view."""

import os
from pathlib import Path
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from annotation.access.audit_log.recording import record
from annotation.access.permissions import Scope, action
from annotation.models import User
from annotation.models.snapshots import Snapshot
from corpus.errors import BadInput
from corpus.models import Collection
from corpus.numbered import find_numbered
from store.files import fetch
from training.models import Model

# Files of an earlier push that a loader would mistake for part of this one; other files stay as they are.
STALE_FILES = {"dataset": ["data/*.parquet", "qrels/*", "*.jsonl"], "model": ["*.safetensors*"]}


@action("admin")
@require_POST
def push_to_hub(request: HttpRequest, scope: Scope, kind: str, number: int) -> HttpResponse:
    """Push while the page waits; repeating an interrupted push does not send files again that are there already."""
    name, public = request.POST.get("repository", "").strip(), "public" in request.POST
    try:
        pushed = push_folder(scope.collection, kind, number, name, public=public, by=scope.user)
        messages.success(request, _("Pushed to %(address)s.") % {"address": pushed["address"]})
    except BadInput as error:
        messages.error(request, str(error))
    page = redirect("exports", scope.collection.name)
    return page if kind == "dataset" else redirect("training_model", scope.collection.name, number)


def push_folder(
    collection: Collection, kind: str, number: int, repository: str, *, public: bool, by: User | None = None
) -> dict[str, Any]:
    """Push an export ("dataset") or a published "model"; a missing repository is created, private unless `public`.

    Raises BadInput without a token in HF_TOKEN (the operator's own login is never used), if the hub refuses or cannot
    be reached, and for an existing public repository unless `public`.
    """
    import httpx2  # Loading these takes longer than most pages.
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    if not (token := os.environ.get("HF_TOKEN", "").strip()):
        raise BadInput(_("HF_TOKEN is not set: put a token of the hub that may write into this environment variable"))
    exports = Snapshot.objects.filter(state=Snapshot.State.READY)
    models = Model.objects.filter(collection=collection, pk=number)
    row = find_numbered(exports, collection, number) if kind == "dataset" else models.first()
    if row is None or not fetch(Path(row.folder)).is_dir():
        raise BadInput(_("%(collection)s has no files of this number") % {"collection": collection.name})
    api, where = HfApi(token=token, library_name="quorum"), dict[str, Any](repo_id=repository, repo_type=kind)
    try:
        api.create_repo(**where, private=not public, exist_ok=True)
        # Checked only now, because `exist_ok` does not change an existing repository, which may be public.
        if not (public or api.repo_info(**where).private):
            raise BadInput(_("%(repository)s is public, and this was to stay private") % {"repository": repository})
        commit = api.upload_folder(
            **where,
            folder_path=row.folder,
            commit_message=f"Push {kind} {number} of {collection.name}",
            ignore_patterns=[".*", "**/.*"],
            delete_patterns=STALE_FILES[kind],
        )
    except (HfHubHTTPError, OfflineModeIsEnabled, httpx2.HTTPError, ValueError, RuntimeError) as error:
        reason = (getattr(error, "server_message", None) or str(error)).strip().partition("\n")[0][:300]
        words = {"hub": api.endpoint, "repository": repository, "reason": reason or "Unexpected error"}
        raise BadInput(_("%(hub)s did not take %(repository)s: %(reason)s") % words) from None
    pushed = {"repository": repository, "commit": commit.oid, "public": public}
    with transaction.atomic():
        record(by, "export.pushed", collection, what=f"{kind} {number}", **pushed)
    return {**pushed, "address": f"{api.endpoint}/{'datasets/' if kind == 'dataset' else ''}{repository}"}
