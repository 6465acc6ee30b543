"""`write_queries NAME --judge J --limit N`: have queries written that the collection's documents answer."""

from benchmark.synthesis.lifecycle import STARTS, SYNTHESES, summarise_writing
from benchmark.synthesis.options import AskOptions
from judges.management.job_command import JobCommand


class Command(JobCommand):
    name = "write_queries"
    help = (
        "Have a judge write a query for each of some documents, marked synthetic, with pairs to be judged. "
        "Running the command again continues where it stopped."
    )
    kind = SYNTHESES
    start = staticmethod(STARTS[AskOptions.product])
    summarise = staticmethod(summarise_writing)
