"""Studies of people: does showing the debate change judgments, and how good are reference answers?"""

from collections.abc import AsyncIterator, Sequence
from datetime import date
from typing import Any

from quorum_client._async.resources import AsyncResource
from quorum_client.answers import build_body
from quorum_client.models import (
    DebateEffectOut,
    PairedStudyIn,
    PairedStudyOut,
    RatingTaskOut,
    ReferenceStudyOut,
    WritingOut,
)


class AsyncStudies(AsyncResource):
    """Paired studies: does showing the debate change judgments?"""

    def list(self) -> AsyncIterator[PairedStudyOut]:
        """List the studies, the oldest first."""
        return self.transport.iterate(PairedStudyOut, self.at("studies"))

    async def start(self, people: Sequence[int], asked: PairedStudyIn | None = None, **fields: Any) -> PairedStudyOut:
        """Start a study with these members (`pairs`, `overlap`, `gold`, `seed`)."""
        if asked is not None and fields:
            raise TypeError("give a PairedStudyIn, or its fields: not both")
        given = asked.model_dump(exclude_unset=True) if asked is not None else fields
        body = build_body(PairedStudyIn, None, {**given, "people": [*people]})
        return await self.transport.post(PairedStudyOut, self.at("studies"), body)

    async def read(self, number: int) -> PairedStudyOut:
        """Read a study."""
        return await self.transport.read(PairedStudyOut, self.at("studies", number))

    async def end(self, number: int) -> PairedStudyOut:
        """End a study; judgments stay."""
        return await self.transport.post(PairedStudyOut, self.at("studies", number, "end"))

    async def read_effect(self, since: date | None = None) -> dict[str, Any]:
        """Read what showing the debate did, over all votes or those from a day on."""
        params = {} if since is None else {"since": since.isoformat()}
        return (await self.transport.read(DebateEffectOut, self.at("debate-effect"), params)).document


class AsyncReferenceStudies(AsyncResource):
    """Studies of reference answers: people write beside a model, and rate both without knowing whose is whose."""

    def list(self) -> AsyncIterator[ReferenceStudyOut]:
        """List the studies with what they found, the oldest first."""
        return self.transport.iterate(ReferenceStudyOut, self.at("reference-studies"))

    async def start(self, **fields: int) -> ReferenceStudyOut:
        """Start a study (`queries`, `seed`)."""
        return await self.transport.post(ReferenceStudyOut, self.at("reference-studies"), fields)

    async def close(self) -> ReferenceStudyOut:
        """Close the open study."""
        return await self.transport.post(ReferenceStudyOut, self.at("reference-studies", "close"))

    async def read_writing(self) -> WritingOut:
        """Read the query that is reserved for you, with its passages."""
        return await self.transport.read(WritingOut, self.at("reference-studies", "writing"))

    async def reserve(self) -> WritingOut:
        """Reserve a query to write about."""
        return await self.transport.post(WritingOut, self.at("reference-studies", "writing", "reserve"))

    async def release(self) -> WritingOut:
        """Release the query that is reserved for you."""
        return await self.transport.post(WritingOut, self.at("reference-studies", "writing", "release"))

    async def write(self, answer: str) -> WritingOut:
        """Store your answer, which cites passages as [id]."""
        return await self.transport.post(WritingOut, self.at("reference-studies", "writing"), {"answer": answer})

    async def read_rating(self) -> RatingTaskOut:
        """Read two answers that you rate next."""
        return await self.transport.read(RatingTaskOut, self.at("reference-studies", "rating"))

    async def rate(self, answer: int, first: tuple[int, int], second: tuple[int, int]) -> RatingTaskOut:
        """Rate both answers, each by completeness and quality from 1 to 5."""
        grades = [{"completeness": one[0], "quality": one[1]} for one in (first, second)]
        body = {"answer": answer, "first": grades[0], "second": grades[1]}
        return await self.transport.post(RatingTaskOut, self.at("reference-studies", "rating"), body)

    async def undo_rating(self) -> RatingTaskOut:
        """Take your last rating back."""
        return await self.transport.post(RatingTaskOut, self.at("reference-studies", "rating", "undo"))
