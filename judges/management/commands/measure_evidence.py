"""`measure_evidence NAME [FILE] [--judge J]` measures contribution and evidence as Prism's table 2 and figure 5 do."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from django.core.management.base import CommandParser

from corpus.commands import QuorumCommand, collection_named
from corpus.errors import BadInput, Incomplete
from corpus.formats.files import read_text
from corpus.models import Collection
from corpus.search.lengths import length_counter
from judges.campaigns.evidence_campaigns import judge_named
from judges.costs.prices import price_for_judge
from judges.evidence import measuring
from judges.evidence.outputs import JudgedOutput, OutputRow, mean_scores, measures_table
from judges.records import Judge
from judges.workers.inline_runner import InlineResult


class OutputLine(NamedTuple):
    """A line of the file: a model's answer about a pair."""

    query: str  # The query's id.
    document: str  # The document's id.
    label: int | None  # 1, 0, or None if the line has none.
    output: str


class Command(QuorumCommand):
    help = "Measure the evidence that a model wrote (JSON Lines), or the collection's own, by rules and by a judge."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the collection")
        parser.add_argument(
            "file",
            nargs="?",
            type=Path,
            help="JSON Lines file of {query_id, doc_id, output, [label]} (default: the collection's own evidence)",
        )
        parser.add_argument(
            "--judge", default="", help="judge that lists entities and scores the texts (default: none, only rules)"
        )
        parser.add_argument(
            "--entities-by", default="", metavar="J", help="with --judge: another judge that lists the entities"
        )
        parser.add_argument(
            "--tokenizer", help="tokenizer.json or model folder whose tokens measure lengths (default: words)"
        )
        parser.add_argument("--max-calls", type=int, help="maximum number of calls; refuse to start if more are needed")

    def run(self, **options: Any) -> object:
        """Measure the texts and return the document of their measures.

        Raises BadInput for wrong options or lines, and Incomplete if the judge left texts without scores.
        """
        collection = collection_named(options["name"])
        rows = self.read_rows(collection, options["file"])
        count_tokens, unit = length_counter(options["tokenizer"])
        document = {"collection": collection.name, "source": str(options["file"] or "targets"), "tokens": unit}
        if options["entities_by"] and not options["judge"]:
            raise BadInput("--entities-by needs --judge, which scores the texts")
        if not options["judge"]:
            table = measures_table(rows, count=count_tokens)
            return self.print_measures({**document, "entities_by": "patterns", **table, "judged": None})
        judge = judge_named(options["judge"])
        # One call lists the entities of a text, and another scores it.
        call_count = 2 * sum(row.target is not None for row in rows)
        if options["max_calls"] is not None and call_count > options["max_calls"]:
            raise BadInput(f"--max-calls {options['max_calls']}: up to {call_count:,} calls would be needed")
        lister = judge_named(options["entities_by"] or judge.name)
        prices = [price_for_judge(judge), price_for_judge(lister)]
        if any(price is None or not price.is_free for price in prices):
            names = " and ".join(dict.fromkeys([judge.name, lister.name]))
            self.stderr.write(f"{names}: up to {call_count:,} calls")
        result = measuring.measure_rows(collection, judge.name, rows, lister=lister.name)
        judged = describe_scores(collection, judge, result)
        # The cost in USD is None if no call has a known price.
        has_no_price = result.calls > 0 and result.unpriced == result.calls
        report = self.print_measures(
            {
                **document,
                "entities_by": f"patterns and {lister.name}",
                **measures_table(rows, result.answers, count_tokens),
                "judged": judged,
                **{
                    "campaign": result.campaign.number,
                    "calls": result.calls,
                    "calls_cached": result.cached,
                    "cost": None if has_no_price else result.cost,
                    "calls_without_price": result.unpriced,
                },
            }
        )
        if judged["without_scores"] and not judged["rows"] and not result.lost:
            raise Incomplete(f"No text was judged: {judge.name} gave no answer that counts, see check_judges", report)
        if result.lost:
            raise Incomplete(
                f"{result.lost:,} texts were not judged: the same command again asks for them only", report
            )
        return report

    def read_rows(self, collection: Collection, file: Path | None) -> list[OutputRow]:
        """Return the texts of the file with their pairs, or without a file the collection's own.

        Raises BadInput, with the number of the line, for a line that is malformed or names an unknown pair.
        """
        if file is None:
            return measuring.rows_of_targets(collection)
        lines = read_outputs(file)
        rows = measuring.rows_of_outputs(collection, lines)
        for number, (line, row) in enumerate(zip(lines, rows, strict=True), 1):
            if row is None:
                raise BadInput(
                    f"{file}:{number}: {collection.name} has no pair of query {line.query} and document {line.document}"
                )
        pair_rows = [row for row in rows if row is not None]
        if len({row.pair for row in pair_rows}) < len(pair_rows):
            raise BadInput(f"{file}: a pair is listed twice: give one answer for each")
        return pair_rows

    def print_measures(self, document: dict[str, Any]) -> dict[str, Any]:
        """Print a line for each measure, unless the output is JSON; return the document."""
        if not self.as_json:
            judged = document["judged"] or {}
            for name, value in [*document.items(), *judged.items()]:
                if isinstance(value, float):
                    self.say(f"  {name:<24} {value:.3f}")
                elif isinstance(value, int | str) and not isinstance(value, bool):
                    self.say(f"  {name:<24} {value}")
            self.say(f"  compression              {document['compression']}")
            for name, reason in document["reasons"].items():
                self.say(f"  {name}: not measured, {reason}")
        return document


def describe_scores(collection: Collection, judge: Judge, result: InlineResult[JudgedOutput]) -> dict[str, Any]:
    """Return who scored the texts, what the scores mean, how many texts have scores, and the mean of each dimension."""
    scored_count = sum(scores is not None for _entities, scores in result.answers.values())
    return {
        "judge": judge.name,
        "as": measuring.score_meaning(collection, judge),
        "rows": scored_count,
        # Without scores are the texts that the judge answered otherwise, and those without any answer.
        "without_scores": len(result.answers) - scored_count + result.lost,
        **mean_scores(result.answers),
    }


def read_outputs(file: Path) -> list[OutputLine]:
    """Return the lines of a file of outputs, without empty ones.

    Raises BadInput, with the number of the line, for a malformed line, and for a file without lines.
    """
    outputs = []
    for number, line in enumerate(read_text(file).split("\n"), 1):
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
            query, document, output = (fields[name] for name in ("query_id", "doc_id", "output"))
        except (ValueError, TypeError, KeyError) as error:
            raise BadInput(f"{file}:{number}: not a JSON object with query_id, doc_id and output") from error
        label = fields.get("label")
        if not all(isinstance(value, str) for value in (query, document, output)) or label not in (None, 0, 1):
            raise BadInput(f"{file}:{number}: ids and output are strings, label is 0, 1 or left out")
        outputs.append(OutputLine(query, document, label, output))
    if not outputs:
        raise BadInput(f"{file}: there is no line; each is {{query_id, doc_id, output}}")
    return outputs
