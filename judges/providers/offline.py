"""The offline judges as a provider: their answers are schema JSON and go through the same parser as any model's."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from time import monotonic

from django.db import DatabaseError, connection

from corpus.models import Document
from corpus.search.bm25 import Index, index_for
from judges.errors import Rejected, Unreachable
from judges.offline import conversations, debate, evidence, judges, rewriting, web_search
from judges.records import CONVERSATIONS, TEXT_ROLES, Body, DebateAgent, Inputs, Judge, ModelRequest, Reply, Side

FRESH_S = 60.0  # Seconds for which a collection's word counts are used without asking whether its documents changed.
LONG = 20_000  # Characters of a document from which on counting would hold up the other calls of the process.
DEBATERS = ("for", "against")
PAGES = 5  # Results of its web search.
WRITERS = (evidence.WRITER, evidence.MEASURER, rewriting.REWRITER, web_search.SEARCH)
KNOWN = (*judges.ASSESSORS, *DEBATERS, *WRITERS)


class CollectionLexicon:
    """Knowledge of a collection's BM25 index about words."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.weight = cache(self._weight)
        self._best = lru_cache(maxsize=4096)(self._search)

    def _weight(self, word: str) -> float:
        """Inverse document frequency in the collection; little for a stop word."""
        return judges.idf(word, self.index.frequency(word), len(self.index))

    def share(self, text: str, inputs: Inputs) -> float:
        """The document's BM25 score over the best one in the collection; by its text where it is not in the index."""
        best = self._best(text)
        score = self.index.score(text, inputs.document_id)
        return score / best if score > 0 else judges.UniformLexicon().share(text, inputs)

    def _search(self, text: str) -> float:
        found = self.index.search(text, 1)
        return found[0][1] if found else 1.0


class OfflineProvider:
    """Provider that answers in this process, at no cost, without a network."""

    def __init__(self, judge: Judge) -> None:
        del judge
        self._lexicons: dict[int, tuple[float, judges.Lexicon]] = {}
        self._opening = asyncio.Lock()

    async def complete(self, request: ModelRequest) -> Reply:
        """Return the verdict of the judge's model in schema JSON. Raises Rejected for one that is no offline model."""
        lexicon = await self._lexicon(request.inputs.collection)
        if request.role in ("rewrite", "reason"):
            told = await asyncio.to_thread(_expand_query, request, lexicon)
        elif request.role == "web":
            told = await asyncio.to_thread(web_search.find_pages, request.inputs.query, lexicon, PAGES)
        elif request.role in CONVERSATIONS:
            told = await asyncio.to_thread(_answer_step, request, lexicon)
        elif len(request.inputs.document) > LONG:
            told = await asyncio.to_thread(answer_request, request, lexicon)
        else:
            told = answer_request(request, lexicon)
        text = json.dumps(told, ensure_ascii=False)
        return Reply(raw=text, text=text, finish_reason="stop", model=request.judge.model)

    def meaning(self, body: Body, judge: Judge) -> Reply:
        return Reply(raw=body.text, text=body.text, finish_reason="stop")

    async def close(self) -> None:
        self._lexicons.clear()

    async def _lexicon(self, collection: int) -> judges.Lexicon:
        if not collection:
            return ALONE
        # The past, so that a collection that was never opened counts as stale.
        opened, lexicon = self._lexicons.get(collection, (-FRESH_S, ALONE))
        if monotonic() - opened < FRESH_S:
            return lexicon
        # One task opens the index; the others of the same collection wait for it and then find it.
        async with self._opening:
            opened, lexicon = self._lexicons.get(collection, (-FRESH_S, ALONE))
            if monotonic() - opened >= FRESH_S:
                # In a thread: building the index of a large collection would stop all other calls of the process.
                index = await asyncio.to_thread(_load_index, collection)
                # The same index means the same counts: its cached words are kept.
                if not (isinstance(lexicon, CollectionLexicon) and lexicon.index is index):
                    lexicon = CollectionLexicon(index) if len(index) else ALONE
                self._lexicons[collection] = (monotonic(), lexicon)
        return lexicon


