"""Acts on many pairs, the audit log, and suites of collections."""

from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from typing import Any

from quorum_client._async.resources import AsyncResource
from quorum_client._async.transport import AsyncTransport
from quorum_client.models import (
    AuditEntryOut,
    HandedOverOut,
    PairActOut,
    SuiteAnswerOut,
    SuiteOut,
    SuiteSystemsOut,
)


class AsyncPairActs(AsyncResource):
    """Acts on many pairs: planned, run, undone."""

    def list(self) -> AsyncIterator[PairActOut]:
        """List the acts that were carried out, the oldest first."""
        return self.transport.iterate(PairActOut, self.at("pair-acts"))

    async def plan(self, kind: str, pairs: Iterable[int]) -> PairActOut:
        """Plan an act: send, reassign, priority, exclude, reinstate or export."""
        return await self.transport.post(PairActOut, self.at("pair-acts"), {"kind": kind, "pairs": [*pairs]})

    async def read(self, number: int) -> PairActOut:
        """Read what an act will do, or did."""
        return await self.transport.read(PairActOut, self.at("pair-acts", number))

    async def run(self, number: int, option: str = "") -> PairActOut:
        """Carry out a planned act with one of its `options`."""
        return await self.transport.post(PairActOut, self.at("pair-acts", number, "run"), {"option": option})

    async def undo(self, number: int) -> PairActOut:
        """Undo an act where nobody changed its pairs since."""
        return await self.transport.post(PairActOut, self.at("pair-acts", number, "undo"))

    async def download(self, number: int, to: str | Path) -> Path:
        """Download the pairs of an export that was carried out."""
        return await self.transport.download(self.at("pair-acts", number, "file"), Path(to))

    async def hand_over_skipped(self) -> int:
        """Give the pairs that everybody skipped to the adjudicators; return how many."""
        return (await self.transport.post(HandedOverOut, self.at("pairs", "skipped", "adjudicate"))).count


class AsyncAuditLog(AsyncResource):
    """Audit log of the collection: acts, who did them and when."""

    def list(self, **filters: Any) -> AsyncIterator[AuditEntryOut]:
        """List the acts, the oldest first: `act`, `actor`, `person`, `since`, `until`."""
        return self.transport.iterate(AuditEntryOut, self.at("audit-log"), filters)


class AsyncSuites:
    """Suites: collections that are measured together. Needs a token for all collections."""

    def __init__(self, transport: AsyncTransport) -> None:
        self.transport = transport

    async def list(self) -> Sequence[SuiteOut]:
        """List the suites, by name."""
        return await self.transport.read(tuple[SuiteOut, ...], "suites")

    async def make(self, name: str, members: Iterable[str], title: str = "") -> SuiteOut:
        """Make a suite of collections."""
        body = {"name": name, "title": title, "members": [*members]}
        return await self.transport.post(SuiteOut, "suites", body)

    async def read(self, number: int) -> SuiteOut:
        """Read a suite."""
        return await self.transport.read(SuiteOut, f"suites/{number}")

    async def read_systems(self, number: int, measure: str = "ndcg") -> SuiteSystemsOut:
        """Read the systems by collection, and their unweighted mean."""
        return await self.transport.read(SuiteSystemsOut, f"suites/{number}/systems", {"measure": measure})

    async def read_answers(self, number: int) -> Sequence[SuiteAnswerOut]:
        """Read RAGAlign by collection, and its unweighted mean."""
        return await self.transport.read(tuple[SuiteAnswerOut, ...], f"suites/{number}/answers")

    async def delete(self, number: int, *, if_match: SuiteOut | None = None) -> None:
        """Delete a suite; its collections stay."""
        await self.transport.delete(f"suites/{number}", if_match)
