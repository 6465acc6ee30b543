"""rewrite_queries NAME --data EXPORT --judge J: keyword forms of a share of a training set's queries (Prism 4.1)."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from benchmark.management.commands.write_queries import Command as WriteQueries
from benchmark.models import Synthesis
from benchmark.synthesis.queries import SHARE


class Command(WriteQueries):
    name = "rewrite_queries"
    help = (
        "Have a judge write the keyword form of a share of the training queries, as queries of their own with pairs "
        "to be judged; both forms are kept. Running the command again continues where it stopped."
    )
    product = Synthesis.Product.KEYWORDS
    own = ("share",)

    def add_sources(self, parser: CommandParser) -> None:
        """Add the training set, and how many of its queries."""
        parser.add_argument(
            "--data",
            type=Path,
            required=True,
            metavar="EXPORT",
            help="exported training set (prism, rtriever or erank-sft); queries of its dev split stay as they are",
        )
        parser.add_argument("--share", type=float, default=SHARE, help=f"share of its train queries (default: {SHARE})")

    def source(self, options: dict[str, Any]) -> str:
        """Return the folder of the training set."""
        return str(options["data"].resolve())
