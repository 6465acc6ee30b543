"""Campaigns of judges, and the audits of their labels."""

from collections.abc import AsyncIterator
from typing import Any

from quorum_client._async.resources import AsyncJobs, AsyncResource
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


class AsyncCampaigns(AsyncJobs[StatusOut]):
    """Campaigns: a policy with a panel over the pairs of the collection."""

    title = "campaign"

    def list(self) -> AsyncIterator[CampaignOut]:
        """List the campaigns, the oldest first."""
        return self.transport.iterate(CampaignOut, self.at("campaigns"))

    async def estimate(self, asked: CampaignIn | None = None, **fields: Any) -> EstimateOut:
        """Estimate calls, money and people's hours; nothing starts."""
        body = build_body(CampaignIn, asked, fields)
        return await self.transport.post(EstimateOut, self.at("campaigns", "estimate"), body)

    async def start(self, asked: CampaignIn | None = None, **fields: Any) -> StartedOut:
        """Start a campaign (`policy`, `panel`, `limit`, `budget` ...), or go on with the one of this configuration."""
        body = build_body(CampaignIn, asked, fields)
        return await self.transport.post(StartedOut, self.at("campaigns"), body)

    async def estimate_evidence(self, asked: EvidenceIn | None = None, **fields: Any) -> JobEstimateOut:
        """Estimate what writing contributions and evidence would cost."""
        body = build_body(EvidenceIn, asked, fields)
        return await self.transport.post(JobEstimateOut, self.at("campaigns", "evidence", "estimate"), body)

    async def write_evidence(self, asked: EvidenceIn | None = None, **fields: Any) -> StartedOut:
        """Start a campaign that writes contributions and evidence (`writer`, `measure`, `limit` ...)."""
        body = build_body(EvidenceIn, asked, fields)
        return await self.transport.post(StartedOut, self.at("campaigns", "evidence"), body)

    async def read(self, number: int) -> StatusOut:
        """Read how far a campaign is."""
        return await self.transport.read(StatusOut, self.at("campaigns", number))

    async def pause(self, number: int) -> ControlledOut:
        """Pause a campaign."""
        return await self._control(number, "pause")

    async def resume(self, number: int) -> ControlledOut:
        """Resume a campaign."""
        return await self._control(number, "resume")

    async def cancel(self, number: int) -> ControlledOut:
        """Cancel a campaign."""
        return await self._control(number, "cancel")

    async def retry_failed(self, number: int) -> ControlledOut:
        """Judge the failed pairs of a campaign again."""
        return await self._control(number, "retry-failed")

    async def _control(self, number: int, act: str) -> ControlledOut:
        return await self.transport.post(ControlledOut, self.at("campaigns", number, act))

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


class AsyncAudits(AsyncResource):
    """Label audits: how right the automatic labels are."""

    def list(self) -> AsyncIterator[AuditOut]:
        """List the campaigns that have audited pairs."""
        return self.transport.iterate(AuditOut, self.at("audits"))

    async def read(self, campaign: int) -> AuditDetailsOut:
        """Read the audit of a campaign, with each route to a label."""
        return await self.transport.read(AuditDetailsOut, self.at("audits", campaign))

    async def draw(self, campaign: int, up_to: int, route: str = "") -> AuditedPairsOut:
        """Draw more pairs for people to check, up to so many in all."""
        body = {"up_to": up_to, "route": route}
        return await self.transport.post(AuditedPairsOut, self.at("audits", campaign, "draw"), body)

    async def send_to_people(self, campaign: int, route: str) -> AuditedPairsOut:
        """Have people judge all pairs that a route labelled."""
        return await self.transport.post(AuditedPairsOut, self.at("audits", campaign, "to-people"), {"route": route})

    async def resume_route(self, campaign: int, route: str, *, stop: bool = False) -> AuditDetailsOut:
        """Let a route that was stopped label again; `stop` takes that back."""
        body = {"route": route, "stop": stop}
        return await self.transport.post(AuditDetailsOut, self.at("audits", campaign, "go-on"), body)
