"""The offline judges as a provider: their answers are schema JSON and pass through the same parser as any model's."""

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

FRESH_S = 60.0  # Seconds for which a collection's word counts are used without checking for changed documents.
LONG = 20_000  # From so many characters of a document, counting words would delay the other calls of the process.
DEBATERS = ("for", "against")
PAGES = 5  # Results of the offline web search.
WRITERS = (evidence.WRITER, evidence.MEASURER, rewriting.REWRITER, web_search.SEARCH)
KNOWN = (*judges.ASSESSORS, *DEBATERS, *WRITERS)


class CollectionLexicon:
    """Word statistics of a collection, from its BM25 index."""

    def __init__(self, index: Index) -> None:
        self.index = index
        # Inverse document frequency in the collection; low for a stop word.
        self.weight = cache(lambda word: judges.idf(word, index.frequency(word), len(index)))
        self._best_score = lru_cache(maxsize=4096)(self._search)

    def share(self, text: str, inputs: Inputs) -> float:
        """Return the document's BM25 score over the best in the collection; by its text if it is not in the index."""
        best = self._best_score(text)
        score = self.index.score(text, inputs.document_id)
        return score / best if score > 0 else judges.UniformLexicon().share(text, inputs)

    def _search(self, text: str) -> float:
        hits = self.index.search(text, 1)
        return hits[0][1] if hits else 1.0


class OfflineProvider:
    """Provider that answers in this process, free of charge and without a network."""

    def __init__(self, judge: Judge) -> None:
        del judge
        self._lexicons: dict[int, tuple[float, judges.Lexicon]] = {}
        self._opening = asyncio.Lock()

    async def complete(self, request: ModelRequest) -> Reply:
        """Return the answer of the judge's model in schema JSON. Raises Rejected if it is no offline model."""
        lexicon = await self._lexicon(request.inputs.collection)
        if request.role == "web":
            answer = await asyncio.to_thread(web_search.find_pages, request.inputs.query, lexicon, PAGES)
        elif request.role in ("rewrite", "reason") or request.role in CONVERSATIONS:
            answer = await asyncio.to_thread(_answer_without_pair, request, lexicon)
        elif len(request.inputs.document) > LONG:
            answer = await asyncio.to_thread(answer_request, request, lexicon)
        else:
            answer = answer_request(request, lexicon)
        text = json.dumps(answer, ensure_ascii=False)
        return Reply(raw=text, text=text, finish_reason="stop", model=request.judge.model)

    def meaning(self, body: Body, judge: Judge) -> Reply:
        return Reply(raw=body.text, text=body.text, finish_reason="stop")

    async def close(self) -> None:
        self._lexicons.clear()

    async def _lexicon(self, collection: int) -> judges.Lexicon:
        if not collection:
            return ALONE
        # The default lies in the past, so that a collection that was never opened counts as stale.
        opened, lexicon = self._lexicons.get(collection, (-FRESH_S, ALONE))
        if monotonic() - opened < FRESH_S:
            return lexicon
        # One task opens the index; other tasks of the same collection wait, then find it open.
        async with self._opening:
            opened, lexicon = self._lexicons.get(collection, (-FRESH_S, ALONE))
            if monotonic() - opened >= FRESH_S:
                # In a thread, because building the index of a large collection would stop all other calls.
                index = await asyncio.to_thread(_load_index, collection)
                # With the same index, the counts are the same, and the lexicon's cache remains valid.
                if not (isinstance(lexicon, CollectionLexicon) and lexicon.index is index):
                    lexicon = CollectionLexicon(index) if len(index) else ALONE
                self._lexicons[collection] = (monotonic(), lexicon)
        return lexicon


ALONE = judges.UniformLexicon()


