"""Dense runs: vectors from an embed endpoint, kept in VAR by their text's hash; a search."""

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

from django.utils.translation import gettext as _

from benchmark.models import Run
from benchmark.runs import llm_budget, rankings
from benchmark.runs.builders import RUNS, Stopped, Tell
from benchmark.runs.rankings import RankedQuery
from benchmark.runs.shared_vectors import publish_vectors
from benchmark.runs.vector_index import keep_facts
from benchmark.runs.vector_search import AHEAD, SEARCHED, IndexedVectors
from benchmark.runs.vectors import Found, Store, text_digest, vectors_folder
from corpus.errors import Incomplete
from corpus.models import Collection, Document, Query
from judges.campaigns.estimates import Estimate, of_calls
from judges.model_jobs.jobs import describe_stop
from judges.models import Campaign
from judges.presets.own_servers import is_own_server
from judges.prompts.searching import plain_prompt
from judges.providers.base import LATE
from judges.records import Judge, Turn
from judges.retrieval import model_requests
from judges.retrieval.answers import vectors_of
from judges.retrieval.model_requests import RetrievalReply, RetrievalRequest, Wanted

ROLE = "embed"
TOGETHER = 32  # Documents of one call.
STEP_S = 5.0  # Seconds after which people see how far it is.
# How instruction-tuned embedders (E5-Mistral, Qwen3-Embedding) want a query's task in front of it.
INSTRUCTED = "Instruct: {instruction}\nQuery: "


def check(collection: Collection, recipe: Mapping[str, Any]) -> dict[str, Any]:
    """`judge`, `instruction` or `query_prefix`, `document_prefix`. Raises BadInput."""
    texts = {key: str(recipe.get(key) or "") for key in ("instruction", "query_prefix", "document_prefix")}
    return {"judge": llm_budget.judge_of(ROLE, recipe).name, **texts}


def judges(recipe: Mapping[str, Any]) -> list[Judge]:
    """Return the embedder."""
    return [llm_budget.judge_of(ROLE, recipe)]


def make(run: Run, progress: Tell, stopped: Stopped) -> None:
    """Ask for the vectors of all documents first, then rank query by query."""
    campaign = RUNS.campaign_of(run)
    searcher = open_searcher(run, campaign, model_requests.judges_in(campaign)[0], run.recipe, progress, stopped)
    if searcher is None:
        return
    left_out = rankings.excluded_documents(run.collection)

    def work(batch: Sequence[Query]) -> tuple[dict[int, RankedQuery], RetrievalReply]:
        depths = {query.pk: run.depth + len(left_out.get(query.pk, ())) for query in batch}
        return searcher.search({query.pk: query.text for query in batch}, depths)

    llm_budget.each_batch(run, work, progress, stopped, _("searching"), size=SEARCHED)
    publish_vectors(searcher.store)  # those of the queries


