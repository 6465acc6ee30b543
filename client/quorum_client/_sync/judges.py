"""Judges: models, the panel, prices, self-checks; evidence, label errors and policies beside them."""

from collections.abc import Iterator, Sequence
from typing import Any

from quorum_client._sync.resources import Resource
from quorum_client.answers import build_body
from quorum_client.models import (
    CanariesOut,
    JobEstimateOut,
    JudgeOut,
    JudgesFileOut,
    MeasuredOut,
    PanelOut,
    PoliciesOut,
    PriceIn,
    PriceOut,
    SelfCheckOut,
    SelfCheckStartedOut,
    SuspectsOut,
)


class Judges(Resource):
    """Configured models, and the panel of the collection."""

    def list(self) -> Sequence[JudgeOut]:
        """List the models by name."""
        return self.transport.read(tuple[JudgeOut, ...], self.at("judges"))

    def read_panel(self) -> PanelOut:
        """Read the panel that new campaigns use."""
        return self.transport.read(PanelOut, self.at("panel"))

    def use_panel(
        self, judges: Sequence[str], debate: Sequence[str] | None = None, *, default: bool = False
    ) -> PanelOut:
        """Make these judges and debaters the panel; None: the debaters stay. `default`: the site's, too, by owners."""
        body = {"judges": [*judges], "debate": None if debate is None else [*debate], "default": default}
        return self.transport.post(PanelOut, self.at("panel"), body)

    def read_file(self) -> JudgesFileOut:
        """Read the judges file, as an owner of the site."""
        return self.transport.read(JudgesFileOut, self.at("judges", "file"))

    def load_file(self, text: str) -> JudgesFileOut:
        """Load a judges file for the whole site, as an owner."""
        return self.transport.post(JudgesFileOut, self.at("judges", "file"), {"text": text})

    def read_self_checks(self) -> Sequence[SelfCheckOut]:
        """Read the newest self-check of each judge of the panel."""
        return self.transport.read(tuple[SelfCheckOut, ...], self.at("self-checks"))

    def estimate_self_check(self, judges: Sequence[str]) -> JobEstimateOut:
        """Estimate calls and cost of a self-check."""
        body = {"judges": [*judges]}
        return self.transport.post(JobEstimateOut, self.at("self-checks", "estimate"), body)

    def run_self_check(self, judges: Sequence[str]) -> SelfCheckStartedOut:
        """Ask judges about pairs whose label is known; a worker does it."""
        return self.transport.post(SelfCheckStartedOut, self.at("self-checks"), {"judges": [*judges]})

    def read_canaries(self) -> CanariesOut:
        """Read how often judges are tested with hostile text."""
        return self.transport.read(CanariesOut, self.at("canaries"))

    def schedule_canaries(self, *, hours: int, paid: bool = False) -> CanariesOut:
        """Set how often judges are tested with hostile text; 0 hours: never."""
        return self.transport.change(CanariesOut, self.at("canaries"), {"hours": hours, "paid": paid})

    def ask_canaries(self, *, paid: bool = False) -> CanariesOut:
        """Test judges with hostile text now."""
        return self.transport.post(CanariesOut, self.at("canaries"), {"paid": paid})


class Prices(Resource):
    """Prices of judges, in USD for a million tokens."""

    def list(self) -> Iterator[PriceOut]:
        """List the price that holds for each judge."""
        return self.transport.iterate(PriceOut, self.at("prices"))

    def read(self, number: int) -> PriceOut:
        """Read the price of a judge."""
        return self.transport.read(PriceOut, self.at("prices", number))

    def change(
        self, number: int, asked: PriceIn | None = None, *, if_match: PriceOut | None = None, **fields: Any
    ) -> PriceOut:
        """Enter a price (`input_price`, `output_price` ...); both null: it is taken away."""
        body = build_body(PriceIn, asked, fields)
        return self.transport.change(PriceOut, self.at("prices", number), body, if_match)


class LabelErrors(Resource):
    """Suspected label errors."""

    def read(self) -> SuspectsOut:
        """Read the list, the most suspicious label first."""
        return self.transport.read(SuspectsOut, self.at("label-errors"))

    def find(self) -> MeasuredOut:
        """Search for label errors, by a worker where one lives."""
        return self.transport.post(MeasuredOut, self.at("label-errors"))

    def cancel(self) -> SuspectsOut:
        """Cancel a search; the earlier list stays."""
        return self.transport.post(SuspectsOut, self.at("label-errors", "cancel"))


class Policies(Resource):
    """Policies replayed on a campaign's stored answers."""

    def read(self, campaign: int | None = None) -> PoliciesOut:
        """Compare policies; None: on the newest campaign that has answers."""
        params = {} if campaign is None else {"campaign": campaign}
        return self.transport.read(PoliciesOut, self.at("policies"), params)

    def compare(self, campaign: int | None = None) -> MeasuredOut:
        """Compare policies of a large collection anew, by a worker where one lives."""
        return self.transport.post(MeasuredOut, self.at("policies"), {"campaign": campaign})
