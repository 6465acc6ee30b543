"""Training sets on disk: the manifest and rows of an export, above all of format prism (pure)."""

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from charts.translation import gettext_noop as _
from corpus.errors import BadInput
from training.recipes.refusals import RefusedTraining

Row = TypeVar("Row")

POINT, SFT = "point-wise", "sft"
WORDS = {"yes": 1, "no": 0}


@dataclass(frozen=True, slots=True)
class Example:
    """A training row. `label`: 1 or 0; `teacher`: a score in 0..1; `target`: contribution and evidence as text.

    `losses`: which losses the row is trained with, POINT and SFT.
    """

    query: str
    document: str
    instruction: str = ""
    label: int | None = None
    teacher: float | None = None
    target: str = ""
    query_id: str = ""
    doc_id: str = ""
    losses: frozenset[str] = frozenset({POINT, SFT})


@dataclass(frozen=True)
class TrainingSet:
    """The rows of both splits.

    `teacher`: where the scores come from (scores, votes or labels), or "none". Training rows are Examples or whatever
    else the recipe takes; dev rows are always pairs.
    """

    train: list[Any]
    dev: list[Example]
    teacher: str
    collection: str
    sha256: str  # The hash of the manifest, which contains the hash of every file.
    manifest: Mapping[str, Any] = field(default_factory=dict)


def read_training_set(folder: Path) -> TrainingSet:
    """Read and check an export of format prism. Raises BadInput with file and line."""
    return read_set(folder, "prism", lambda path: read_rows(path, _parse_example, "prism"))


def read_set(folder: Path, export_format: str, read: Callable[[Path], Iterator[Any]], teacher: str = "") -> TrainingSet:
    """Read and check an export: its training rows and its dev rows, if any. Raises BadInput, also from `read`."""
    manifest, digest = read_manifest(folder, export_format)
    train = list(read(folder / "train.jsonl"))
    dev = list(read(folder / "dev.jsonl")) if (folder / "dev.jsonl").exists() else []
    if not train:
        raise BadInput(f"train.jsonl of {folder.name} contains no row: nothing can be learned from it")
    teacher = teacher or str((manifest.get("options") or {}).get("teacher") or "none")
    return TrainingSet(train, dev, teacher, str(manifest.get("collection", "")), digest, manifest)


def read_manifest(folder: Path, export_format: str) -> tuple[dict[str, Any], str]:
    """Return the manifest of an export and its hash, after checking the files' hashes. Raises BadInput."""
    manifest, raw = open_manifest(folder, export_format)
    for file in manifest.get("files", []):
        # A set that was edited by hand would train a model whose record names another set.
        path = folder / file["name"]
        try:
            digest = sha256(path.read_bytes()).hexdigest()
        except OSError as error:
            raise BadInput(f"{path.name}: {error.strerror}: make the export again") from None
        if digest != file["sha256"]:
            raise BadInput(f"{path.name} is not what its manifest says (sha256): make the export again")
    return manifest, sha256(raw).hexdigest()


def named_format(folder: Path) -> str:
    """Return the format that an export's manifest names, or "" if the manifest cannot be read."""
    try:
        # Only a hint in a form; an unreadable manifest is refused when the set is used.
        return str(json.loads((folder / "manifest.json").read_bytes()).get("format", ""))
    except (OSError, ValueError, AttributeError):
        return ""


def open_manifest(folder: Path, export_format: str) -> tuple[dict[str, Any], bytes]:
    """Return the manifest of an export of this format, parsed and as bytes. Raises BadInput."""
    path = folder / "manifest.json"
    try:
        raw = path.read_bytes()
        manifest: dict[str, Any] = json.loads(raw)
    except OSError as error:
        message = _("%(path)s: %(why)s: name the folder of an export of format %(form)s")
        raise RefusedTraining(
            message, path=f"{folder.name}/{path.name}", why=error.strerror, form=export_format
        ) from None
    except ValueError:
        raise RefusedTraining(_("%(path)s is not JSON: make the export again"), path=path.name) from None
    if manifest.get("format") != export_format:
        message = _("%(folder)s is an export of format %(found)r, not %(form)s: export it again")
        raise RefusedTraining(message, folder=folder.name, found=manifest.get("format"), form=export_format)
    return manifest, raw


def read_rows(path: Path, parse: Callable[[Mapping[str, Any], int], Row], export_format: str) -> Iterator[Row]:
    """Read the rows of a JSON Lines file; `parse` gets a row and its line number. Raises BadInput with both."""
    try:
        # Split at line feeds only: str.splitlines also splits at characters that JSON strings may contain.
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise BadInput(f"{path.name}: {error.strerror}") from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield parse(json.loads(line), number)
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                # A KeyError's text is only the name of the field.
                reason = f"no field {error}" if isinstance(error, KeyError) else str(error)
                raise BadInput(
                    f"{path.name}, line {number}: {reason}: not a row of an export of format {export_format}"
                ) from None


def _parse_example(row: Mapping[str, Any], number: int) -> Example:
    word, score = row.get("annotated_label"), row.get("revised_score")
    if word is not None and word not in WORDS:
        raise ValueError(f"annotated_label is {word!r}, not yes or no")
    if score is not None and not 0.0 <= float(score) <= 1.0:
        raise ValueError(f"revised_score {score} is not between 0 and 1")
    losses = frozenset(part for part in str(row.get("loss_type", "")).split(";") if part)
    if losses - {POINT, SFT}:
        raise ValueError(f"loss_type {row.get('loss_type')!r}")
    return Example(
        query=str(row["query"]),
        document=str(row["document"]),
        instruction=str(row.get("instruction") or ""),
        label=WORDS[word] if word is not None else None,
        teacher=float(score) if score is not None else None,
        target=str(row.get("contribution_evidence") or ""),
        # Sets from other programs may lack ids: line numbers then tell the rows apart.
        query_id=str(row.get("query_id") or f"line-{number}"),
        doc_id=str(row.get("doc_id") or f"line-{number}"),
        losses=losses,
    )


def thin_texts(rows: Sequence[Example], share: float, seed: int) -> list[Example]:
    """Return the rows, of which only a seeded share is trained to write its text; the others learn their score only.

    Each row is drawn by its own ids, independently of the other rows in the set.
    """
    if share >= 1:
        return list(rows)
    keeps_text = [random.Random(f"{seed}:{row.query_id}:{row.doc_id}").random() < share for row in rows]
    return [
        row if keeps else replace(row, losses=row.losses - {SFT}) for row, keeps in zip(rows, keeps_text, strict=True)
    ]


def check_for_prism(training_set: TrainingSet, *, needs_teacher: bool = True) -> None:
    """Raise BadInput if a row with the point-wise loss has no teacher score, or one with a text no label."""
    rows = training_set.train
    missing = sum(POINT in row.losses and row.teacher is None for row in rows)
    if missing and needs_teacher:
        raise BadInput(
            f"{missing:,} of {len(rows):,} rows have no teacher score: export with votes or labels as teacher, "
            "or fetch scores first (teacher_scores)"
        )
    if any(SFT in row.losses and row.label is None for row in rows):
        raise BadInput("Rows that train text have no label: make the export again")
    if not any(row.losses for row in rows):
        raise BadInput("No row carries a loss: export with the preset paper")