def estimate(collection: Collection, recipe: dict[str, Any]) -> Estimate:
    """Estimate the calls for all documents and queries, as if none had its vector yet."""
    rows = Document.objects.filter(collection=collection, is_current=True)
    documents, queries = rows.count(), len(rankings.current_queries(collection, recipe))
    texts = list(rows.order_by("pk").values_list("text", flat=True)[: llm_budget.SAMPLED])
    # As large as real calls, so that the estimate sees their overhead.
    sample = [plain_prompt(ROLE, texts[at : at + TOGETHER]) for at in range(0, len(texts), TOGETHER)]
    return of_calls(llm_budget.judge_of(ROLE, recipe), -(-documents // TOGETHER) + queries, sample, {}, 0)


class Pace:
    """How much is asked of an embedder at once: little at first of a server of one's own, then what it is seen to do.

    `together`: documents of one call; `ahead`: documents until people see how far it is.
    """

    def __init__(self, judge: Judge) -> None:
        self.limit_s = judge.timeout_s
        self.is_own = is_own_server(judge.provider, judge.base_url)
        self.together = TOGETHER
        self.ahead = TOGETHER if self.is_own else AHEAD

    def measure(self, documents: int, seconds: float) -> None:
        """Take in that so many documents took so long, however many calls were out at once."""
        if not self.is_own:
            return
        each = seconds / documents
        self.together = max(1, min(TOGETHER, int(self.limit_s / 4 / each)))
        # At most four times as many as before: the first call of a server loads its model.
        self.ahead = max(self.together, min(AHEAD, 4 * self.ahead, int(STEP_S / each)))

    def is_too_slow(self, answered: RetrievalReply) -> bool:
        """Return whether no call found its answer in time, so that smaller ones are worth a try."""
        if any(answer is not None for answer in answered.answers) or LATE not in answered.error or self.together == 1:
            return False
        self.ahead = self.together = max(1, self.together // 4)
        return True


class Dense(IndexedVectors):
    """A search over the vectors of all documents of a collection, by one embedder, for a run."""

    def __init__(self, run: Run, campaign: Campaign, judge: Judge, recipe: Mapping[str, Any], stopped: Stopped) -> None:
        super().__init__(recipe, Store(vectors_folder(), judge))
        instruction = recipe["instruction"]
        self.prefix = INSTRUCTED.format(instruction=instruction) if instruction else recipe["query_prefix"]
        self.run, self.campaign, self.judge, self.stopped = run, campaign, judge, stopped
        self.pace, self.has_answers = Pace(judge), False
        self.ahead = self.pace.ahead

    def ask(self, texts: Sequence[tuple[int, Sequence[str]]]) -> RetrievalReply:
        """Vectors of each group of texts, kept as they arrive. A group's first part is its query, 0 for documents."""
        wanted = [Wanted(query, "", self._calls(query, group)) for query, group in texts]
        return model_requests.ask_model(self.campaign, self.judge, wanted, stopped=self.stopped)

    def _calls(self, query: int, group: Sequence[str]) -> tuple[RetrievalRequest, ...]:
        # Texts of one call are told apart too: the same document text twice is one vector.
        missing = [one for one in dict.fromkeys(group) if self.store.find([text_digest(one)])[0] < 0]
        if not missing:
            return ()

        def keep(turn: Turn) -> None:
            self.store.add([text_digest(one) for one in missing], vectors_of(turn, len(missing)))

        return (RetrievalRequest(ROLE, 0, plain_prompt(ROLE, missing), documents=tuple(missing), keep=keep),)

    def add(self, texts: Sequence[str]) -> bool:
        """Ask for documents' vectors, as many a call as the embedder can. Raises Incomplete."""
        began, size = perf_counter(), self.pace.together
        reply = self.ask([(0, texts[at : at + size]) for at in range(0, len(texts), size)])
        too_slow = not reply.stopped and self.pace.is_too_slow(reply)
        self.ahead = self.pace.ahead
        if reply.stopped or too_slow:
            return False
        self.pace.measure(len(texts), perf_counter() - began)
        self.ahead = self.pace.ahead
        # A query may go without an answer; a document may not, or the search would not be exact.
        failed = sum(answer is None for answer in reply.answers)
        if reply.spent:
            raise describe_stop(self.run, reply.spent)
        if failed == len(reply.answers) and not self.has_answers:
            raise Incomplete(_("The model does not respond: %(error)s") % {"error": reply.error})
        if failed:
            told = _("%(failed)s document embedding calls failed (%(error)s). Resume the run to retry them")
            raise Incomplete(told % {"failed": failed, "error": reply.error})
        self.has_answers = True
        return True

    def search(
        self, texts: Mapping[int, str], depths: Mapping[int, int]
    ) -> tuple[dict[int, RankedQuery], RetrievalReply]:
        """Search by cosine; the seconds of a batch are shared equally by its queries."""
        sent = {query: self.prefix + text for query, text in texts.items()}
        reply = self.ask([(query, [text]) for query, text in sent.items()])
        order = [query for query, answer in zip(sent, reply.answers, strict=True) if answer is not None]
        begin, measured = perf_counter(), self.nearest.measuring_s
        found = self.rank_known([sent[query] for query in order], [depths[query] for query in order])
        seconds = (perf_counter() - begin - (self.nearest.measuring_s - measured)) / max(1, len(order))
        keep_facts(self.run, self.nearest)
        used = model_requests.usage_by_query(self.campaign, order, [ROLE])
        ranked = {
            query: llm_budget.add_usage(RankedQuery(*of_query, seconds), used.get(query))
            for query, of_query in zip(order, found, strict=True)
        }
        return ranked, reply

    def rank_known(self, sent: Sequence[str], depths: Sequence[int]) -> list[Found]:
        """Rank documents (primary keys) for texts whose vectors are kept, prefix included."""
        # The store grows while queries are asked, so places are looked up now.
        return self.rank_vectors(self.store.rows(self.store.find(map(text_digest, sent))), depths)


def open_searcher(
    run: Run, campaign: Campaign, judge: Judge, recipe: Mapping[str, Any], progress: Tell, stopped: Stopped
) -> Dense | None:
    """Return a search over every document's vectors; None when the run was stopped meanwhile."""
    searcher = Dense(run, campaign, judge, recipe, stopped)
    is_open = searcher.embed_documents(run.collection, progress, stopped, run.search.get("probed"))
    return searcher if is_open else None
