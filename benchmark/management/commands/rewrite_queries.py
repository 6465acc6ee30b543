"""`rewrite_queries NAME --data EXPORT --judge J`: have keyword forms of training queries written (Prism 4.1)."""

from benchmark.synthesis.lifecycle import STARTS, SYNTHESES, summarise_writing
from benchmark.synthesis.options import KeywordOptions
from judges.management.job_command import JobCommand


class Command(JobCommand):
    name = "rewrite_queries"
    help = (
        "Have a judge write the keyword form of a share of the training queries, as queries of their own with pairs "
        "to be judged; both forms are kept. Running the command again continues where it stopped."
    )
    kind = SYNTHESES
    start = staticmethod(STARTS[KeywordOptions.product])
    summarise = staticmethod(summarise_writing)
