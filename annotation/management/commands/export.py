"""`export NAME --format F --out DIR`: labels, judgments, debates or a training set as files with a manifest."""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from annotation.exports.formats import EVERY, Format, format_named
from annotation.exports.sets.options import (
    ENTROPIES,
    LABELS,
    PRESETS,
    SHAPES,
    TEACHERS,
    SetOptions,
    format_defaults,
    names_of,
    ranks_of,
)
from annotation.exports.snapshots import create_snapshot, write_snapshot
from annotation.label_sources.choices import AGGREGATES
from annotation.label_sources.stored_runs import run_file
from corpus.commands import QuorumCommand, collection_named
from corpus.errors import BadInput, QuorumError
from corpus.models import Collection

CHOICES: dict[str, tuple[Callable[[str], Any], str, str]] = {
    "seed": (int, "N", "random seed (default: 0)"),
    "teacher": (str, "T", f"source of teacher values: {', '.join(TEACHERS)} (default: scores for prism, else labels)"),
    "preset": (str, "P", f"options of a paper: {', '.join(PRESETS)} (default: paper)"),
    "labels": (str, "L", f"whose labels are exported: {', '.join(LABELS)} (default: resolved)"),
    "relevant_from": (int, "G", "lowest grade that counts as relevant (default: the collection's)"),
    "agreement": (float, "S", "minimum share of the panel's votes that agree with a machine label"),
    "negatives": (int, "N", "maximum number of negatives per positive of a query"),
    "documents": (int, "N", "exact number of documents per query; queries with fewer are left out"),
    "run": (
        str,
        "F",
        "TREC run, or name of a stored run, whose unjudged documents at --ranks become assumed negatives",
    ),
    "ranks": (ranks_of, "A-B", "with --run: range of ranks (default: 11-100)"),
    "near_duplicates": (
        lambda text: None if text == "off" else float(text),
        "S",
        "similarity above which texts stay in the same split, or off (default: 0.8; off for beir and mteb)",
    ),
    "balance_entropy": (str, "E", f"with --balance: {', '.join(ENTROPIES)} (over ln 48, P eq. 5) (default: filled)"),
    "tokenizer": (str, "F", "with --balance: tokenizer.json whose tokens measure lengths (default: words)"),
    "collections": (names_of, "a,b,...", "further collections to draw from"),
    "quota": (int, "N", "number of queries to draw from each collection"),
    "shape": (str, "S", f"for sentence-transformers: {', '.join(SHAPES)} (default: pair)"),
}
TYPES: dict[str, Callable[[str], Any]] = {"split": float, "qrels": int}  # Of options with help of their own.
FLAGS = {
    "keep_holes": "keep assumed negatives that a panel or a reranker scores high",
    "synthetic_dev": "let synthetic queries enter the dev split, too (default: training split only)",
    "uniform": "draw the same number of queries from each collection",
    "allow_incomplete": "write the set even if a split is empty or has only one label",
    "balance": "cap cells of length by score so that none dominates",
}


