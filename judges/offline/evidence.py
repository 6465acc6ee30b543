"""The offline writer and measurer of contribution and evidence: extractive, deterministic, weak. Pure.

The writer copies: its contribution is the sentence that matches the query best, its evidence up to three sentences. Its
second try avoids sentences that begin with a pronoun, which refers to another sentence. The measurer counts words.
"""

import re
from collections.abc import Sequence

from corpus.evidence import measures
from corpus.evidence.measures import EvidenceTarget
from corpus.search.text import split_sentences, tokenize_text
from judges.domain.evidence_quality import cap_scores
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
SHORTEST = 12  # Fewest characters of a sentence that can be a contribution.
_PRONOUN = re.compile(r"(this|that|these|those|it|its|they|their|he|she|his|her|such)\b", re.IGNORECASE)
_NAME = re.compile(r"(?<![.!?]\s)(?<!^)\b[A-Z][\w'-]*(?:\s+[A-Z][\w'-]*)*|\b[A-Za-z]+-?\d[\w.-]*|https?://\S+")


def write_target(inputs: Inputs, lexicon: Lexicon, tries: int) -> EvidenceTarget:
    """Return sentences of the document as contribution and evidence. `tries`: 1, or 2 after a failed try."""
    (need,) = information_needs(inputs.query, (), lexicon)
    all_sentences = read_sentences(inputs.document)
    sentences = [sentence for sentence in all_sentences if sentence.end - sentence.start >= SHORTEST] or all_sentences
    if tries > 1:
        sentences = [
            sentence for sentence in sentences if not _PRONOUN.match(inputs.document, sentence.start)
        ] or sentences
    picked = pick_sentences(need, sentences, QUOTED)
    if not picked:
        return EvidenceTarget(inputs.title or "nothing", inputs.title or "nothing")
    first = max(picked, key=lambda sentence: (matched_share(need, set(sentence.stems)), -sentence.start))
    parts = [_sentence_text(inputs, sentence) for sentence in picked]
    return EvidenceTarget(_sentence_text(inputs, first), " ".join(parts))


def find_entities(text: str) -> tuple[str, ...]:
    """Return the capitalised words within sentences, codes with digits, and addresses."""
    return tuple(dict.fromkeys(match.group().rstrip(".,;") for match in _NAME.finditer(text)))


def score_target(inputs: Inputs, target: EvidenceTarget, lexicon: Lexicon) -> dict[str, int]:
    """Score a target in six dimensions from word counts, starting at 3."""
    (need,) = information_needs(inputs.query, (), lexicon)
    document = inputs.titled_document
    rules = measures.measure_target(target, query=inputs.query, document=document)
    document_words = set(tokenize_text(document))
    contribution_stems, evidence_stems = (
        sentence_stems(read_sentences(text)) for text in (target.contribution, target.evidence)
    )
    evidence_share = _known_share(tokenize_text(target.evidence), document_words)
    scores = {
        "contribution_accuracy": 3
        + int(_known_share(tokenize_text(target.contribution), document_words) >= 0.8)
        - int(not contribution_stems),
        "contribution_coverage": 4
        if matched_share(need, contribution_stems) >= matched_share(need, evidence_stems)
        else 3,
        "evidence_faithfulness": 4 if evidence_share == 1 else 3 if evidence_share >= 0.8 else 2,
        "evidence_self_contained": 2 if _PRONOUN.match(target.evidence) else 3,
        "evidence_concision": 3 if rules.ratio is None or rules.ratio > 0.5 else 4,
        "language": 5 if rules.language_fits else 1,
    }
    return cap_scores(scores, rules)


def _sentence_text(inputs: Inputs, sentence: ReadSentence) -> str:
    """Return a sentence on one line, which may split into several by our own splitter: then only the first."""
    text = " ".join(inputs.document[sentence.start : sentence.end].split())
    first = next(iter(split_sentences(text)), None)
    return text[first.start : first.end] if first else text


def _known_share(words: Sequence[str], document_words: set[str]) -> float:
    return sum(word in document_words for word in words) / len(words) if words else 0.0