def answer_request(request: ModelRequest, lexicon: judges.Lexicon) -> dict[str, object]:
    """Return the judge's answer about a pair, by the fields of its schema. Raises Rejected."""
    # Any offline model may debate: the role decides. A debater that votes gives its opening verdict.
    model, inputs = request.judge.model, request.inputs
    if model not in KNOWN:
        raise Rejected(f"{model!r} is no offline judge: take one of {', '.join(KNOWN)}.")
    # Writing and measuring are told apart by the role; every other role asks for a verdict.
    if request.role == "write":
        target = evidence.write_target(inputs, lexicon, request.round)
        return {"contribution": target.contribution, "evidence": target.evidence}
    if request.role in TEXT_ROLES:
        if request.written is None:
            raise Rejected("There is nothing to measure.")
        if request.role == "entity":
            return {"entities": list(evidence.find_entities(request.written.evidence))}
        scores = evidence.score_target(inputs, request.written, lexicon)
        return {"note": "By counting words only.", **scores}
    if request.role in DEBATERS:
        turn = debate.argue_turn(DebateAgent(Side(request.role), request.sample), inputs, lexicon, request.history)
        return {
            "reference": [quote.text for quote in turn.quotes],
            "reason": turn.reason,
            "response": _yes_or_no(turn.verdict),
        }
    if model in DEBATERS:
        turn = debate.argue_turn(DebateAgent(Side(model)), inputs, lexicon, None)
        return {"reason": turn.reason, "response": _yes_or_no(turn.verdict)}
    if model in WRITERS:
        raise Rejected(f"{model!r} writes texts or measures them: it cannot judge relevance.")
    verdict, reason, share = judges.assess_relevance(model, inputs, lexicon)
    if request.judge.grades > 1 and request.role != "adjudicate":
        return {
            "reason": reason,
            "score": judges.score_to_grade(share, request.judge.grades, request.judge.relevant_from),
        }
    return {"reason": reason, "response": _yes_or_no(verdict)}


def _answer_without_pair(request: ModelRequest, lexicon: judges.Lexicon) -> dict[str, object]:
    """Return an expanded query or a step of a conversation, from the documents that BM25 finds for the query."""
    if request.role == "prefer":
        if request.judge.model not in judges.ASSESSORS:
            raise Rejected(f"{request.judge.model!r} scores no documents, so it cannot compare them.")
        first, second = request.material["first"], request.material["second"]
        return judges.compare_documents(request.judge.model, first, second, lexicon)
    if request.role in CONVERSATIONS:
        document_count = conversations.READERS.get(request.role, 0)
        documents = _find_documents(request.material["query"], lexicon, document_count) if document_count else []
        if request.role not in conversations.ROLES:
            raise Rejected(f"Offline judges have no answer for the role {request.role}.")
        # A role of READERS reads documents, the best first.
        is_reader = request.role in conversations.READERS
        material = {**request.material, "documents": documents} if is_reader else request.material
        return conversations.ROLES[request.role](material, lexicon)
    query = request.inputs.query
    documents = _find_documents(query, lexicon, rewriting.FEEDBACK)
    if request.role == "reason":
        return {"reasoning": rewriting.expand_query(query, documents, lexicon)}
    return {"passage": rewriting.best_passage(query, documents, lexicon, request.sample)}


def _find_documents(query: str, lexicon: judges.Lexicon, limit: int) -> list[str]:
    """Return the texts of the documents that BM25 finds, best first."""
    hits = lexicon.index.search(query, limit) if isinstance(lexicon, CollectionLexicon) else []
    # This runs in a thread of a pool, which must not keep its database connection.
    with _reading("documents"):
        texts = dict(Document.objects.filter(pk__in=[key for key, _ in hits]).values_list("pk", "text"))
    return [texts[key] for key, _ in hits if key in texts]


def _yes_or_no(verdict: int) -> str:
    return "yes" if verdict else "no"


def _load_index(collection: int) -> Index:
    with _reading("word counts"):
        return index_for(collection, max_age=FRESH_S)


@contextmanager
def _reading(data_name: str) -> Iterator[None]:
    """Close this thread's database connection afterwards, and raise Unreachable for the database's errors."""
    try:
        yield
    except DatabaseError as error:
        raise Unreachable(f"The collection's {data_name} cannot be read: {error}") from error
    finally:
        connection.close()
