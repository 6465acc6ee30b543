"""Models in folders, as recipes name them, and the folders that pages offer."""

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

# Settings that name the modules which open models, and their functions that recognise a folder.
READERS = {
    Run.Kind.EMBEDDING: ("LOCAL_EMBEDDERS", "is_embedder"),
    Run.Kind.SPARSE: ("LOCAL_SPARSE_ENCODERS", "is_sparse_encoder"),
    Run.Kind.RERANK_FOLDER: ("LOCAL_RERANKERS", "is_reranker"),
}


def reader_of(kind: Run.Kind) -> Any:
    """Return the module that opens models of this kind."""
    return import_module(getattr(settings, READERS[kind][0]))


def fits(kind: Run.Kind, folder: Path) -> bool:
    """Return whether a folder contains a model of this kind."""
    is_model: Callable[[Path], bool] = getattr(reader_of(kind), READERS[kind][1])
    return (
        (folder / "config.json").exists() and bool(is_model(folder)) if kind == Run.Kind.EMBEDDING else is_model(folder)
    )


def check_folder(kind: Run.Kind, recipe: Mapping[str, Any]) -> tuple[Path, dict[str, Any]]:
    """Return the folder that a recipe names, and what the run records of it. Raises BadOption."""
    folder = fetch(Path(str(recipe["model"])).expanduser().resolve())
    if not folder.is_dir():
        raise BadOption("model", _("This folder does not exist: name the folder of a model"))
    if not fits(kind, folder):
        raise BadOption("model", _("This is not the folder of a model of this kind: %(kind)s") % {"kind": kind.label})
    recorded = {"model": str(folder), "weights": hash_weights(folder)}
    return folder, recorded | {"device": str(recipe.get("device") or "cpu")}


def check_weights(recipe: Mapping[str, Any]) -> None:
    """Raise BadInput when the model in the folder changed since the run was started."""
    folder = fetch(Path(recipe["model"]))
    if hash_weights(folder) != recipe["weights"]:
        message = _("The model %(folder)s changed since the run was started: start another run")
        raise BadInput(message % {"folder": folder.name})


def hash_weights(folder: Path) -> str:
    """Return the hash of all files that determine a model's output."""
    digest = sha256()
    for path in sorted(folder.rglob("*")):
        # reranker.json has figures and the card's text, which may change without another output.
        if path.is_file() and path.suffix in (".safetensors", ".bin", ".json") and path.name != "reranker.json":
            with path.open("rb") as file:
                digest.update(f"{path.relative_to(folder)}\0{file_digest(file, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()


def offered_folders(fits: Callable[[Path], bool]) -> list[str]:
    """Return the names of the folders under settings.BASE_MODELS that fit; pages offer no other folders."""
    root = Path(settings.BASE_MODELS)
    return sorted(path.name for path in root.iterdir() if path.is_dir() and fits(path)) if root.is_dir() else []
