"""Aspects of queries, the second person's review, and the blind sample. Acts need a token with the scope judge."""

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

from quorum_client._async.resources import AsyncResource
from quorum_client.answers import build_body
from quorum_client.models import (
    AspectActIn,
    AspectQueryOut,
    AspectTotalsOut,
    CriteriaIn,
    DecisionsIn,
    DocumentVerdictIn,
    QueryAspectsOut,
    ReviewOut,
    ReviewTaskOut,
    SampleOut,
    VerdictIn,
    WeighingOut,
)


class AsyncAspects(AsyncResource):
    """Aspects: what an answer to a query has to cover, and the documents under them."""

    def list(self, state: str = "") -> AsyncIterator[AspectQueryOut]:
        """List the queries with their aspects; `state`: none, review (documents wait) or done."""
        return self.transport.iterate(AspectQueryOut, self.at("aspects"), {"state": state})

    async def read_totals(self) -> AspectTotalsOut:
        """Count what is decomposed and reviewed."""
        return await self.transport.read(AspectTotalsOut, self.at("aspects", "totals"))

    async def read(self, query: int) -> QueryAspectsOut:
        """Read the aspects of a query, by its number, with their documents."""
        return await self.transport.read(QueryAspectsOut, self.at("aspects", query))

    async def act(self, query: int, act: str, asked: AspectActIn | None = None, **fields: Any) -> QueryAspectsOut:
        """Do an act: add, clarify, weigh, merge, split, remove, undo, keep, discard, reopen, join, paste ..."""
        body = build_body(AspectActIn, asked, fields)
        return await self.transport.post(QueryAspectsOut, self.at("aspects", query, act), body)

    async def export(self) -> str:
        """Return the aspects file: JSON lines."""
        return await self.transport.send_text(self.at("aspects", "export"))

    async def read_sample(self) -> SampleOut:
        """Read how far two persons agree on the blind sample."""
        return await self.transport.read(SampleOut, self.at("aspects", "sample"))

    async def draw_sample(self, size: int = 50, seed: int = 0) -> SampleOut:
        """Draw a sample of queries whose aspects a second person weighs."""
        return await self.transport.post(SampleOut, self.at("aspects", "sample"), {"size": size, "seed": seed})

    async def read_weighing(self) -> WeighingOut:
        """Read the next query of the sample that you weigh."""
        return await self.transport.read(WeighingOut, self.at("aspects", "sample", "task"))

    async def weigh(self, revision: int, importances: Mapping[str, int], comment: str = "") -> WeighingOut:
        """Weigh a query of the sample; the next one comes with the answer."""
        body = {"revision": revision, "importances": dict(importances), "comment": comment}
        return await self.transport.post(WeighingOut, self.at("aspects", "sample", "task"), body)


class AsyncAspectReviews(AsyncResource):
    """Second persons' reviews of aspects: own weights, then the aspects, then each document."""

    def list(self) -> AsyncIterator[ReviewOut]:
        """List the reviews, the oldest first."""
        return self.transport.iterate(ReviewOut, self.at("aspect-reviews"))

    async def claim(self) -> ReviewTaskOut:
        """Take the next query to review, or the one that you hold."""
        return await self.transport.post(ReviewTaskOut, self.at("aspect-reviews", "claim"))

    async def read(self, number: int) -> ReviewTaskOut:
        """Read a review with its next step."""
        return await self.transport.read(ReviewTaskOut, self.at("aspect-reviews", number))

    async def give_weights(self, number: int, importances: Mapping[str, int]) -> ReviewTaskOut:
        """Give your own weights, before you see the first ones."""
        body = {"importances": dict(importances)}
        return await self.transport.post(ReviewTaskOut, self.at("aspect-reviews", number, "weights"), body)

    async def judge_aspects(
        self,
        review: ReviewTaskOut,
        criteria: Mapping[str, VerdictIn],
        importances: Mapping[str, int] | None = None,
    ) -> ReviewTaskOut:
        """Accept or change granularity, balance, coverage and weights."""
        said = {name: one.model_dump() for name, one in criteria.items()}
        fields = {"base": review.base, "criteria": said, "importances": dict(importances or {})}
        body = build_body(CriteriaIn, None, fields)
        return await self.transport.post(ReviewTaskOut, self.at("aspect-reviews", review.number, "aspects"), body)

    async def judge_documents(self, review: ReviewTaskOut, decisions: Iterable[DocumentVerdictIn]) -> ReviewTaskOut:
        """Accept or change each decision on a document, and submit the review."""
        body = build_body(DecisionsIn, None, {"base": review.base, "decisions": [*decisions]})
        return await self.transport.post(ReviewTaskOut, self.at("aspect-reviews", review.number, "documents"), body)

    async def undo(self, number: int) -> ReviewTaskOut:
        """Undo the newest step of your review."""
        return await self.transport.post(ReviewTaskOut, self.at("aspect-reviews", number, "undo"))

    async def release(self, number: int) -> ReviewTaskOut:
        """Release the query to another person."""
        return await self.transport.post(ReviewTaskOut, self.at("aspect-reviews", number, "release"))
