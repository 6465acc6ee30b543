"""Pushing an export or a model to a hub by huggingface_hub: its large files one after the other, then the commit."""

from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from annotation.access.audit_log.recording import record
from annotation.models import User
from annotation.models.snapshots import Snapshot
from corpus.collections.secrets import read_secret
from corpus.errors import BadInput
from corpus.models import Collection
from corpus.numbered import find_numbered
from judges.models.keys import StoredKey
from judges.stored_keys import decrypt_key
from store.files import fetch, files_below, stored_files
from store.paths import name_below_var
from training.models import Model

# Files of an earlier push that a loader would mistake for part of this one; other files stay as they are.
STALE_FILES = {"dataset": ["data/*.parquet", "qrels/*", "*.jsonl"], "model": ["*.safetensors*"]}
TOKEN = "HF_TOKEN"  # Name of the environment variable.


def token_name(collection: Collection) -> str:
    """Return the name of a collection's stored token."""
    return f"hub:{collection.name}"


def hub_address() -> str:
    """Return the address of the hub to which this site pushes (HF_ENDPOINT)."""
    from huggingface_hub import constants  # Loading it takes longer than most pages.

    return str(constants.ENDPOINT)


def has_token(collection: Collection) -> bool:
    """Return whether there is a token to push with: the collection's stored one, or that of the environment."""
    return StoredKey.objects.filter(name=token_name(collection)).exists() or bool(read_secret(TOKEN))


def find_source(collection: Collection, kind: str, number: int) -> Snapshot | Model:
    """Return the export ("dataset") or published "model" of a number. Raises BadInput where it has no files."""
    exports = Snapshot.objects.filter(state=Snapshot.State.READY)
    models = Model.objects.filter(collection=collection, pk=number)
    row = find_numbered(exports, collection, number) if kind == "dataset" else models.first()
    if row is None or not list_sizes(Path(row.folder)):
        raise BadInput(_("%(collection)s has no files of this number") % {"collection": collection.name})
    return row


def list_sizes(folder: Path) -> dict[str, int]:
    """Return the bytes of the files that a push sends, by their names in the folder, here or in the store."""
    top = name_below_var(folder)
    sizes = {str(PurePosixPath(row.name).relative_to(str(top))): row.content.size for row in stored_files(folder)}
    sizes |= {str(path.relative_to(folder)): path.stat().st_size for path in files_below(folder)}
    return {name: sizes[name] for name in sorted(sizes) if not any(part.startswith(".") for part in Path(name).parts)}


def push_folder(
    collection: Collection,
    kind: str,
    number: int,
    repository: str,
    *,
    public: bool,
    by: User | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Push an export ("dataset") or a published "model"; a missing repository is created, private unless `public`.

    `progress(done, total)` is called between the files with their bytes.

    Raises BadInput without a stored token and one in HF_TOKEN (the operator's own login is never used), if the hub
    refuses or cannot be reached, and for an existing public repository unless `public`.
    """
    import httpx2
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    stored = StoredKey.objects.filter(name=token_name(collection)).first()
    token = decrypt_key(stored.ciphertext, stored.name, hub_address()) if stored else read_secret(TOKEN)
    if not token:
        raise BadInput(_("HF_TOKEN is not set: put a token of the hub that may write into this environment variable"))
    row = find_source(collection, kind, number)
    fetch(Path(row.folder))
    sizes, done = list_sizes(Path(row.folder)), 0
    api, where = HfApi(token=token, library_name="quorum"), dict[str, Any](repo_id=repository, repo_type=kind)
    try:
        api.create_repo(**where, private=not public, exist_ok=True)
        # Checked only now, because `exist_ok` does not change an existing repository, which may be public.
        if not (public or api.repo_info(**where).private):
            raise BadInput(_("%(repository)s is public, and this was to stay private") % {"repository": repository})
        additions = []
        for name, size in sizes.items():
            progress(done, sum(sizes.values()))
            addition = CommitOperationAdd(path_in_repo=name, path_or_fileobj=Path(row.folder) / name)
            # One by one: `upload_folder` does not say how far it is. Small files go with the commit.
            api.preupload_lfs_files(**where, additions=[addition], free_memory=False)
            additions.append(addition)
            done += size
        progress(done, done)
        deletions = [
            CommitOperationDelete(path_in_repo=name)
            for name in api.list_repo_files(**where)
            if name not in sizes and any(fnmatch(name, pattern) for pattern in STALE_FILES[kind])
        ]
        message = f"Push {kind} {number} of {collection.name}"
        commit = api.create_commit(**where, operations=[*additions, *deletions], commit_message=message)
    except (HfHubHTTPError, OfflineModeIsEnabled, httpx2.HTTPError, ValueError, RuntimeError) as error:
        reason = (getattr(error, "server_message", None) or str(error)).strip().partition("\n")[0][:300]
        words = {"hub": api.endpoint, "repository": repository, "reason": reason or "Unexpected error"}
        raise BadInput(_("%(hub)s did not take %(repository)s: %(reason)s") % words) from None
    pushed = {"repository": repository, "commit": commit.oid, "public": public}
    with transaction.atomic():
        record(by, "export.pushed", collection, what=f"{kind} {number}", **pushed)
    return {**pushed, "address": f"{api.endpoint}/{'datasets/' if kind == 'dataset' else ''}{repository}"}
