"""`lara NAME --judge J --share S`: calibrate a judge's votes on people's labels; the same command goes on."""

from typing import Any

from django.core.management.base import CommandParser

from annotation.management.commands.evaluate_policies import find_campaign
from annotation.policies import lara_live
from corpus.commands import QuorumCommand, collection_named
from judges.campaigns import selectors
from judges.models import Campaign


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
        source = find_campaign(collection, options["campaign"])
        given = {"judge": options["judge"], "share": options["share"], "debates": options["debates"]}
        campaign = lara_live.start(collection, source=source, **given)
        step = lara_live.step(campaign)
        if not self.as_json:
            self.say(self.describe_step(campaign, step))
        return selectors.campaign_status(collection, campaign)

    def describe_step(self, campaign: Campaign, step: lara_live.LaraStep) -> str:
        """Return a line that says how far the calibration is."""
        if step.labelled:
            settled = f"people settled {step.asked:,} pairs"
            return f"campaign {campaign.number}: {settled}, {step.labelled:,} are labelled by it"
        if step.waiting:
            return (
                f"campaign {campaign.number}: people got {step.asked:,} of {step.budget:,} pairs, "
                f"{step.waiting:,} wait for them; the next batch follows when these are settled"
            )
        return f"campaign {campaign.number}: nothing to do, people settled {step.asked:,} pairs"
