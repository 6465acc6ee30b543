"""Acts on many pairs, the audit log, and suites of collections."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from quorum_client._sync.resources import Resource
from quorum_client._sync.transport import Transport
from quorum_client.models import (
    AuditEntryOut,
    HandedOverOut,
    PairActOut,
    SuiteAnswerOut,
    SuiteOut,
    SuiteSystemsOut,
)


class PairActs(Resource):
    """Acts on many pairs: planned, run, undone."""

    def list(self) -> Iterator[PairActOut]:
        """List the acts that were carried out, the oldest first."""
        return self.transport.iterate(PairActOut, self.at("pair-acts"))

    def plan(self, kind: str, pairs: Iterable[int]) -> PairActOut:
        """Plan an act: send, reassign, priority, exclude, reinstate or export."""
        return self.transport.post(PairActOut, self.at("pair-acts"), {"kind": kind, "pairs": [*pairs]})

    def read(self, number: int) -> PairActOut:
        """Read what an act will do, or did."""
        return self.transport.read(PairActOut, self.at("pair-acts", number))

    def run(self, number: int, option: str = "") -> PairActOut:
        """Carry out a planned act with one of its `options`."""
        return self.transport.post(PairActOut, self.at("pair-acts", number, "run"), {"option": option})

    def undo(self, number: int) -> PairActOut:
        """Undo an act where nobody changed its pairs since."""
        return self.transport.post(PairActOut, self.at("pair-acts", number, "undo"))

    def download(self, number: int, to: str | Path) -> Path:
        """Download the pairs of an export that was carried out."""
        return self.transport.download(self.at("pair-acts", number, "file"), Path(to))

    def hand_over_skipped(self) -> int:
        """Give the pairs that everybody skipped to the adjudicators; return how many."""
        return (self.transport.post(HandedOverOut, self.at("pairs", "skipped", "adjudicate"))).count


class AuditLog(Resource):
    """Audit log of the collection: acts, who did them and when."""

    def list(self, **filters: Any) -> Iterator[AuditEntryOut]:
        """List the acts, the oldest first: `act`, `actor`, `person`, `since`, `until`."""
        return self.transport.iterate(AuditEntryOut, self.at("audit-log"), filters)


class Suites:
    """Suites: collections that are measured together. Needs a token for all collections."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def list(self) -> Sequence[SuiteOut]:
        """List the suites, by name."""
        return self.transport.read(tuple[SuiteOut, ...], "suites")

    def make(self, name: str, members: Iterable[str], title: str = "") -> SuiteOut:
        """Make a suite of collections."""
        body = {"name": name, "title": title, "members": [*members]}
        return self.transport.post(SuiteOut, "suites", body)

    def read(self, number: int) -> SuiteOut:
        """Read a suite."""
        return self.transport.read(SuiteOut, f"suites/{number}")

    def read_systems(self, number: int, measure: str = "ndcg") -> SuiteSystemsOut:
        """Read the systems by collection, and their unweighted mean."""
        return self.transport.read(SuiteSystemsOut, f"suites/{number}/systems", {"measure": measure})

    def read_answers(self, number: int) -> Sequence[SuiteAnswerOut]:
        """Read RAGAlign by collection, and its unweighted mean."""
        return self.transport.read(tuple[SuiteAnswerOut, ...], f"suites/{number}/answers")

    def delete(self, number: int, *, if_match: SuiteOut | None = None) -> None:
        """Delete a suite; its collections stay."""
        self.transport.delete(f"suites/{number}", if_match)
