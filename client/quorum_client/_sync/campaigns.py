"""Campaigns of judges, and the audits of their labels."""

from collections.abc import Iterator
from typing import Any

from quorum_client._sync.resources import Jobs, Resource
from quorum_client.answers import build_body
from quorum_client.models import (
    AuditDetailsOut,
    AuditedPairsOut,
    AuditOut,
    CampaignIn,
    CampaignOut,
    ControlledOut,
    EstimateOut,
    EvidenceIn,
    JobEstimateOut,
    StartedOut,
    StatusOut,
)


class Campaigns(Jobs[StatusOut]):
    """Campaigns: a policy with a panel over the pairs of the collection."""

    title = "campaign"

    def list(self) -> Iterator[CampaignOut]:
        """List the campaigns, the oldest first."""
        return self.transport.iterate(CampaignOut, self.at("campaigns"))

    def estimate(self, asked: CampaignIn | None = None, **fields: Any) -> EstimateOut:
        """Estimate calls, money and people's hours; nothing starts."""
        body = build_body(CampaignIn, asked, fields)
        return self.transport.post(EstimateOut, self.at("campaigns", "estimate"), body)

    def start(self, asked: CampaignIn | None = None, **fields: Any) -> StartedOut:
        """Start a campaign (`policy`, `panel`, `limit`, `budget` ...), or go on with the one of this configuration."""
        body = build_body(CampaignIn, asked, fields)
        return self.transport.post(StartedOut, self.at("campaigns"), body)

    def estimate_evidence(self, asked: EvidenceIn | None = None, **fields: Any) -> JobEstimateOut:
        """Estimate what writing contributions and evidence would cost."""
        body = build_body(EvidenceIn, asked, fields)
        return self.transport.post(JobEstimateOut, self.at("campaigns", "evidence", "estimate"), body)

    def write_evidence(self, asked: EvidenceIn | None = None, **fields: Any) -> StartedOut:
        """Start a campaign that writes contributions and evidence (`writer`, `measure`, `limit` ...)."""
        body = build_body(EvidenceIn, asked, fields)
        return self.transport.post(StartedOut, self.at("campaigns", "evidence"), body)

    def read(self, number: int) -> StatusOut:
        """Read how far a campaign is."""
        return self.transport.read(StatusOut, self.at("campaigns", number))

    def pause(self, number: int) -> ControlledOut:
        """Pause a campaign."""
        return self._control(number, "pause")

    def resume(self, number: int) -> ControlledOut:
        """Resume a campaign."""
        return self._control(number, "resume")

    def cancel(self, number: int) -> ControlledOut:
        """Cancel a campaign."""
        return self._control(number, "cancel")

    def retry_failed(self, number: int) -> ControlledOut:
        """Judge the failed pairs of a campaign again."""
        return self._control(number, "retry-failed")

    def _control(self, number: int, act: str) -> ControlledOut:
        return self.transport.post(ControlledOut, self.at("campaigns", number, act))

    def find_end(self, found: StatusOut) -> str | None:
        """Say how the campaign ended; one that somebody paused goes on some time."""
        state, because = found.status["state"], found.status.get("paused_because")
        # A person who paused it may resume it at any time; after a provider's refusal nobody will without mending
        # something.
        if state == "running" or (state == "paused" and not because):
            return None
        return "" if state == "finished" else because or state

    def count_done(self, found: StatusOut) -> tuple[int, int]:
        """Count the pairs that judges are through with."""
        status = found.status
        return status["labelled"] + status["escalated"] + status["failed"], status["pairs"]


class Audits(Resource):
    """Label audits: how right the automatic labels are."""

    def list(self) -> Iterator[AuditOut]:
        """List the campaigns that have audited pairs."""
        return self.transport.iterate(AuditOut, self.at("audits"))

    def read(self, campaign: int) -> AuditDetailsOut:
        """Read the audit of a campaign, with each route to a label."""
        return self.transport.read(AuditDetailsOut, self.at("audits", campaign))

    def draw(self, campaign: int, up_to: int, route: str = "") -> AuditedPairsOut:
        """Draw more pairs for people to check, up to so many in all."""
        body = {"up_to": up_to, "route": route}
        return self.transport.post(AuditedPairsOut, self.at("audits", campaign, "draw"), body)

    def send_to_people(self, campaign: int, route: str) -> AuditedPairsOut:
        """Have people judge all pairs that a route labelled."""
        return self.transport.post(AuditedPairsOut, self.at("audits", campaign, "to-people"), {"route": route})

    def resume_route(self, campaign: int, route: str, *, stop: bool = False) -> AuditDetailsOut:
        """Let a route that was stopped label again; `stop` takes that back."""
        body = {"route": route, "stop": stop}
        return self.transport.post(AuditDetailsOut, self.at("audits", campaign, "go-on"), body)
