"""A folder for datasets.load_dataset and the Hub: Parquet files in shards, and a dataset card."""

from bisect import bisect_right
from collections import Counter
from typing import Any

from annotation.exports.files import ExportFiles
from annotation.exports.options import ExportOptions
from annotation.exports.sets.batches import Batch, LoadedQuery
from annotation.exports.sets.rows import SetQuery, SetRow, newest_label_time
from corpus.models import Collection
from corpus.search.text import detect_language

SHARD = 500_000
GROUP = 20_000  # Number of rows in a row group; SHARD: in a file.
SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
# The Hub's names of the ranges between SIZES.
SIZE_CATEGORIES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "n>10M")
# Columns with the name of a row's attribute.
SAME = (
    "query_id",
    "doc_id",
    "grade",
    "relevant",
    "votes",
    "source",
    "origin",
    "assumed",
)
SAMPLED = 200  # Number of queries whose languages are detected for the card.
LANGUAGE_SHARE = 0.05  # Least share of a language in them: a query with a foreign word does not count.


class ParquetWriter:
    """Writer of data/<split>-00000-of-0000N.parquet and README.md."""

    def __init__(self, files: ExportFiles, options: ExportOptions, collection: Collection) -> None:
        self.files = files
        self.options = options
        self.collection = collection
        import pyarrow as pa

        # The columns, the same for every collection; aggregated labels have a posterior too.
        text = ("query_id", "doc_id", "query", "title", "text", "instruction")
        columns = [(name, pa.string()) for name in text]
        columns += [("grade", pa.int16()), ("relevant", pa.bool_()), ("score", pa.float64())]
        columns += [("yes_votes", pa.int16()), ("votes", pa.int16()), ("contribution_evidence", pa.string())]
        columns += [("source", pa.string()), ("origin", pa.string()), ("assumed", pa.bool_())]
        columns += [
            ("synthetic", pa.bool_()),
            ("labelled_at", pa.string()),
            *([("posterior", pa.float64())] if options.aggregate is not None else []),
        ]
        self.schema = pa.schema(columns)
        self.card = files.open("README.md")
        self.splits: dict[str, int] = {}
        self.languages: Counter[str] = Counter()
        self.rows: list[dict[str, Any]] = []
        self.writer: Any = None

    def begin(self, split: str, queries: list[SetQuery]) -> None:
        """Begin a split, of which the next batches are."""
        self._finish()
        self.split, self.shard, self.room = split, 0, 0
        self.splits[split] = sum(len(query.rows) for query in queries)
        self._next()

    def add(self, batch: Batch) -> int:
        """Collect rows into groups of a fixed size, so that the same rows always give the same bytes."""
        for query in batch:
            if self.languages.total() < SAMPLED:
                self.languages[detect_language(query.text) or "en"] += 1
            for row in query.rows:
                self.rows.append(column_values(query, row))
                if len(self.rows) == min(GROUP, self.room):
                    self._flush()
        return sum(len(query.rows) for query in batch)

    def end(self) -> dict[str, Any]:
        """Write the card last, because it contains the number of rows."""
        self._finish()
        rows = sum(self.splits.values())
        self.card.put(dataset_card(self.collection, self.options, self.splits, list_languages(self.languages), rows))
        return {}

    def _flush(self) -> None:
        import pyarrow as pa

        if self.rows:
            self.writer.write_table(pa.Table.from_pylist(self.rows, self.schema))
            self.output.rows += len(self.rows)
            self.room -= len(self.rows)
            self.rows = []
            if not self.room and self.output.rows == SHARD:
                self._next()

    def _next(self) -> None:
        """Begin the next shard of the split, unless it has all its rows."""
        import pyarrow.parquet as pq

        shards = max(1, -(-self.splits[self.split] // SHARD))
        if self.shard == shards:
            return
        if self.writer is not None:
            self.writer.close()
        self.output = self.files.open(f"data/{self.split}-{self.shard:05}-of-{shards:05}.parquet")
        self.writer = pq.ParquetWriter(
            self.output, self.schema, version="2.6", compression="zstd", compression_level=3, store_schema=False
        )
        self.shard, self.room = self.shard + 1, SHARD

    def _finish(self) -> None:
        if self.writer is not None:
            self._flush()
            self.writer.close()
            self.writer = None


def list_languages(counts: Counter[str]) -> list[str]:
    """Return the languages of a card, from their number of queries; English if none has a sufficient share."""
    return sorted(code for code, n in counts.items() if n >= LANGUAGE_SHARE * counts.total()) or ["en"]


def column_values(query: LoadedQuery, row: SetRow) -> dict[str, Any]:
    """Return the values of a pair by column."""
    document = query.document_of(row)
    return {name: getattr(row, name) for name in SAME} | {
        "query": query.text,
        "title": document.title,
        "text": document.text,
        "instruction": query.instruction,
        "synthetic": query.synthetic,
        "score": row.target_score,
        "yes_votes": row.yes,
        "labelled_at": newest_label_time([row]),
        "posterior": row.posterior,
        "contribution_evidence": query.targets.get(row.pair, "") if row.relevant else "",
    }


def dataset_card(
    collection: Collection, options: ExportOptions, splits: dict[str, int], languages: list[str], rows: int
) -> str:
    """Return the text of README.md: the Hub's header, and a description of the columns."""
    lines = ["---", "configs:", "- config_name: default", "  data_files:"]
    for split in splits:
        lines += [f"  - split: {split}", f"    path: data/{split}-*"]
    lines += ["license: unknown", "language:", *(f"- {code}" for code in languages)]
    lines += [
        "size_categories:",
        f"- {SIZE_CATEGORIES[bisect_right(SIZES, rows)]}",
        "task_categories:",
        "- text-ranking",
    ]
    lines += ["tags:", "- reranking", "- relevance-judgments", "---", "", f"# {collection.title or collection.name}"]
    lines += [
        "",
        "Pairs of a query and a document with a label: "
        + ", ".join(f"{n} in {name}" for name, n in splits.items())
        + ".",
        "No query is in two splits.",
        "",
        f"- `grade`: 0 to {collection.grades}; `relevant`: the grade is "
        f"{options.relevant_from or collection.relevant_from} or more",
        f"- `score`: the teacher ({options.teacher})",
        "- `votes`, `yes_votes`: judges that voted on the pair, and how many said relevant",
        "- `origin`: who the label comes from: a policy of LLM judges, people, or an adjudicator",
        "- `synthetic`: a model wrote the query; nobody asked it",
        "- `labelled_at`: when the newest judgment on the pair was made (UTC)",
        *(["- `posterior`: Dawid-Skene's probability of the grade"] if options.aggregate else []),
        "- `assumed`: nobody judged the pair; a ranking named it and it was taken as a negative",
        "",
        "The licence of the texts is that of their source; whoever shares this set must know it.",
    ]
    return "\n".join(lines) + "\n"
