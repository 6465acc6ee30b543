"""Dense runs: a search over vectors from an embeddings endpoint, stored in VAR by the hash of their text."""

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

from django.utils.translation import gettext as _

from benchmark.models import Run
from benchmark.runs import llm_budget, rankings
from benchmark.runs.builders import RUNS, Progress, ShouldStop
from benchmark.runs.rankings import RankedQuery
from benchmark.runs.shared_vectors import publish_vectors
from benchmark.runs.vector_index import keep_facts
from benchmark.runs.vector_search import AHEAD, SEARCHED, IndexedVectors, next_ahead
from benchmark.runs.vectors import NearestDocuments, Store, text_digest, vectors_folder
from corpus.errors import Incomplete
from corpus.models import Collection, Document, Query
from judges.campaigns.estimates import Estimate, of_calls
from judges.model_jobs.jobs import describe_stop
from judges.models import Campaign
from judges.presets.own_servers import is_own_server
from judges.prompts.answers.retrieval import vectors_of
from judges.prompts.searching import plain_prompt
from judges.providers.base import LATE
from judges.records import Judge, Turn
from judges.retrieval import model_requests
from judges.retrieval.model_requests import QueryRequests, RetrievalReply, RetrievalRequest

ROLE = "embed"
TOGETHER = 32  # Documents in one call.
# The prefix of queries for instruction-tuned embedders (E5-Mistral, Qwen3-Embedding).
INSTRUCTED = "Instruct: {instruction}\nQuery: "


