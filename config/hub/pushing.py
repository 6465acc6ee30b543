"""Pushing a folder's files to a repository of a hub as one commit, by huggingface_hub; none where nothing changed."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import httpx2
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled
from huggingface_hub.utils import logging

from corpus.errors import BadInput, QuorumError

Kind = Literal["dataset", "model"]
TOKEN = "HF_TOKEN"  # The name of the environment variable, which alone is read: no token of a person's home.
REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
# What an earlier push may have left and a loader would take for part of this one; other files stay as they are.
LEFT_OVER = {
    "dataset": re.compile(
        r"data/[\w.-]+\.parquet|qrels/[\w-]+\.(jsonl|tsv)|(train|dev|test|corpus|queries|teacher|synthetic)\.jsonl"
    ),
    "model": re.compile(r"(model|adapter_model)[\w.-]*\.safetensors(\.index\.json)?"),
}
REASONS = {
    401: "it does not know the token in HF_TOKEN: make one that may write",
    402: "the account has to be paid for that",
    403: "the token in HF_TOKEN may not write there: check its permissions, and the owner's name",
    404: "there is no such repository or revision, or the token may not see it",
    409: "somebody else is changing the repository: push again",
    412: "somebody else has changed the repository meanwhile: push again",
    413: "a file is too large for it",
    429: "too many requests: wait, and push again",
}


@dataclass(frozen=True, slots=True)
class PushedCommit:
    """The result of a push. `changed` False: all was there already, and `commit` is the one that was there."""

    address: str
    commit: str
    changed: bool
    is_private: bool
    files: int
    deleted: tuple[str, ...] = ()


def read_token() -> str:
    """Return the token of the hub. Raises BadInput where the environment has none."""
    token = os.environ.get(TOKEN, "").strip()
    if not token:
        raise BadInput(f"{TOKEN} is not set: put a token of the hub that may write into this environment variable")
    return token


def push_files(
    repository: str,
    kind: Kind,
    files: Mapping[str, Path | bytes],
    *,
    message: str,
    public: bool = False,
    branch: str | None = None,
) -> PushedCommit:
    """Push files, by their names in the repository, as one commit; the repository and the branch are made if missing.

    A repository that is made is private unless `public`. Raises BadInput, and pushes nothing, without a token, where
    the hub cannot be reached or refuses, and for a repository that is public while `public` does not say so.
    """
    if not REPOSITORY.fullmatch(repository):
        raise BadInput(f"{repository} is no repository: name it OWNER/REPO")
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # what it warns of is told by us, in one line.
    api = HfApi(token=read_token(), library_name="quorum")
    with _one_line(api.endpoint, repository):
        api.create_repo(repository, repo_type=kind, private=not public, exist_ok=True)
        # Only now: `exist_ok` leaves a repository that was there as it is, and a public one among them.
        is_private = bool(api.repo_info(repository, repo_type=kind).private)
        if not is_private and not public:
            raise BadInput(f"{repository} is public: everybody will read what is pushed; say --public, or name another")
        if branch is not None:
            api.create_branch(repository, branch=branch, repo_type=kind, exist_ok=True)
        before = api.repo_info(repository, repo_type=kind, revision=branch).sha
        there = api.list_repo_files(repository, repo_type=kind, revision=branch)
        gone = sorted(name for name in there if name not in files and LEFT_OVER[kind].fullmatch(name))
        # ADR 0102: not upload_folder, which makes several commits where Xet is there, so that a reader sees half of a
        # set.
        commit = api.create_commit(
            repository,
            [
                *(CommitOperationDelete(name) for name in gone),
                *(CommitOperationAdd(name, content) for name, content in files.items()),
            ],
            commit_message=message,
            repo_type=kind,
            revision=branch,
            # Refused by the hub if somebody has pushed since, whose files this commit might delete.
            parent_commit=before,
        )
    prefix = "datasets/" if kind == "dataset" else ""
    address = f"{api.endpoint}/{prefix}{repository}" + (f"/tree/{branch}" if branch else "")
    return PushedCommit(address, commit.oid, commit.oid != before, is_private, len(files), tuple(gone))


@contextmanager
def _one_line(endpoint: str, repository: str) -> Iterator[None]:
    """Turn what huggingface_hub raises into one line."""
    try:
        yield
    except OfflineModeIsEnabled:
        raise BadInput("HF_HUB_OFFLINE is set, so no hub is asked: unset it to push") from None
    except HfHubHTTPError as error:
        status = error.response.status_code
        reason = REASONS.get(status) or _first_line(error.server_message or str(error))
        raise BadInput(f"{endpoint} refused to take {repository} ({status}): {reason}") from None
    except httpx2.HTTPError as error:
        why = _first_line(str(error)) or type(error).__name__
        raise BadInput(f"{endpoint} cannot be reached ({why}): check HF_ENDPOINT and the network") from None
    except ValueError as error:  # A name that is none, or metadata that the hub does not take.
        raise BadInput(f"{repository}: {_first_line(str(error))}") from None
    except RuntimeError as error:  # An upload that broke off, by whichever protocol it went.
        raise QuorumError(f"{endpoint}: {_first_line(str(error))}; push again: what arrived is kept") from error


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:300]
