"""`scale_study NAME --judges a,b,c`: a model's scores as yes/no, 0-3 and 0-10 on the same pairs."""

from typing import Any

from django.core.management.base import CommandParser

from actions.options import split_names
from annotation.quality.scale_study import study
from corpus.commands import QuorumCommand, collection_named
from corpus.errors import BadInput


class Command(QuorumCommand):
    name = "scale_study"
    help = "Compare the scores of one model on several scales, from stored votes (ERank 3.2)."

    def arguments(self, parser: CommandParser) -> None:
        """Add the options. The judges are one model with different scales."""
        parser.add_argument("name", help="name of the collection")
        parser.add_argument(
            "--judges",
            type=split_names,
            required=True,
            help="two or more judges that voted on the same pairs, separated by commas",
        )

    def run(self, **options: Any) -> object:
        """Print a line for each judge."""
        collection = collection_named(options["name"])
        if len(options["judges"]) < 2:
            raise BadInput("--judges: name two or more, one for each scale")
        document = study.study_scales(collection, options["judges"])
        self.say(f"{document['pairs']:,} pairs that all of them judged")
        self.say(f"{'judge':24} {'scale':7} {'nDCG@10':>8} {'ties':>7} {'<1e-5':>7} {'>1-1e-5':>8}  scores from 0 to 1")
        for scale in document["scales"]:
            self.say(
                f"{scale['judge']:24} {scale['scale']:7} {_share(scale['ndcg'], 4):>8} "
                f"{_share(scale['ties']):>7} {_share(scale['certain_no']):>7} {_share(scale['certain_yes']):>8}  "
                f"{' '.join(map(str, scale['histogram']))}"
            )
            if not scale["probabilities"]:
                self.say(f"{'':24} no token probabilities: set logprobs, or the score is the bare answer")
        return document


def _share(value: float | None, digits: int = 3) -> str:
    return "none" if value is None else f"{value:.{digits}f}"
