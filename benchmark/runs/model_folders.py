"""Models that lie in a folder, as recipes name them; which of them the pages offer."""

from collections.abc import Callable, Mapping
from hashlib import file_digest, sha256
from importlib import import_module
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from benchmark.models import Run
from corpus.errors import BadInput, BadOption
from store.files import fetch

# Modules of the app above, which open models, and how each is asked whether a folder is of its kind.
READERS = {
    Run.Kind.EMBEDDING: ("LOCAL_EMBEDDERS", "is_embedder"),
    Run.Kind.SPARSE: ("LOCAL_SPARSE_ENCODERS", "is_sparse_encoder"),
    Run.Kind.RERANK_FOLDER: ("LOCAL_RERANKERS", "is_reranker"),
}


def reader_of(kind: Run.Kind) -> Any:
    """Return the module that opens models of this kind."""
    return import_module(getattr(settings, READERS[kind][0]))


def fits(kind: Run.Kind, folder: Path) -> bool:
    """Return whether a folder holds a model of this kind."""
    is_one: Callable[[Path], bool] = getattr(reader_of(kind), READERS[kind][1])
    return (folder / "config.json").exists() and bool(is_one(folder)) if kind == Run.Kind.EMBEDDING else is_one(folder)


def check_folder(kind: Run.Kind, recipe: Mapping[str, Any]) -> tuple[Path, dict[str, Any]]:
    """Return the folder that a recipe names, and what the run keeps of it. Raises BadOption."""
    folder = fetch(Path(str(recipe["model"])).expanduser().resolve())
    if not folder.is_dir():
        raise BadOption("model", _("This folder does not exist: name the folder of a model"))
    if not fits(kind, folder):
        raise BadOption("model", _("This is not the folder of a model of this kind: %(kind)s") % {"kind": kind.label})
    about = {"model": str(folder), "weights": hash_weights(folder)}
    return folder, about | {"device": str(recipe.get("device") or "cpu")}


def check_weights(recipe: Mapping[str, Any]) -> None:
    """Raise BadInput when the folder holds another model than the run was started with."""
    folder = fetch(Path(recipe["model"]))
    if hash_weights(folder) != recipe["weights"]:
        told = _("The model %(folder)s changed since the run was started: start another run")
        raise BadInput(told % {"folder": folder.name})


def hash_weights(folder: Path) -> str:
    """Return the hash of all files beside the card that decide a model's vectors."""
    digest = sha256()
    for path in sorted(folder.rglob("*")):
        # reranker.json has figures and the card's text, which may be written anew without another vector.
        if path.is_file() and path.suffix in (".safetensors", ".bin", ".json") and path.name != "reranker.json":
            with path.open("rb") as file:
                digest.update(f"{path.relative_to(folder)}\0{file_digest(file, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()


def offered_folders(fits: Callable[[Path], bool]) -> list[str]:
    """Return the names of those folders under settings.BASE_MODELS that fit: a page names no others of the machine."""
    root = Path(settings.BASE_MODELS)
    return sorted(one.name for one in root.iterdir() if one.is_dir() and fits(one)) if root.is_dir() else []
