"""The card of what is pushed: README.md with the metadata that a hub reads, and what a reader must know."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from huggingface_hub import DatasetCard, DatasetCardData, ModelCard

from annotation.exports.sets.options import SPLITS
from annotation.exports.sets.parquet import SIZE_CATEGORIES, SIZES

UNKNOWN = "unknown"  # As the Hub calls a licence that nobody named.
PEOPLE = ("people", "adjudicator")
NAMING_PEOPLE = ("judgments", "marks")  # Formats whose rows name who gave a grade.


def build_dataset_card(
    manifest: Mapping[str, Any], *, own: str | None, title: str, licence: str | None, languages: Sequence[str]
) -> str:
    """Return the card of an export. `own`: the card that the export has; its metadata and its words are kept.

    Without a licence the card says that none is known.
    """
    if own is not None:
        card = DatasetCard(own)
    else:
        head = DatasetCardData(configs=list_configs(manifest), license=UNKNOWN, pretty_name=title)
        card = DatasetCard(f"---\n{head.to_yaml()}\n---\n\n# {title}\n")
        card.data["task_categories"] = ["text-ranking"]
        card.data["tags"] = ["relevance-judgments"]
        card.data["size_categories"] = [SIZE_CATEGORIES[bisect_right(SIZES, manifest["counts"]["rows"])]]
    if licence is not None:
        card.data["license"] = licence
    if languages:
        card.data["language"] = list(languages)
    sections = [card.text.strip(), "## Where it comes from", *_describe_source(manifest)]
    if warnings := list_warnings(manifest):
        sections += ["## Before you use it", "\n".join(f"- {one}" for one in warnings)]
    card.text = "\n" + "\n\n".join(sections) + "\n"
    return str(card)


def build_model_card(own: str, *, licence: str | None, languages: Sequence[str]) -> str:
    """Return the card of a model with licence and languages; without any it stays as it was published."""
    if licence is None and not languages:
        return own
    card = ModelCard(own)
    if licence is not None:
        card.data["license"] = licence
    if languages:
        card.data["language"] = list(languages)
    return str(card)


def list_configs(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what `datasets.load_dataset` reads of an export without a card of its own, by the names of its files."""
    names = [file["name"] for file in manifest["files"]]
    if manifest["format"] == "beir":
        single = [{"config_name": part, "data_files": f"{part}.jsonl"} for part in ("corpus", "queries")]
        qrels = [{"split": side, "path": f"qrels/{side}.tsv"} for side in SPLITS if f"qrels/{side}.tsv" in names]
        return [*single, {"config_name": "qrels", "data_files": qrels, "sep": "\t"}]
    splits = [{"split": side, "path": f"{side}.jsonl"} for side in SPLITS if f"{side}.jsonl" in names]
    if not splits:
        stems = [name.partition(".") for name in names if name.endswith((".jsonl", ".csv"))]
        splits = [{"split": stem, "path": f"{stem}.{kind}"} for stem, _, kind in stems]
    return [{"config_name": "default", "data_files": splits}] if splits else []


def _describe_source(manifest: Mapping[str, Any]) -> list[str]:
    counts, options, coverage = manifest["counts"], manifest["options"], manifest["coverage"]
    told = [
        f"Exported by Quorum from the collection `{manifest['collection']}` in the format `{manifest['format']}`: "
        f"{counts['rows']:,} rows of {counts['queries']:,} queries. `manifest.json` says from what, with every option, "
        "and the sha256 of each file but this one."
    ]
    if splits := counts.get("splits"):
        rows = [
            f"| {side} | {n['queries']:,} | {n['pairs']:,} | {n['relevant']:,} |"
            for side in SPLITS
            if (n := splits.get(side))
        ]
        told.append("\n".join(["| split | queries | pairs | relevant |", "|---|---|---|---|", *rows]))
    if origins := counts.get("origins"):
        rows = [f"| {origin} | {n:,} |" for origin, n in origins.items()]
        told.append("\n".join(["| labels by | pairs |", "|---|---|", *rows]))
    told.append(f"Grades go from 0 to {options['grades']}; from {options['relevant_from']} on a document is relevant.")
    if aggregate := manifest.get("aggregate"):
        told.append(
            f"Labels are made of all grades by `{aggregate['by']}`; `posterior` is the probability of the "
            "grade by Dawid and Skene."
        )
    if version := manifest.get("qrels"):
        told.append(f"Grades are those of version {version['number']} of the qrels ({version['kind']}).")
    if named := manifest.get("named_splits"):
        told.append("Fixed splits: " + ", ".join(f"{one['split']} = `{one['name']}`" for one in named) + ".")
    if coverage["pairs"]:
        told.append(f"{coverage['labelled']:,} of {coverage['pairs']:,} pairs that were to be judged have a label.")
    return told


def list_warnings(manifest: Mapping[str, Any]) -> list[str]:
    """Say what a reader of the data must know, from the manifest."""
    counts, options = manifest["counts"], manifest["options"]
    told = []
    origins: Mapping[str, int] = counts.get("origins") or {}
    if origins and not any(origin in PEOPLE for origin in origins) and "aggregate" not in manifest:
        told.append("No label comes from people: all are those of models or of imported files.")
    if manifest["filters"].get("origins"):
        told.append(f"Only labels of these sources: {', '.join(manifest['filters']['origins'])}.")
    if left := manifest.get("left_out"):
        told.append(f"{left['pairs']:,} pairs were left out: {left['reason']}.")
    told += [f"{n:,} pairs were left out: {reason}." for reason, n in (counts.get("left_out") or {}).items()]
    if assumed := counts.get("assumed"):
        told.append(f"{assumed:,} negatives are assumed: a ranking named them, and nobody judged them.")
    if synthetic := counts.get("synthetic_queries"):
        told.append(f"{synthetic:,} queries were written by a model; nobody asked them.")
    if counts.get("splits") and options.get("near") is None and options.get("qrels") is None:
        told.append("Texts that are nearly the same may stand in several splits.")
    for name, found in (manifest.get("aggregate") or {}).get("of", {}).items():
        if found["posterior"] is not None:
            told.append(f"There is no posterior for {name}: {found['posterior']}.")
    if manifest["format"] in NAMING_PEOPLE:
        told.append("Rows name who gave a grade: people's names are personal data.")
    return told