ALONE = judges.UniformLexicon()


def answer_request(request: ModelRequest, lexicon: judges.Lexicon) -> dict[str, object]:
    """Return what the judge says, as the schema wants it."""
    # Any offline model may debate: the role decides what is asked. A debater that votes gives its opening verdict.
    model, inputs = request.judge.model, request.inputs
    if model not in KNOWN:
        raise Rejected(f"{model!r} is no offline judge: take one of {', '.join(KNOWN)}.")
    # What writes or measures is told by its role; a verdict is asked of everything else.
    if request.role in TEXT_ROLES:
        return _evidence_answer(request, lexicon)
    if request.role in DEBATERS:
        told = debate.argue_turn(DebateAgent(Side(request.role), request.sample), inputs, lexicon, request.history)
        return {
            "reference": [quote.text for quote in told.quotes],
            "reason": told.reason,
            "response": _yes_or_no(told.verdict),
        }
    if model in DEBATERS:
        told = debate.argue_turn(DebateAgent(Side(model)), inputs, lexicon, None)
        return {"reason": told.reason, "response": _yes_or_no(told.verdict)}
    if model in WRITERS:
        raise Rejected(f"{model!r} writes texts or measures them: it cannot judge relevance.")
    verdict, reason, share = judges.assess_relevance(model, inputs, lexicon)
    if request.judge.grades > 1 and request.role != "adjudicate":
        return {
            "reason": reason,
            "score": judges.score_to_grade(share, request.judge.grades, request.judge.relevant_from),
        }
    return {"reason": reason, "response": _yes_or_no(verdict)}


def _evidence_answer(request: ModelRequest, lexicon: judges.Lexicon) -> dict[str, object]:
    """Contribution and evidence, the entities in them, or their scores."""
    if request.role == "write":
        target = evidence.write_target(request.inputs, lexicon, request.round)
        return {"contribution": target.contribution, "evidence": target.evidence}
    if request.written is None:
        raise Rejected("There is nothing to measure.")
    if request.role == "entity":
        return {"entities": list(evidence.find_entities(request.written.evidence))}
    scores = evidence.score_target(request.inputs, request.written, lexicon)
    return {"note": "By counting words only.", **scores}


def _expand_query(request: ModelRequest, lexicon: judges.Lexicon) -> dict[str, object]:
    """Return what to search for instead of the query, from the documents its own words find."""
    query = request.inputs.query
    documents = _find_documents(query, lexicon, rewriting.FEEDBACK)
    if request.role == "reason":
        return {"reasoning": rewriting.expand_query(query, documents, lexicon)}
    return {"passage": rewriting.best_passage(query, documents, lexicon, request.sample)}


def _answer_step(request: ModelRequest, lexicon: judges.Lexicon) -> dict[str, object]:
    """Return a step of a conversation; some read the documents that its query finds."""
    most = conversations.READERS.get(request.role, 0)
    documents = _find_documents(request.material["query"], lexicon, most) if most else []
    return conversations.answer_step(request, lexicon, documents)


def _find_documents(query: str, lexicon: judges.Lexicon, most: int) -> list[str]:
    """Return the texts of the documents that BM25 finds, best first."""
    found = lexicon.index.search(query, most) if isinstance(lexicon, CollectionLexicon) else []
    # The database is reached from a thread of the pool, which must not keep its connection.
    with _reading("documents"):
        texts = dict(Document.objects.filter(pk__in=[key for key, _ in found]).values_list("pk", "text"))
    return [texts[key] for key, _ in found if key in texts]


def _yes_or_no(verdict: int) -> str:
    return "yes" if verdict else "no"


def _load_index(collection: int) -> Index:
    with _reading("word counts"):
        return index_for(collection, max_age=FRESH_S)


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """Give this thread's database connection back at once. Raises Unreachable."""
    try:
        yield
    except DatabaseError as error:
        raise Unreachable(f"The collection's {what} cannot be read: {error}") from error
    finally:
        connection.close()
