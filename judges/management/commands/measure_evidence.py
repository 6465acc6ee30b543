"""`measure_evidence NAME [FILE] [--judge J]`: measure contribution and evidence as P's table 2 and figure 5."""

import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from corpus.commands import QuorumCommand, collection_named
from corpus.errors import BadInput, Incomplete
from corpus.formats.files import read_text
from corpus.models import Collection
from corpus.search.lengths import length_counter
from judges.campaigns.evidence_campaigns import judge_named
from judges.costs.prices import price_for_judge
from judges.evidence import measuring
from judges.evidence.outputs import OutputRow, mean_scores, measures_table

Line = tuple[str, str, int | None, str]


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
        collection = collection_named(options["name"])
        rows = self.rows(collection, options["file"])
        count, unit = length_counter(options["tokenizer"])
        document = {"collection": collection.name, "source": str(options["file"] or "targets"), "tokens": unit}
        if options["entities_by"] and not options["judge"]:
            raise BadInput("--entities-by needs --judge, which scores the texts")
        if not options["judge"]:
            return self.print_measures(
                {**document, "entities_by": "patterns", **measures_table(rows, count=count), "judged": None}
            )
        judge = judge_named(options["judge"])
        calls = 2 * sum(row.target is not None for row in rows)
        if options["max_calls"] is not None and calls > options["max_calls"]:
            raise BadInput(f"--max-calls {options['max_calls']}: up to {calls:,} calls would be needed")
        lister = judge_named(options["entities_by"] or judge.name)
        prices = [price_for_judge(judge), price_for_judge(lister)]
        if any(price is None or not price.is_free for price in prices):
            names = " and ".join(dict.fromkeys([judge.name, lister.name]))
            self.stderr.write(f"{names}: up to {calls:,} calls")
        result = measuring.measure_rows(collection, judge.name, rows, lister=lister.name)
        judged = {
            "judge": judge.name,
            "as": measuring.score_meaning(collection, judge),
            "rows": sum(scores is not None for _named, scores in result.answers.values()),
            "without_scores": sum(scores is None for _named, scores in result.answers.values()) + result.lost,
            **mean_scores(result.answers),
        }
        cost = None if result.calls and result.unpriced == result.calls else result.cost
        costs = {"campaign": result.campaign.number, "calls": result.calls, "calls_cached": result.cached, "cost": cost}
        costs["calls_without_price"] = result.unpriced
        document["entities_by"] = f"patterns and {lister.name}"
        report = self.print_measures(
            {**document, **measures_table(rows, result.answers, count), "judged": judged, **costs}
        )
        if judged["without_scores"] and not judged["rows"] and not result.lost:
            raise Incomplete(f"No text was judged: {judge.name} gave no answer that counts, see check_judges", report)
        if result.lost:
            raise Incomplete(
                f"{result.lost:,} texts were not judged: the same command again asks for them only", report
            )
        return report

    def rows(self, collection: Collection, file: Path | None) -> list[OutputRow]:
        """Return the texts of the file, or the collection's own, with their pairs. Raises BadInput with the line."""
        if file is None:
            return measuring.rows_of_targets(collection)
        lines = read_outputs(file)
        rows = measuring.rows_of_outputs(collection, lines)
        for number, (line, row) in enumerate(zip(lines, rows, strict=True), 1):
            if row is None:
                raise BadInput(
                    f"{file}:{number}: {collection.name} has no pair of query {line[0]} and document {line[1]}"
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
                if isinstance(value, float | int | str) and not isinstance(value, bool):
                    self.say(f"  {name:<24} {value if not isinstance(value, float) else format(value, '.3f')}")
            self.say(f"  compression              {document['compression']}")
            for name, reason in document["reasons"].items():
                self.say(f"  {name}: not measured, {reason}")
        return document


def read_outputs(file: Path) -> list[Line]:
    """Read a file of outputs. Raises BadInput with the line."""
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
        outputs.append((query, document, label, output))
    if not outputs:
        raise BadInput(f"{file}: there is no line; each is {{query_id, doc_id, output}}")
    return outputs