def check(collection: Collection, recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Complete a recipe of `judge`, `instruction` or `query_prefix`, and `document_prefix`. Raises BadInput."""
    texts = {key: str(recipe.get(key) or "") for key in ("instruction", "query_prefix", "document_prefix")}
    return {"judge": llm_budget.judge_of(ROLE, recipe).name, **texts}


def judges(recipe: Mapping[str, Any]) -> list[Judge]:
    """Return the embedding model."""
    return [llm_budget.judge_of(ROLE, recipe)]


def make(run: Run, progress: Progress, should_stop: ShouldStop) -> None:
    """Ask for the vectors of all documents first, then rank query by query."""
    campaign = RUNS.campaign_of(run)
    searcher = open_searcher(run, campaign, model_requests.judges_in(campaign)[0], run.recipe, progress, should_stop)
    if searcher is None:
        return
    excluded = rankings.excluded_documents(run.collection)

    def work(batch: Sequence[Query]) -> tuple[dict[int, RankedQuery], RetrievalReply]:
        depths = {query.pk: run.depth + len(excluded.get(query.pk, ())) for query in batch}
        return searcher.search({query.pk: query.text for query in batch}, depths)

    # Each query is a call of its own: no more of them than the model does documents in a few seconds.
    size = min(SEARCHED, searcher.ahead)
    llm_budget.rank_batches(run, work, progress, should_stop, _("searching"), size=size)
    publish_vectors(searcher.store)  # The queries' vectors; those of documents are published already.


def estimate(collection: Collection, recipe: dict[str, Any]) -> Estimate:
    """Estimate the calls for all documents and queries, as if none had a vector yet."""
    rows = Document.objects.filter(collection=collection, is_current=True)
    documents, queries = rows.count(), len(rankings.current_queries(collection, recipe))
    texts = list(rows.order_by("pk").values_list("text", flat=True)[: llm_budget.SAMPLED])
    # As large as real calls, so that the estimate sees their overhead.
    sample = [plain_prompt(ROLE, texts[start : start + TOGETHER]) for start in range(0, len(texts), TOGETHER)]
    return of_calls(llm_budget.judge_of(ROLE, recipe), -(-documents // TOGETHER) + queries, sample, {}, 0)


class Pace:
    """The size of requests to an embedding model: small at first for an own server, then by its measured speed.

    `together`: documents in one call; `ahead`: documents between updates of the progress.
    """

    def __init__(self, judge: Judge) -> None:
        self.limit_s = judge.timeout_s
        self.is_own = is_own_server(judge.provider, judge.base_url)
        self.together = TOGETHER
        self.ahead = TOGETHER if self.is_own else AHEAD

    def measure(self, documents: int, seconds: float) -> None:
        """Adapt the sizes to the seconds that so many documents took, in however many parallel calls."""
        if not self.is_own:
            # The seconds of a hosted model are those of its rate limits, too: after a timeout the sizes grow again.
            self.together, self.ahead = min(TOGETHER, 2 * self.together), min(AHEAD, 4 * self.ahead)
            return
        self.together = max(1, min(TOGETHER, int(self.limit_s / 4 * documents / seconds)))
        self.ahead = max(self.together, next_ahead(self.ahead, documents, seconds))

    def shrink_after_timeout(self, reply: RetrievalReply) -> bool:
        """Make calls smaller if one timed out and smaller ones can be tried; return whether they were."""
        if LATE not in reply.error or self.together == 1:
            return False
        self.ahead = self.together = max(1, self.together // 4)
        return True


class Dense(IndexedVectors):
    """A search over the vectors of a collection's documents by one embedding model, for a run."""

    def __init__(
        self, run: Run, campaign: Campaign, judge: Judge, recipe: Mapping[str, Any], should_stop: ShouldStop
    ) -> None:
        super().__init__(recipe, Store(vectors_folder(), judge))
        instruction = recipe["instruction"]
        self.prefix = INSTRUCTED.format(instruction=instruction) if instruction else recipe["query_prefix"]
        self.run, self.campaign, self.judge, self.should_stop = run, campaign, judge, should_stop
        self.pace, self.has_answers = Pace(judge), False
        self.ahead = self.pace.ahead

    def ask(self, texts: Sequence[tuple[int, Sequence[str]]]) -> RetrievalReply:
        """Request and store the vectors of groups of texts, each with the key of its query (0 for documents)."""
        requests = [QueryRequests(query, "", self._requests(query, group)) for query, group in texts]
        return model_requests.ask_model(self.campaign, self.judge, requests, should_stop=self.should_stop)

    def _requests(self, query: int, group: Sequence[str]) -> tuple[RetrievalRequest, ...]:
        # Also within a call, a text that occurs twice is requested once.
        missing = [text for text in dict.fromkeys(group) if self.store.find([text_digest(text)])[0] < 0]
        if not missing:
            return ()

        def keep(turn: Turn) -> None:
            self.store.add([text_digest(text) for text in missing], vectors_of(turn, len(missing)))

        return (RetrievalRequest(ROLE, 0, plain_prompt(ROLE, missing), documents=tuple(missing), keep=keep),)

    def add(self, texts: Sequence[str]) -> bool:
        """Request documents' vectors, with as many documents per call as the model can take. Raises Incomplete."""
        size = self.pace.together
        reply = self.ask([(0, texts[start : start + size]) for start in range(0, len(texts), size)])
        if reply.stopped:
            return False
        if self.pace.shrink_after_timeout(reply):
            self.ahead = self.pace.ahead
            return False
        # A query may remain without a vector; a document may not, or the search would not be exact.
        failed = sum(answer is None for answer in reply.answers)
        if reply.spent:
            raise describe_stop(self.run, reply.spent)
        if failed == len(reply.answers) and not self.has_answers:
            raise Incomplete(_("The model does not respond: %(error)s") % {"error": reply.error})
        if failed:
            message = _("%(failed)s document embedding calls failed (%(error)s). Resume the run to retry them")
            raise Incomplete(message % {"failed": failed, "error": reply.error})
        self.has_answers = True
        return True

    def follow_pace(self, documents: int, seconds: float) -> None:
        """Adapt the size of calls, and their number."""
        self.pace.measure(documents, seconds)
        self.ahead = self.pace.ahead

    def search(
        self, texts: Mapping[int, str], depths: Mapping[int, int]
    ) -> tuple[dict[int, RankedQuery], RetrievalReply]:
        """Search by cosine; the seconds of a batch are divided equally among its queries."""
        query_texts = {query: self.prefix + text for query, text in texts.items()}
        reply = self.ask([(query, [text]) for query, text in query_texts.items()])
        order = [query for query, answer in zip(query_texts, reply.answers, strict=True) if answer is not None]
        started_at, measuring_before = perf_counter(), self.nearest.measuring_s
        results = self.rank_known([query_texts[query] for query in order], [depths[query] for query in order])
        seconds = (perf_counter() - started_at - (self.nearest.measuring_s - measuring_before)) / max(1, len(order))
        keep_facts(self.run, self.nearest)
        usage = model_requests.usage_by_query(self.campaign, order, [ROLE])
        ranked = {
            query: llm_budget.add_usage(RankedQuery(*ranking, seconds), usage.get(query))
            for query, ranking in zip(order, results, strict=True)
        }
        return ranked, reply

    def rank_known(self, texts: Sequence[str], depths: Sequence[int]) -> list[NearestDocuments]:
        """Rank documents (primary keys) for texts whose vectors are stored; the texts include the prefix."""
        # The store grows while queries are embedded, so positions are looked up now.
        return self.rank_vectors(self.store.rows(self.store.find(map(text_digest, texts))), depths)


def open_searcher(
    run: Run, campaign: Campaign, judge: Judge, recipe: Mapping[str, Any], progress: Progress, should_stop: ShouldStop
) -> Dense | None:
    """Return a search over every document's vectors; None when the run was stopped."""
    searcher = Dense(run, campaign, judge, recipe, should_stop)
    is_open = searcher.embed_documents(run.collection, progress, should_stop, run.search.get("probed"))
    return searcher if is_open else None
