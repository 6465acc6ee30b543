"""`suite make NAME COLLECTION...`, `suite list`, `suite report|funnel|delete NAME`: collections measured together."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.utils.translation import gettext as _

from benchmark.measures.arrays import BY_VERSION
from benchmark.models import Suite
from benchmark.report import reports
from benchmark.report.naming import ASPECTS
from benchmark.report.weighting import COUNTS
from benchmark.suites import funnels, groups
from charts.downloads import DownloadTable
from corpus.collections.audit_log import shell_user
from corpus.commands import QuorumCommand, collection_named
from corpus.errors import BadInput

MEASURES = ("hole", *BY_VERSION, *ASPECTS)
TESTS = ("low", "high", "p", "p_holm", "letters_before", "letters_after")


class Command(QuorumCommand):
    """Make, list and report suites."""

    help = "Manage suites: tables with a column per collection and their unweighted mean."

    def arguments(self, parser: CommandParser) -> None:
        """Add the action, the suite, its collections, and the options of a report."""
        parser.add_argument("what", choices=["make", "list", "report", "funnel", "delete"], help="what to do")
        parser.add_argument("suite", nargs="?", metavar="NAME", help="name of the suite")
        parser.add_argument(
            "collections", nargs="*", metavar="COLLECTION", help="for make: member collections, in order"
        )
        parser.add_argument("--title", default="", help="for make: title shown on pages")
        parser.add_argument("--measure", choices=MEASURES, default="ndcg", help="for report: measure")
        parser.add_argument(
            "--weights", choices=["plain", COUNTS], default="plain", help="for report: by what the means are weighted"
        )
        parser.add_argument("--k", type=int, default=reports.K, help="for report: cutoff rank")
        parser.add_argument("--csv", type=Path, metavar="F", help="for report and funnel: also write the table as CSV")
        parser.add_argument(
            "--latex", type=Path, metavar="F", help="for report and funnel: also write the table as LaTeX"
        )

    def run(self, **options: Any) -> object:
        """Make, list, report or delete a suite."""
        if options["what"] == "list":
            documents = [describe_suite(suite) for suite in Suite.objects.order_by("name")]
            for document in documents:
                self.say(f"{document['suite']}: {', '.join(document['members'])}")
            if not documents:
                self.say("no suite yet: suite make NAME COLLECTION...")
            return {"suites": documents}
        if not options["suite"]:
            raise BadInput(f"Name the suite: suite {options['what']} NAME")
        if options["what"] == "make":
            members = [collection_named(name) for name in options["collections"]]
            new_suite = groups.make_suite(name=options["suite"], collections=members, title=options["title"])
            self.say(f"suite {new_suite.name}: {', '.join(collection.name for collection in members)}")
            return describe_suite(new_suite)
        suite = Suite.objects.filter(name=options["suite"]).first()
        if suite is None:
            names = ", ".join(Suite.objects.order_by("name").values_list("name", flat=True)[:20])
            message = _("There is no suite %(name)s; there are: %(known)s")
            raise BadInput(message % {"name": options["suite"], "known": names or _("none yet")})
        if options["what"] == "delete":
            groups.delete_suite(suite)
            self.say(f"suite {suite.name} is gone; its collections stay")
            return {"suite": options["suite"], "deleted": True}
        if options["what"] == "funnel":
            table = funnels.funnel_table(suite)
            if table is None:
                raise BadInput(f"No member of {suite.name} has had its holes filled: start with holes NAME --fill")
            _write_table(table, options)
            for name, *steps in table.rows:
                step_counts = [
                    f"{step} {count:,}"
                    for step, count in zip(table.header[1:], steps, strict=True)
                    if count is not None
                ]
                self.say(f"{name}: {', '.join(step_counts) or 'nothing filled yet'}")
            documents = [
                {"collection": collection.name, "funnel": funnel and funnel.document}
                for collection, funnel in funnels.member_funnels(suite)
            ]
            return {"suite": suite.name, "members": documents}
        return self.report(suite, options)

    def report(self, suite: Suite, options: dict[str, Any]) -> object:
        """Make the missing reports of the members, then print the table."""
        weights = COUNTS if options["weights"] == COUNTS else ""
        for collection in groups.collections_of(suite):
            if groups.ensure_report(collection, options["k"], shell_user(), weights) is None:
                self.say(f"{collection.name} has no ready run at k = {options['k']}: its column is blank")
        key, columns = options["measure"], groups.suite_columns(suite, options["k"], weights)
        lines = groups.suite_lines(columns, key)
        table = groups.suite_table(suite, columns, lines, key, options["k"])
        _write_table(table, options)
        names = [collection.name for collection, _report in columns]
        self.say(f"{groups.label_of(columns, key, options['k'])} after filling (change)")
        if weights:
            self.say("Means of each collection are weighted by the counts of its query log.")
        heads = [*(f"{name:>18}" for name in (*names, "mean")), "95% of its change; p (Holm); letters"]
        self.say("  ".join([f"{'system':<20}", *heads]))
        for line in lines:
            cells = []
            for value in (*line["values"], line["mean"]):
                change = f" ({value['change']:+.4f})" if value and value["change"] is not None else ""
                mean = f"{value['after']:.4f}{change}" if value else ""
                cells.append(f"{mean:>18}")
            tests = line["tests"]
            change_tests = str(tests.get("letters_after", ""))
            if "p" in tests:
                interval = f"{tests['low']:+.4f} to {tests['high']:+.4f}"
                change_tests = f"{interval}  {tests['p_holm']:.4f}  {change_tests}"
            self.say("  ".join([f"{line['system']:<20}", *cells, change_tests]).rstrip())
        return {
            "suite": suite.name,
            "measure": key,
            "k": options["k"],
            "weights": options["weights"],
            "members": [
                {"collection": collection.name, "report": report and report.number} for collection, report in columns
            ],
            "systems": [
                {
                    "name": line["system"],
                    "values": {name: cell_values(value) for name, value in zip(names, line["values"], strict=True)},
                    "mean": cell_values(line["mean"]),
                    "tests": {name: line["tests"].get(name) for name in TESTS} if line["tests"] else None,
                }
                for line in lines
            ],
        }


def _write_table(table: DownloadTable, options: dict[str, Any]) -> None:
    for path, text in ((options["csv"], table.csv()), (options["latex"], table.latex())):
        if path:
            path.write_text(text, encoding="utf-8")


def describe_suite(suite: Suite) -> dict[str, Any]:
    """Return a suite and its members as a document."""
    return {
        "suite": suite.name,
        "title": suite.title,
        "members": [collection.name for collection in groups.collections_of(suite)],
    }


def cell_values(value: Any) -> dict[str, float | None] | None:
    """Return the figures of a cell for --json; None for a blank cell."""
    return {name: value[name] for name in ("before", "after", "change")} if value is not None else None
