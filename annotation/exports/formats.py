"""Formats of exports: the line of a row, and the counts of the manifest. Pure."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from functools import partial
from typing import Any

from django.utils.translation import gettext_noop

from annotation.exports.ratings.scales import RatingRule
from charts.cells import csv_line
from corpus.aspects.files import aspect_line as aspect_line

Row = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Format:
    """A format of exports: a file of rows, or a training set of several files, which `file` lists in words."""

    name: str
    file: str
    title: str
    about: str
    # Return the line of a row. None: a training set, which has a SetWriter, or a rating format that is one document.
    line: Callable[[Row], str] | None = None
    header: str = ""
    labels: bool = True  # Whether it contains resolved labels, which can be limited to some origins.
    counted: Mapping[str, int] = field(default_factory=dict)  # Counts of the manifest, and their column in a row.
    version: int = 1
    takes: tuple[str, ...] = ()  # Options that only this file of rows takes.
    rates: RatingRule | None = None  # Ratings of a search tool, whose rows are RatedPairs; None: no rating format.
    by_text: bool = False  # Whether the tool knows a query by its text, and not by its id.

    def with_posterior(self) -> "Format":
        """Return the format with the posterior as last column, if it is the CSV of labels."""
        if self.line is not csv_line:
            return self
        return replace(
            self,
            header=f"{self.header.rstrip()},posterior\n",
            line=lambda row: csv_line([*row[:-1], "" if row[-1] is None else row[-1]]),
        )

    @property
    def is_set(self) -> bool:
        """Whether it is a training set."""
        return self.line is None and self.rates is None


JUDGMENT = ("query_id", "doc_id", "assessor", "kind", "grade", "step", "arm", "guideline", "ms", "time")
MARK = ("query_id", "doc_id", "assessor", "grade", "start", "end", "text", "time")
DEBATE = ("query_id", "doc_id", "round", "side", "judge", "verdict", "reason", "quotes", "found")


def _json_line(names: Sequence[str], values: Row) -> str:
    return json.dumps(dict(zip(names, values, strict=True)), ensure_ascii=False) + "\n"


def _timed_line(names: Sequence[str], row: Row) -> str:
    """Return the line of a row whose last value is a time, in UTC (2026-11-20T09:30:00.000000Z)."""
    *values, time = row
    return _json_line(names, (*values, time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")))


def _debate_line(row: Row) -> str:
    *values, quotes, window = row
    texts = [quote["text"] for quote in quotes]
    is_in_document = [quote["start"] is not None for quote in quotes]
    return _add_window(_json_line(DEBATE, (*values, texts, is_in_document)), window)


def _add_window(line: str, window: int) -> str:
    """Add the window of a long document to the line of a vote or turn about it."""
    return f'{line.rstrip()[:-1]}, "window": {window}}}\n' if window else line


RATED = {"grades": 2, "origins": 3}  # What rating formats count, as those of labels.
FORMATS = {
    format.name: format
    for format in (
        Format("qrels", "qrels.txt", gettext_noop("TREC qrels"),
               gettext_noop("All labels as one qrels file for trec_eval, ir_measures and similar tools."),
               line=lambda row: f"{row[0]} 0 {row[1]} {row[2]}\n", counted={"grades": 2, "origins": 3}),
        Format("csv", "labels.csv", gettext_noop("CSV of labels"),
               gettext_noop("The same labels with their source: a policy, people or an adjudicator."),
               line=csv_line, header="query_id,doc_id,grade,origin\n",
               counted={"grades": 2, "origins": 3}),
        Format("judgments", "judgments.jsonl", gettext_noop("Judgments"),
               gettext_noop("All active grades from people, policies and imports, and each judge's latest vote "
                            "on each pair."),
               line=lambda row: _add_window(_timed_line(JUDGMENT, row[:-1]), row[-1]), labels=False,
               counted={"grades": 4, "kinds": 3, "steps": 5}),
        Format("debates", "debates.jsonl", gettext_noop("Debates"),
               gettext_noop("All turns of each pair's latest debate: verdict, reason and quoted sentences."),
               line=_debate_line, labels=False, counted={"rounds": 2, "sides": 3, "verdicts": 5}),
        Format("marks", "marks.jsonl", gettext_noop("Marked evidence"),
               gettext_noop("Passages that people marked while judging: position, text and grade."),
               line=partial(_timed_line, MARK), labels=False, counted={"assessors": 2, "grades": 3}),
        Format("aspects", "aspects.jsonl", gettext_noop("Aspects"),
               gettext_noop("Aspects of a complete answer to each query, with weights and supporting documents."),
               line=aspect_line, labels=False, counted={"importances": 4}),
        Format("preference-grades", "qrels.txt", gettext_noop("Grades from comparisons"),
               gettext_noop("A TREC qrels file of compared documents, graded by their strengths. Labels do not "
                            "change."),
               line=lambda row: f"{row[0]} 0 {row[1]} {row[2]}\n", labels=False, counted={"grades": 2},
               takes=("labels", "thresholds")),
        Format("srw", "judgments.json", "Search Relevance Workbench",
               gettext_noop("Ratings of all labels as a judgment list for OpenSearch."),
               counted=RATED, takes=("scale",), rates=RatingRule(is_share=True), by_text=True),
        Format("rank-eval", "rank_eval.json", "_rank_eval",
               gettext_noop("Ratings of all labels for Elasticsearch and OpenSearch: the body of POST "
                            "INDEX/_rank_eval, with the request of a search endpoint as template."),
               counted=RATED, takes=("scale", "endpoint", "index"), rates=RatingRule()),
        Format("quepid", "ratings.csv", gettext_noop("Quepid, ratings"),
               gettext_noop("Ratings of all labels as CSV for a case: query, docid, rating."),
               line=lambda row: csv_line((row[0], row[1], row[4])), header="query,docid,rating\n",
               counted=RATED, takes=("scale",), rates=RatingRule(highest=3), by_text=True),
        Format("quepid-book", "book.json", gettext_noop("Quepid, book"),
               gettext_noop("Ratings of all labels with the beginnings of the documents, as a book that has the scale "
                            "of the ratings."),
               counted=RATED, takes=("scale",), rates=RatingRule(), by_text=True),
        Format("ranklib", "judgments.txt", "RankLib, SVMlight",
               gettext_noop("A judgment list without features: grade, number of the query, and the document's id as "
                            "comment."),
               line=lambda row: f"{row[4]} qid:{row[5]} # {row[1]}\n",
               counted=RATED, takes=("scale",), rates=RatingRule()),
    )
}  # fmt: skip
LINES = "train.jsonl, dev.jsonl"  # Files of a training set with one file per split.
SETS = {
    format.name: format
    for format in (
        Format("prism", LINES, gettext_noop("Prism"),
               gettext_noop("Pairs with target score, label, contribution and evidence, for training on this site.")),
        Format("beir", "corpus.jsonl, queries.jsonl, qrels/", "BEIR",
               gettext_noop("The whole corpus, the queries and the grades of each split, for retrieval experiments.")),
        Format("sentence-transformers", LINES, "sentence-transformers",
               gettext_noop("Pairs, triplets, n-tuples or lists, in the columns that the sentence-transformers losses "
                            "expect.")),
        Format("parquet", "README.md, data/", gettext_noop("Parquet with a dataset card"),
               gettext_noop("A folder for datasets.load_dataset and the Hugging Face Hub, with all columns and their "
                            "descriptions.")),
        Format("trl", LINES, "TRL",
               gettext_noop("Prompt and completion for supervised fine-tuning: “no”, or “yes” with contribution and "
                            "evidence.")),
        Format("preferences", LINES, gettext_noop("Preferences (DPO)"),
               gettext_noop("Prompt, chosen and rejected of each comparison with a preferred document, for TRL's DPO "
                            "and reward trainers."),
               labels=False),
        Format("erank-sft", LINES, "ERank",
               gettext_noop("Scores from 0 to 10, each after its chain of thought, as written by synthesize_scores."),
               labels=False),
        Format("rtriever", LINES, "RTriever",
               gettext_noop("Queries with relevant and other documents, for training embedders on this site.")),
        Format("flagembedding", LINES, "FlagEmbedding",
               gettext_noop("Queries with pos and neg, and target scores if selected.")),
        Format("ms-swift", LINES, gettext_noop("ms-swift, reranker"),
               gettext_noop("Messages with positive and negative documents, for training a reranker.")),
        Format("ms-swift-embedding", LINES, gettext_noop("ms-swift, embedding"),
               gettext_noop("Messages with positive and negative documents, for training an embedder.")),
        Format("tevatron", LINES, "Tevatron",
               gettext_noop("Queries with positive and negative passages, for training a retriever or a reranker.")),
        Format("mteb", "README.md, corpus.jsonl, queries.jsonl, qrels/", "MTEB",
               gettext_noop("A retrieval task for MTEB and the Hugging Face Hub: corpus, queries and the grades of "
                            "each split.")),
    )
}  # fmt: skip
ALL_FORMATS = FORMATS | SETS
