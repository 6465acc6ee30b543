"""Synthetic queries and documents without a model: by counting words, so that a demo needs no key.

Real, deterministic, weak, and said to be so: answers and passages are sentences of the collection's
own documents, plans are made of the most telling words.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from corpus.search.text import tokenize_text
from judges.offline.judges import (
    STOP_WORDS,
    Lexicon,
    information_needs,
    join_sentences,
    pick_sentences,
    read_sentences,
    stem,
)

Told = Mapping[str, Any]
# Words of questions that one passage seldom settles.
ANALYTICAL = frozenset(
    tokenize_text("how why compare comparison difference differences explain effect effects affect cause")
)
ORDER = ("First", "Second", "Third")
SENTENCES = 4  # Of a document in a passage.
KEYWORDS = 6  # In the keyword form of a query.
READ_SENTENCES = 3  # Of a document that a query is written from.
# Steps that read the documents which BM25 finds for the query, and how many.
READERS = {"outline": 3, "compose": 12}


def find_rare_terms(text: str, lexicon: Lexicon, most: int = 4) -> list[str]:
    """Return the rarest words, in the order of the text."""
    known = dict.fromkeys(word for word in tokenize_text(text) if word not in STOP_WORDS)
    best = set(sorted(known, key=lambda word: (-lexicon.weight(word), word))[:most])
    return [word for word in known if word in best] or ["this"]


def _write_persona(told: Told, lexicon: Lexicon) -> dict[str, object]:
    words = ", ".join(find_rare_terms(told["query"], lexicon))
    return {
        "persona": f"Somebody without a model, who looks into {words} by counting words",
        "question": f"{told['query'].strip().rstrip('?.!')}?",
        "background": f"I have read about {words} before and do not see how it hangs together. "
        "This background was put together offline, by counting words.",
    }


def _classify_query(told: Told, lexicon: Lexicon) -> dict[str, object]:
    question = told["query"].partition("\n")[0]
    return {"type": "analytical" if ANALYTICAL.intersection(tokenize_text(question)) else "factual"}


def _outline_answer(told: Told, lexicon: Lexicon) -> dict[str, object]:
    """Return the best sentence of each document that was found."""
    said = [pick_text(told["query"], document, lexicon, 1) for document in told["documents"]]
    return {"answer": " ".join(dict.fromkeys(filter(None, said))) or "The collection says nothing about this."}


def pick_text(query: str, document: str, lexicon: Lexicon, most: int, without: frozenset[str] = frozenset()) -> str:
    """The document's sentences that hold most of the query; none with a stem of `without`."""
    (need,) = information_needs(query, (), lexicon)
    spoken = [one for one in read_sentences(document) if without.isdisjoint(one.stems)]
    return join_sentences(document, pick_sentences(need, spoken, most))


def _name_aspects(told: Told, lexicon: Lexicon) -> dict[str, object]:
    """Return an aspect for each of the answer's first sentences; a single one is two parts."""
    answer = told["answer"]
    parts = [answer[one.start : one.end] for one in read_sentences(answer)][: len(ORDER)]
    if len(parts) < 2:
        words = answer.split()
        parts = [" ".join(words[: len(words) // 2]), " ".join(words[len(words) // 2 :])]
    named = [", ".join(find_rare_terms(part, lexicon)) for part in parts]
    return {
        "aspects": [
            {"aspect": f"{order} part: {words}", "rationale": f"It carries what the answer says of {words}."}
            for order, words in zip(ORDER, named, strict=False)
        ]
    }


def _plan_positives(told: Told, lexicon: Lexicon) -> dict[str, object]:
    wanted = [one["aspect"] for one in told["aspects"]] or [told["query"].partition("\n")[0]]
    return {
        "blueprints": [
            _plan_passage(number, ", ".join(find_rare_terms(one, lexicon)), "It speaks of")
            for number, one in enumerate(wanted, 1)
        ]
    }


def _plan_passage(number: int, words: str, why: str) -> dict[str, str]:
    return {
        "rationale": f"{why} {words}.",
        "passage_type": "excerpt",
        "source": "the collection",
        "title": f"{words.capitalize()} ({why.partition(' ')[0].lower()}, {number})",
        # The words stand in the middle: at an end one of them could be taken for an abbreviation.
        "summary": f"What {words} mean is told here. It is told in sentences of the collection. "
        "Words were counted for it.",
    }


def _plan_negatives(told: Told, lexicon: Lexicon) -> dict[str, object]:
    planned = []
    for number, positive in enumerate(told["positives"], 1):
        words = ", ".join(find_rare_terms(positive["title"], lexicon, 2))
        plan = _plan_passage(number, ", ".join(find_rare_terms(told["query"], lexicon)), "Around")
        planned.append(plan | {"failure": f"It leaves out {words}.", "missing_aspect": words})
    return {"blueprints": planned}


def _write_passages(told: Told, lexicon: Lexicon) -> dict[str, object]:
    """Sentences of one document each: of the best for positives, of the last for negatives."""
    documents: Sequence[str] = told["documents"]
    passages = []
    for number, plan in enumerate(told["plans"]):
        avoided = frozenset(map(stem, tokenize_text(plan.get("missing_aspect", ""))))
        place = -1 - number if avoided else number
        document = documents[place % len(documents)] if documents else ""
        said = pick_text(told["query"], document, lexicon, SENTENCES, avoided)
        passages.append(f"{plan['title']}. {said or plan['summary']}")
    return {"passages": passages}


def _ask_for_document(told: Told, lexicon: Lexicon) -> dict[str, object]:
    document = told["document"]
    begin = " ".join(document[one.start : one.end] for one in read_sentences(document)[:READ_SENTENCES])
    return {"query": f"What is known about {', '.join(find_rare_terms(begin, lexicon))}?"}


ROLES: dict[str, Callable[[Told, Lexicon], dict[str, object]]] = {
    "persona": _write_persona,
    "classify": _classify_query,
    "outline": _outline_answer,
    "decompose": _name_aspects,
    "blueprint": _plan_positives,
    "negatives": _plan_negatives,
    "compose": _write_passages,
    "keywords": lambda told, lexicon: {"keywords": find_rare_terms(told["query"], lexicon, KEYWORDS)},
    "ask": _ask_for_document,
}
