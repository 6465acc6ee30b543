"""A training set from disk: rows of a prism export, with what the manifest says of them (pure)."""

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
    """A training row. `label`: 1 or 0; `teacher`: 0..1; `target`: contribution, evidence; `losses`: what it trains."""

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
    """Rows of both splits. `teacher`: what the scores are: scores, votes or labels; "none" where the set has none.

    A row to train on is what the recipe takes, an Example or another; what is measured are always pairs.
    """

    train: list[Any]
    dev: list[Example]
    teacher: str
    collection: str
    sha256: str  # Of the manifest, which holds the hash of every file.
    manifest: Mapping[str, Any] = field(default_factory=dict)


def read_training_set(folder: Path) -> TrainingSet:
    """Read and check an export of format prism. Raises BadInput with file and line."""
    return read_set(folder, "prism", lambda path: read_rows(path, _parse_example, "prism"))


def read_set(folder: Path, form: str, read: Callable[[Path], Iterator[Any]], teacher: str = "") -> TrainingSet:
    """Read and check an export: the rows to train on, and those to measure, if any. Raises BadInput as `read` does."""
    manifest, digest = read_manifest(folder, form)
    train = list(read(folder / "train.jsonl"))
    dev = list(read(folder / "dev.jsonl")) if (folder / "dev.jsonl").exists() else []
    if not train:
        raise BadInput(f"train.jsonl of {folder.name} contains no row: nothing can be learned from it")
    teacher = teacher or str((manifest.get("options") or {}).get("teacher") or "none")
    return TrainingSet(train, dev, teacher, str(manifest.get("collection", "")), digest, manifest)


def read_manifest(folder: Path, form: str) -> tuple[dict[str, Any], str]:
    """Return the manifest of an export of a format, whose files are as it says, and its hash. Raises BadInput."""
    manifest, raw = open_manifest(folder, form)
    for one in manifest.get("files", []):
        # A set that was edited by hand would train a model whose record names another one.
        path = folder / one["name"]
        try:
            found = sha256(path.read_bytes()).hexdigest()
        except OSError as error:
            raise BadInput(f"{path.name}: {error.strerror}: make the export again") from None
        if found != one["sha256"]:
            raise BadInput(f"{path.name} is not what its manifest says (sha256): make the export again")
    return manifest, sha256(raw).hexdigest()


def named_format(folder: Path) -> str:
    """Return the format that an export's manifest names; empty without a readable one."""
    try:
        # What cannot be read is refused where it is used; here it is a form's hint.
        return str(json.loads((folder / "manifest.json").read_bytes()).get("format", ""))
    except (OSError, ValueError, AttributeError):
        return ""


def open_manifest(folder: Path, form: str) -> tuple[dict[str, Any], bytes]:
    """Return the manifest of an export of a format, as read and as bytes. Raises BadInput."""
    path = folder / "manifest.json"
    try:
        raw = path.read_bytes()
        manifest: dict[str, Any] = json.loads(raw)
    except OSError as error:
        words = _("%(path)s: %(why)s: name the folder of an export of format %(form)s")
        raise RefusedTraining(words, path=f"{folder.name}/{path.name}", why=error.strerror, form=form) from None
    except ValueError:
        raise RefusedTraining(_("%(path)s is not JSON: make the export again"), path=path.name) from None
    if manifest.get("format") != form:
        words = _("%(folder)s is an export of format %(found)r, not %(form)s: export it again")
        raise RefusedTraining(words, folder=folder.name, found=manifest.get("format"), form=form)
    return manifest, raw


def read_rows(path: Path, parse: Callable[[Mapping[str, Any], int], Row], form: str) -> Iterator[Row]:
    """Read the rows of a file of JSON lines; `parse` gets a row and its line number. Raises BadInput with both."""
    try:
        # Split at line feeds alone: str.splitlines also splits at characters of JSON.
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise BadInput(f"{path.name}: {error.strerror}") from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield parse(json.loads(line), number)
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                # A KeyError's text is only the name of the field.
                found = f"no field {error}" if isinstance(error, KeyError) else str(error)
                raise BadInput(
                    f"{path.name}, line {number}: {found}: not a row of an export of format {form}"
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
        # Other programs' rows may lack ids; a place stands for one, to tell them apart.
        query_id=str(row.get("query_id") or f"line-{number}"),
        doc_id=str(row.get("doc_id") or f"line-{number}"),
        losses=losses,
    )


def thin_texts(rows: Sequence[Example], share: float, seed: int) -> list[Example]:
    """Return the rows with the text of a seeded share of them, the same at every call; the others learn their score.

    Each row is drawn by its own ids, so that rows of another set change nothing for it.
    """
    if share >= 1:
        return list(rows)
    kept = [random.Random(f"{seed}:{row.query_id}:{row.doc_id}").random() < share for row in rows]
    return [row if keeps else replace(row, losses=row.losses - {SFT}) for row, keeps in zip(rows, kept, strict=True)]


def check_for_prism(found: TrainingSet, *, needs_teacher: bool = True) -> None:
    """Raise BadInput when a row that trains point-wise has no teacher score, or one that trains text no label (S9)."""
    missing = sum(POINT in row.losses and row.teacher is None for row in found.train)
    if missing and needs_teacher:
        raise BadInput(
            f"{missing:,} of {len(found.train):,} rows have no teacher score: export with votes or labels as teacher, "
            "or fetch scores first (teacher_scores)"
        )
    if any(SFT in row.losses and row.label is None for row in found.train):
        raise BadInput("Rows that train text have no label: make the export again")
    if not any(row.losses for row in found.train):
        raise BadInput("No row carries a loss: export with the preset paper")