class Command(QuorumCommand):
    help = "Write an export and its manifest into a new or empty folder."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the collection")
        parser.add_argument("--format", required=True, help=f"one of {', '.join(EVERY)}")
        parser.add_argument("--out", required=True, metavar="DIR", help="output folder; must be new or empty")
        parser.add_argument(
            "--origins",
            metavar="a,b,...",
            help="only labels of these origins: people, adjudicator, or the name of a policy",
        )
        parser.add_argument(
            "--leave-out-failed",
            action="store_true",
            help="leave out labels of routes that failed their label audit and that people have not settled",
        )
        parser.add_argument(
            "--aggregate",
            metavar="HOW",
            help=f"labels of all grades, with Dawid-Skene's posterior: {', '.join(AGGREGATES)}",
        )
        parser.add_argument(
            "--assessors",
            metavar="a,b,...",
            help="with --aggregate: whose grades, by name as `agreement` has them; people and judges name all of them",
        )
        sets = parser.add_argument_group("training sets")
        sets.add_argument(
            "--split",
            action="append",
            default=[],
            metavar="S|SPLIT=NAME",
            help="share of queries in the training split (default: 0.9; 1 writes no dev file); test=NAME, dev=NAME or "
            "train=NAME: the queries of a kept list (query_splits), or those that carry this split; may be repeated",
        )
        sets.add_argument(
            "--qrels", metavar="N", help="for beir and mteb: the grades of version N of the qrels, as split test"
        )
        for name, (_, metavar, words) in CHOICES.items():
            sets.add_argument(f"--{name.replace('_', '-')}", metavar=metavar, help=words)
        for name, words in FLAGS.items():
            sets.add_argument(f"--{name.replace('_', '-')}", action="store_true", help=words)

    def run(self, **options: Any) -> object:
        form = format_named(options["format"])
        # Only what was typed: an option that is not given comes from the preset, or from the collection.
        given = {name: options[name] for name in (*CHOICES, *FLAGS, "qrels") if options[name] not in (None, False)}
        given |= split_options(options["split"])
        if not form.is_set and given:
            option = "split" if "named_splits" in given else next(iter(given)).replace("_", "-")
            raise BadInput(f"--{option} is for training sets; {form.name} is one file and never split")
        collection = collection_named(options["name"])
        with run_file(collection, given["run"]) if "run" in given else nullcontext() as run:
            return self.make(collection, form, given | ({"run": run} if run else {}), options)

    def make(self, collection: Collection, form: Format, given: dict[str, Any], options: dict[str, Any]) -> object:
        """Write the export and say what is in it."""
        snapshot = create_snapshot(
            collection=collection,
            form=form,
            folder=Path(options["out"]).resolve(),
            origins=names_of(options["origins"]) if options["origins"] is not None else None,
            leave_out_failed=options["leave_out_failed"],
            aggregate=options["aggregate"],
            assessors=names_of(options["assessors"]),
            asked=options_of(form.name, given) if form.is_set else None,
        )
        try:
            write_snapshot(snapshot)
        except BadInput:
            # Options that cannot be met leave no row behind.
            snapshot.delete()
            raise
        except OSError as error:
            raise QuorumError(f"{error}; nothing was left in {options['out']}") from None
        self._tell(snapshot.manifest, options["out"])
        return snapshot.manifest

    def _tell(self, manifest: dict[str, Any], out: str) -> None:
        counts, files = manifest["counts"], ", ".join(file["name"] for file in manifest["files"])
        self.say(f"{counts['rows']} rows of {counts['queries']} queries in {out}: {files}")
        if (left_out := manifest.get("left_out")) and "left_out" not in counts:
            self.say(f"left out: {left_out['pairs']} ({left_out['reason']})")
        for reason, n in counts.get("left_out", {}).items():
            self.say(f"left out: {n} ({reason})")


def split_options(texts: list[str]) -> dict[str, Any]:
    """The share and the named splits of `--split`. Raises BadInput for two shares."""
    shares = [text for text in texts if "=" not in text]
    if len(shares) > 1:
        raise BadInput(f"--split was given {len(shares)} shares; give one, and names as test=NAME")
    named = tuple(text for text in texts if "=" in text)
    return ({"split": shares[0]} if shares else {}) | ({"named_splits": named} if named else {})


def options_of(format_name: str, given: dict[str, Any]) -> SetOptions:
    """The options of a training set of a format from what was typed. Raises BadInput that names the option."""
    if "qrels" in given and "split" in given:
        raise BadInput("--split with a share does not go with --qrels: its queries stand in test; name others")
    plain = (*FLAGS, "named_splits")
    values = {name: given[name] if name in plain else _parse_option(name, given[name]) for name in given}
    if "near_duplicates" in values:
        values["near"] = values.pop("near_duplicates")
    return SetOptions(**{**format_defaults(format_name), **values})


def _parse_option(name: str, text: str) -> Any:
    kind = CHOICES[name][0] if name in CHOICES else TYPES[name]
    try:
        return kind(text)
    except ValueError:
        number = "a whole number" if kind is int else "a number"
        raise BadInput(f"--{name.replace('_', '-')} must be {number}, not {text}") from None
