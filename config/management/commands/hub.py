"""`hub push NAME OWNER/REPO`: an export or a model to the Hugging Face Hub, or a server that speaks its protocol."""

import json
import re
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.db import transaction
from huggingface_hub.utils.tqdm import disable_progress_bars

from annotation.audit_log.recording import record
from annotation.exports.files import MANIFEST
from annotation.models.snapshots import Snapshot
from config.hub.cards import build_dataset_card, build_model_card, list_warnings
from config.hub.pushing import Kind, push_files, read_token
from corpus.collections.audit_log import shell_user
from corpus.commands import QuorumCommand, collection_named
from corpus.errors import BadInput
from corpus.models import Collection, Query
from corpus.numbered import find_numbered
from corpus.search.text import detect_language
from store.files import fetch
from training.models import Model

CARD = "README.md"
PUBLISHED = "reranker.json"  # Every model that was published here has it.
LICENCE = re.compile(r"[a-z0-9][a-z0-9.+-]{0,59}", re.ASCII)
LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*", re.ASCII)
SAMPLED = 200  # Queries from which the languages of a card come.


class Command(QuorumCommand):
    """Push a folder that was exported or published, with its card, as one commit."""

    help = "Push an export or a model to a hub (HF_TOKEN, HF_ENDPOINT), private unless --public."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("act", choices=["push"])
        parser.add_argument("name", help="name of the collection")
        parser.add_argument("repository", metavar="OWNER/REPO", help="where it goes; made if it does not exist")
        one = parser.add_mutually_exclusive_group(required=True)
        one.add_argument("--export", type=int, metavar="N", help="number of an export, as its page shows it")
        one.add_argument("--model", type=int, metavar="N", help="number of a published model")
        one.add_argument("--folder", metavar="DIR", help="folder of an export or of a model")
        parser.add_argument(
            "--licence", "--license", metavar="L", help="licence of the texts, as the hub spells it: cc-by-4.0, mit"
        )
        parser.add_argument("--language", metavar="a,b", help="languages of the card (default: of the queries)")
        parser.add_argument("--public", action="store_true", help="everybody may read it (default: private)")
        parser.add_argument("--revision", metavar="BRANCH", help="branch to push to; made if it does not exist")
        parser.add_argument("--message", metavar="TEXT", help="message of the commit")

    def run(self, **options: Any) -> object:
        # Before anything is read or built: without a token nothing can be pushed (docs/adr/0102).
        read_token()
        collection = collection_named(options["name"])
        folder, told = _find_folder(collection, options)
        kind: Kind = "dataset" if (folder / MANIFEST).is_file() else "model"
        if kind == "model" and not (folder / PUBLISHED).is_file():
            raise BadInput(f"{folder} holds neither {MANIFEST} nor {PUBLISHED}: it is no export and no published model")
        files: dict[str, Path | bytes] = _list_files(folder, kind)
        languages = _read_languages(options["language"])
        if (licence := options["licence"]) is not None and not LICENCE.fullmatch(licence):
            raise BadInput(f"--licence {licence}: give it as the hub spells it, such as cc-by-4.0, mit or other")
        card, warnings = _build_card(collection, folder, kind, licence, languages)
        if self.as_json or not sys.stderr.isatty():
            disable_progress_bars()
        pushed = push_files(
            options["repository"],
            kind,
            files | {CARD: card.encode()},
            message=options["message"] or f"Push {told} of {collection.name}",
            public=options["public"],
            branch=options["revision"],
        )
        where = {"repository": options["repository"], "commit": pushed.commit, "public": not pushed.is_private}
        with transaction.atomic():
            record(None, "export.pushed", collection, what=told, changed=pushed.changed, shell=shell_user(), **where)
        for warning in warnings:
            self.say(f"the card says: {warning}")
        if kind == "dataset" and licence is None:
            self.say("the card names no licence; say --licence once you know that of the texts")
        seen = "private" if pushed.is_private else "public"
        done = f"pushed {pushed.files} files" if pushed.changed else "nothing changed since the last push"
        self.say(f"{done}: {pushed.address} ({seen}), commit {pushed.commit}")
        return {
            "repository": options["repository"],
            "kind": kind,
            "address": pushed.address,
            "revision": options["revision"],
            "commit": pushed.commit,
            "changed": pushed.changed,
            "private": pushed.is_private,
            "files": sorted({*files, CARD}),
            "deleted": list(pushed.deleted),
            "warnings": warnings,
        }


def _find_folder(collection: Collection, options: dict[str, Any]) -> tuple[Path, str]:
    """Return the folder with its files on this machine, and what it is called. Raises BadInput where it is not."""
    if options["folder"] is not None:
        folder, told = Path(options["folder"]), "a folder"
    elif options["export"] is not None:
        row = find_numbered(Snapshot.objects, collection, options["export"])
        if row is None or row.state != Snapshot.State.READY:
            raise BadInput(f"{collection.name} has no export {options['export']} that is ready")
        folder, told = Path(row.folder), f"export {row.number}"
    else:
        model = Model.objects.filter(collection=collection, pk=options["model"]).first()
        if model is None:
            raise BadInput(f"{collection.name} has no model {options['model']}")
        folder, told = Path(model.folder), f"model {model.pk}"
    if not fetch(folder).is_dir():
        raise BadInput(f"{folder} is not there any more, so {told} cannot be pushed")
    return folder, told


def _list_files(folder: Path, kind: Kind) -> dict[str, Path | bytes]:
    """Return the files that are pushed: of an export those of its manifest, of a model all that are not hidden."""
    if kind == "dataset":
        names = [file["name"] for file in _read_manifest(folder)["files"]]
        found = {name: folder / name for name in (*names, MANIFEST)}
    else:
        found = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
        found = {name: path for name, path in found.items() if not any(p.startswith(".") for p in name.split("/"))}
    for name, path in found.items():
        if not path.is_file() or not path.resolve().is_relative_to(folder.resolve()):
            raise BadInput(f"{folder / name} is missing: export it again")
    return dict(found)


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if {"collection", "format", "counts", "options", "coverage", "filters", "files"} <= manifest.keys():
            return manifest
    except (OSError, ValueError):
        pass
    raise BadInput(f"{folder / MANIFEST} is no manifest of an export")


def _build_card(
    collection: Collection, folder: Path, kind: Kind, licence: str | None, languages: list[str]
) -> tuple[str, list[str]]:
    own = (folder / CARD).read_text(encoding="utf-8") if (folder / CARD).is_file() else None
    if kind == "model":
        return build_model_card(own or "---\n---\n", licence=licence, languages=languages), []
    manifest = _read_manifest(folder)
    if own is None and not languages:
        languages = _detect_languages(collection)
    title = collection.title or collection.name
    card = build_dataset_card(manifest, own=own, title=title, licence=licence, languages=languages)
    return card, list_warnings(manifest)


def _detect_languages(collection: Collection) -> list[str]:
    queries = Query.objects.filter(collection=collection, is_current=True).order_by("pk")
    return sorted({detect_language(text) or "en" for text in queries.values_list("text", flat=True)[:SAMPLED]})


def _read_languages(text: str | None) -> list[str]:
    names = [name for part in (text or "").split(",") if (name := part.strip())]
    if wrong := next((name for name in names if not LANGUAGE.fullmatch(name)), None):
        raise BadInput(f"--language {wrong}: give codes such as en or zh, separated by commas")
    return names
