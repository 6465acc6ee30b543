"""A search agent, a writer of reference answers and a grader of answers without a model, by counting words. Pure."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from corpus.search.text import tokenize_text
from judges.offline.judges import (
    STOP_WORDS,
    Lexicon,
    Need,
    information_needs,
    join_sentences,
    matched_share,
    pick_sentences,
    read_sentences,
    sentence_stems,
    stem,
)

SEARCHES = 3  # Searches before an agent has to answer.
ENOUGH = 0.8  # Share of the question's weight in the documents from which an agent answers earlier.
TERMS = 6  # Words from the documents that a search adds.
SENTENCES = 2  # Sentences per document of an answer, and per aspect of a reference answer.
FULL, PARTLY = 0.5, 0.2  # Shares of an aspect's weight from which an answer addresses it fully or partly.

Material = Mapping[str, Any]


def choose_turn(material: Material, lexicon: Lexicon) -> dict[str, object]:
    """Search for the question's words, then also for words that the best documents share; answer in the end."""
    documents = [document for search_round in material["rounds"] for document in search_round["documents"]]
    stems = {stem(word) for document in documents for word in tokenize_text(document["text"])}
    (need,) = information_needs(material["question"], (), lexicon)
    share = matched_share(need, stems)
    if material["must_answer"] or (documents and share >= ENOUGH) or len(material["rounds"]) >= SEARCHES:
        answer = _answer(material["question"], documents, lexicon)
        return {"search": None, "answer": answer, "confidence": round(100 * share)}
    if not documents:
        return {"search": material["question"], "answer": None, "confidence": None}
    missing_words = [word for term, word in need.words.items() if term not in stems]
    # The words that most documents share and that the question does not have, weighted by their rarity.
    counts: Counter[str] = Counter()
    for document in documents:
        words = tokenize_text(document["text"])
        counts.update({word for word in words if word not in STOP_WORDS and not word.isdigit()})
    new_words = [word for word in counts if stem(word) not in need.terms]
    shared_words = sorted(new_words, key=lambda word: (-counts[word] * lexicon.weight(word), word))[:TERMS]
    search = " ".join([*missing_words, *shared_words])
    return {"search": search or material["question"], "answer": None, "confidence": None}


def _answer(question: str, documents: list[Material], lexicon: Lexicon) -> str:
    """Return the sentences with most of the question's weight, those of each document followed by its id."""
    (need,) = information_needs(question, (), lexicon)
    shares = {
        document["id"]: matched_share(need, sentence_stems(read_sentences(document["text"]))) for document in documents
    }
    texts = {document["id"]: document["text"] for document in documents}
    best = sorted(shares, key=lambda key: (-shares[key], key))[:SEARCHES]
    cited_sentences = [_cite(need, key, texts[key]) for key in best if shares[key] > 0]
    return " ".join(filter(None, cited_sentences)) or "The documents do not say."


def _cite(need: Need, key: str, text: str) -> str:
    sentences = join_sentences(text, pick_sentences(need, read_sentences(text), SENTENCES))
    return f"{sentences} [{key}]" if sentences else ""


def grade_answer(material: Material, lexicon: Lexicon) -> dict[str, object]:
    """Grade aspects by the share of their words in the answer, the quality by that of the reference answer's words."""
    stems = {stem(word) for word in tokenize_text(material["answer"])}

    def share(text: str) -> float:
        return max(matched_share(need, stems) for need in information_needs("", (text,), lexicon))

    scores = []
    for aspect in material["aspects"]:
        aspect_share = share(aspect["text"])
        scores.append(
            {"id": aspect["id"], "score": 1 if aspect_share >= FULL else 0.5 if aspect_share >= PARTLY else 0}
        )
    quality = 1 + round(4 * share(material["reference"]))
    return {"aspect_scores": scores, "overall_quality": quality, "justification": "By counting words only."}


def write_reference(material: Material, lexicon: Lexicon) -> dict[str, object]:
    """Return, for each aspect, the best sentences of its best passage, followed by the passage's id."""
    parts = []
    for aspect in material["aspects"]:
        (need,) = information_needs(aspect["text"], (), lexicon)
        passages = {key: text for key, (text, aspects) in material["passages"].items() if aspect["id"] in aspects}
        ranked = sorted(
            passages, key=lambda key: (-matched_share(need, sentence_stems(read_sentences(passages[key]))), key)
        )
        parts += [_cite(need, key, passages[key]) or f"{passages[key][:400].strip()} [{key}]" for key in ranked[:1]]
    return {"answer": "\n\n".join(parts) or "There is no passage."}
