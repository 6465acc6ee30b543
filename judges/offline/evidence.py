"""The offline writer and measurer of contribution and evidence: extractive, deterministic, weak. Pure.

The writer copies: its contribution is the sentence that holds most of the query, its evidence up to
three sentences. Its second try leaves out sentences that begin with a word whose owner stands
elsewhere. The measurer counts words.
"""

import re
from collections.abc import Sequence

from corpus.evidence import measures
from corpus.evidence.measures import EvidenceTarget
from corpus.search.text import split_sentences, tokenize_text
from judges.evidence.quality import cap_scores
from judges.offline.judges import (
    Lexicon,
    ReadSentence,
    information_needs,
    matched_share,
    pick_sentences,
    read_sentences,
    sentence_stems,
)
from judges.records import Inputs

WRITER, MEASURER = "writer", "measurer"
QUOTED = 3
SHORTEST = 12  # Characters of a sentence that can stand as a contribution.
_LEANING = re.compile(r"(this|that|these|those|it|its|they|their|he|she|his|her|such)\b", re.IGNORECASE)
_NAME = re.compile(r"(?<![.!?]\s)(?<!^)\b[A-Z][\w'-]*(?:\s+[A-Z][\w'-]*)*|\b[A-Za-z]+-?\d[\w.-]*|https?://\S+")


def write_target(inputs: Inputs, lexicon: Lexicon, tries: int) -> EvidenceTarget:
    """Sentences of the document as they stand. `tries`: 1, or 2 after a try that failed."""
    (need,) = information_needs(inputs.query, (), lexicon)
    every = read_sentences(inputs.document)
    spoken = [one for one in every if one.end - one.start >= SHORTEST] or every
    if tries > 1:
        spoken = [one for one in spoken if not _LEANING.match(inputs.document, one.start)] or spoken
    chosen = pick_sentences(need, spoken, QUOTED)
    if not chosen:
        return EvidenceTarget(inputs.title or "nothing", inputs.title or "nothing")
    first = max(chosen, key=lambda one: (matched_share(need, set(one.stems)), -one.start))
    parts = [_sentence_text(inputs, one) for one in chosen]
    return EvidenceTarget(_sentence_text(inputs, first), " ".join(parts))


def find_entities(text: str) -> tuple[str, ...]:
    """Find capitalised words inside sentences, codes with digits, and addresses."""
    return tuple(dict.fromkeys(found.group().rstrip(".,;") for found in _NAME.finditer(text)))


def score_target(inputs: Inputs, target: EvidenceTarget, lexicon: Lexicon) -> dict[str, int]:
    """Score a target in six dimensions from word counts, beginning at 3."""
    (need,) = information_needs(inputs.query, (), lexicon)
    document = inputs.titled_document
    rules = measures.measure_target(target, query=inputs.query, document=document)
    there = set(tokenize_text(document))
    own, told = (sentence_stems(read_sentences(text)) for text in (target.contribution, target.evidence))
    known = _known_share(tokenize_text(target.evidence), there)
    scores = {
        "contribution_accuracy": 3 + int(_known_share(tokenize_text(target.contribution), there) >= 0.8) - int(not own),
        "contribution_coverage": 4 if matched_share(need, own) >= matched_share(need, told) else 3,
        "evidence_faithfulness": 4 if known == 1 else 3 if known >= 0.8 else 2,
        "evidence_self_contained": 2 if _LEANING.match(target.evidence) else 3,
        "evidence_concision": 3 if rules.ratio is None or rules.ratio > 0.5 else 4,
        "language": 5 if rules.language_fits else 1,
    }
    return cap_scores(scores, rules)


def _sentence_text(inputs: Inputs, one: ReadSentence) -> str:
    """Return a sentence on one line; a piece that is more than one by our own splitter is cut after its first."""
    text = " ".join(inputs.document[one.start : one.end].split())
    first = next(iter(split_sentences(text)), None)
    return text[first.start : first.end] if first else text


def _known_share(own: Sequence[str], there: set[str]) -> float:
    return sum(word in there for word in own) / len(own) if own else 0.0
