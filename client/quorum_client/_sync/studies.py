"""Studies of people: does showing the debate change judgments, and how good are reference answers?"""

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

from quorum_client._sync.resources import Resource
from quorum_client.answers import build_body
from quorum_client.models import (
    DebateEffectOut,
    PairedStudyIn,
    PairedStudyOut,
    RatingTaskOut,
    ReferenceStudyOut,
    WritingOut,
)


class Studies(Resource):
    """Paired studies: does showing the debate change judgments?"""

    def list(self) -> Iterator[PairedStudyOut]:
        """List the studies, the oldest first."""
        return self.transport.iterate(PairedStudyOut, self.at("studies"))

    def start(self, people: Sequence[int], asked: PairedStudyIn | None = None, **fields: Any) -> PairedStudyOut:
        """Start a study with these members (`pairs`, `overlap`, `gold`, `seed`)."""
        if asked is not None and fields:
            raise TypeError("give a PairedStudyIn, or its fields: not both")
        given = asked.model_dump(exclude_unset=True) if asked is not None else fields
        body = build_body(PairedStudyIn, None, {**given, "people": [*people]})
        return self.transport.post(PairedStudyOut, self.at("studies"), body)

    def read(self, number: int) -> PairedStudyOut:
        """Read a study."""
        return self.transport.read(PairedStudyOut, self.at("studies", number))

    def end(self, number: int) -> PairedStudyOut:
        """End a study; judgments stay."""
        return self.transport.post(PairedStudyOut, self.at("studies", number, "end"))

    def read_effect(self, since: date | None = None) -> dict[str, Any]:
        """Read what showing the debate did, over all votes or those from a day on."""
        params = {} if since is None else {"since": since.isoformat()}
        return (self.transport.read(DebateEffectOut, self.at("debate-effect"), params)).document


class ReferenceStudies(Resource):
    """Studies of reference answers: people write beside a model, and rate both without knowing whose is whose."""

    def list(self) -> Iterator[ReferenceStudyOut]:
        """List the studies with what they found, the oldest first."""
        return self.transport.iterate(ReferenceStudyOut, self.at("reference-studies"))

    def start(self, **fields: int) -> ReferenceStudyOut:
        """Start a study (`queries`, `seed`)."""
        return self.transport.post(ReferenceStudyOut, self.at("reference-studies"), fields)

    def close(self) -> ReferenceStudyOut:
        """Close the open study."""
        return self.transport.post(ReferenceStudyOut, self.at("reference-studies", "close"))

    def read_writing(self) -> WritingOut:
        """Read the query that is reserved for you, with its passages."""
        return self.transport.read(WritingOut, self.at("reference-studies", "writing"))

    def reserve(self) -> WritingOut:
        """Reserve a query to write about."""
        return self.transport.post(WritingOut, self.at("reference-studies", "writing", "reserve"))

    def release(self) -> WritingOut:
        """Release the query that is reserved for you."""
        return self.transport.post(WritingOut, self.at("reference-studies", "writing", "release"))

    def write(self, answer: str) -> WritingOut:
        """Store your answer, which cites passages as [id]."""
        return self.transport.post(WritingOut, self.at("reference-studies", "writing"), {"answer": answer})

    def read_rating(self) -> RatingTaskOut:
        """Read two answers that you rate next."""
        return self.transport.read(RatingTaskOut, self.at("reference-studies", "rating"))

    def rate(self, answer: int, first: tuple[int, int], second: tuple[int, int]) -> RatingTaskOut:
        """Rate both answers, each by completeness and quality from 1 to 5."""
        grades = [{"completeness": one[0], "quality": one[1]} for one in (first, second)]
        body = {"answer": answer, "first": grades[0], "second": grades[1]}
        return self.transport.post(RatingTaskOut, self.at("reference-studies", "rating"), body)

    def undo_rating(self) -> RatingTaskOut:
        """Take your last rating back."""
        return self.transport.post(RatingTaskOut, self.at("reference-studies", "rating", "undo"))
