"""Quality control: its settings, attention checks, gold questions, exclusions."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

from quorum_client._async.resources import AsyncResource
from quorum_client.answers import build_body
from quorum_client.models import (
    BatchOut,
    CheckCountOut,
    CheckPoolOut,
    ComparedOut,
    ExclusionOut,
    GoldOut,
    GoldPairOut,
    GoldQueueOut,
    GoldTaskOut,
    NearPairsOut,
    QualificationTestOut,
    QualityControlIn,
    QualityControlOut,
)


class AsyncQualityControl(AsyncResource):
    """Quality control: shares of checks, the qualification test, consent, near-duplicates."""

    async def read(self) -> QualityControlOut:
        """Read the settings."""
        return await self.transport.read(QualityControlOut, self.at("quality-control"))

    async def change(
        self, asked: QualityControlIn | None = None, *, if_match: QualityControlOut | None = None, **fields: Any
    ) -> QualityControlOut:
        """Change `checks`, `repeats`, `batch`, `qualification`, `pass_mark`."""
        body = build_body(QualityControlIn, asked, fields)
        return await self.transport.change(QualityControlOut, self.at("quality-control"), body, if_match)

    async def make_test(self, size: int = 20, seed: int = 0) -> QualificationTestOut:
        """Make a qualification test."""
        body = {"size": size, "seed": seed}
        return await self.transport.post(QualificationTestOut, self.at("qualification-tests"), body)

    async def write_consent(self, text: str | None) -> QualityControlOut:
        """Write what annotators agree to; None: nobody is asked any more."""
        return await self.transport.post(QualityControlOut, self.at("consent"), {"text": text})

    def list_batches(self) -> AsyncIterator[BatchOut]:
        """List closed batches with what their attention checks said."""
        return self.transport.iterate(BatchOut, self.at("batches"))

    async def read_near_duplicates(self) -> NearPairsOut:
        """Read groups of nearly equal pairs whose labels differ."""
        return await self.transport.read(NearPairsOut, self.at("near-duplicates"))

    async def compare_near_duplicates(self) -> ComparedOut:
        """Compare the labels of a large collection anew."""
        return await self.transport.post(ComparedOut, self.at("near-duplicates"))


class AsyncAttentionChecks(AsyncResource):
    """Attention checks: gold pairs among the ordinary ones."""

    async def read(self) -> CheckPoolOut:
        """Count the checks, the answers to them, and the gold that could become some."""
        return await self.transport.read(CheckPoolOut, self.at("attention-checks"))

    async def make(self, count: int = 20, *, seed: int = 0, form: str = "own") -> CheckCountOut:
        """Make checks of gold pairs."""
        body = {"count": count, "seed": seed, "form": form}
        return await self.transport.post(CheckCountOut, self.at("attention-checks"), body)

    async def withdraw(self) -> CheckCountOut:
        """Withdraw all checks; what was answered stays."""
        return await self.transport.post(CheckCountOut, self.at("attention-checks", "withdraw"))

    async def write_arguments(self) -> CheckCountOut:
        """Have models argue about gold that has only the offline judges' words."""
        return await self.transport.post(CheckCountOut, self.at("attention-checks", "arguments"))


class AsyncGold(AsyncResource):
    """Gold questions: samples that experts grade. Grading needs a token with the scope judge."""

    def list(self) -> AsyncIterator[GoldOut]:
        """List the samples, the oldest first."""
        return self.transport.iterate(GoldOut, self.at("gold"))

    async def draw(self, size: int = 50, *, seed: int = 0, spot: float = 0.2) -> GoldOut:
        """Draw a sample; `spot`: the share that somebody else reviews."""
        return await self.transport.post(GoldOut, self.at("gold"), {"size": size, "seed": seed, "spot": spot})

    async def read(self, number: int) -> GoldOut:
        """Read how far a sample is."""
        return await self.transport.read(GoldOut, self.at("gold", number))

    def pairs(self, number: int) -> AsyncIterator[GoldPairOut]:
        """Iterate over the pairs of a sample with what was said about each."""
        return self.transport.iterate(GoldPairOut, self.at("gold", number, "pairs"))

    async def end(self, number: int) -> GoldOut:
        """End a sample; its grades stay."""
        return await self.transport.post(GoldOut, self.at("gold", number, "end"))

    async def read_task(self, *, review: bool = False) -> GoldQueueOut:
        """Read the next pair that you grade as an expert, or review."""
        return await self.transport.read(GoldQueueOut, self.at("gold", "review" if review else "task"))

    async def grade(
        self,
        task: GoldTaskOut,
        grade: int,
        *,
        comment: str = "",
        milliseconds: int | None = None,
        review: bool = False,
    ) -> GoldQueueOut:
        """Grade a pair as an expert, or as its reviewer; the next one comes with the answer."""
        said = {"grade": grade, "comment": comment, "milliseconds": milliseconds}
        body = {"pair": task.pair, "shown": task.shown, **said}
        return await self.transport.post(GoldQueueOut, self.at("gold", "review" if review else "task"), body)


class AsyncExclusions(AsyncResource):
    """Judgments that were excluded, and reinstated."""

    def list(self) -> AsyncIterator[ExclusionOut]:
        """List what was excluded and reinstated, the oldest first."""
        return self.transport.iterate(ExclusionOut, self.at("exclusions"))

    async def read(self, number: int) -> ExclusionOut:
        """Read an exclusion."""
        return await self.transport.read(ExclusionOut, self.at("exclusions", number))

    async def exclude(self, member: int, *, note: str = "", since: datetime | None = None) -> ExclusionOut:
        """Exclude a member's judgments, all or those from a moment on."""
        body = {"member": member, "note": note, "since": since and since.isoformat()}
        return await self.transport.post(ExclusionOut, self.at("exclusions"), body)

    async def reinstate(self, number: int) -> ExclusionOut:
        """Reinstate what an exclusion took out."""
        return await self.transport.post(ExclusionOut, self.at("exclusions", number, "reinstate"))
