"""`lara NAME --judge J --share S`: calibrate a judge's votes with people's labels (LARA)."""

from typing import Any

from django.core.management.base import CommandParser

from annotation.quality.policies import lara_live
from annotation.quality.policies.report import named_campaign
from corpus.commands import QuorumCommand, collection_named
from judges.campaigns import selectors


class Command(QuorumCommand):
    help = "Run LARA: people judge the pairs on which a judge is least certain; their labels calibrate the rest."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the collection")
        parser.add_argument("--judge", required=True, help="name of a judge that voted with log-probabilities")
        parser.add_argument(
            "--share", type=float, default=0.125, help="share of the pairs that people judge (default: 0.125)"
        )
        parser.add_argument(
            "--campaign",
            type=int,
            metavar="N",
            help="number of the campaign whose votes are used (default: the judge's newest)",
        )
        parser.add_argument(
            "--no-debate-for-people",
            dest="debates",
            action="store_false",
            help="do not debate pairs before people judge them (default: the panel's debaters do)",
        )

    def run(self, **options: Any) -> object:
        collection = collection_named(options["name"])
        source = named_campaign(collection, options["campaign"])
        judge, share, debates = options["judge"], options["share"], options["debates"]
        campaign = lara_live.start(collection, source=source, judge=judge, share=share, debates=debates)
        step = lara_live.step(campaign)
        line = f"nothing to do, people settled {step.people_pairs:,} pairs"
        if step.labelled:
            line = f"people settled {step.people_pairs:,} pairs, {step.labelled:,} are labelled by it"
        elif step.waiting:
            line = (
                f"people got {step.people_pairs:,} of {step.budget:,} pairs, "
                f"{step.waiting:,} wait for them; the next batch follows when these are settled"
            )
        if not self.as_json:
            self.say(f"campaign {campaign.number}: {line}")
        return selectors.campaign_status(collection, campaign)
