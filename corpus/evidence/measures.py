"""Contribution and evidence of a relevant pair: parsing of what judges and models wrote, and measures. Pure."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from corpus.search.text import detect_language, split_sentences, tokenize_text

TAGS = ("<contribution>", "</contribution>", "<evidence>", "</evidence>")
SHORTEST = 10  # A well-formed field has more characters than this (Prism 5.3).
# A document has several languages if the second one has at least this share of the text.
MIXED = 0.25
PIECE = 160  # Characters whose language is detected together; fewer would be unreliable.
# An answer with at least this share of its words in the document has the document's language.
SHARED = 0.6

_OUTPUT = re.compile(r"\s*(yes|no)(?!\w)")
_TARGET = re.compile(r"<contribution>(.*?)</contribution>\n<evidence>(.*?)</evidence>", re.DOTALL)
_FIELDS = {name: re.compile(f"<{name}>(.*?)</{name}>", re.DOTALL) for name in ("contribution", "evidence")}
_MONTH = (
    r"(?:Jan(?:uary|\.)?|Feb(?:ruary|\.)?|Mar(?:ch|\.)?|Apr(?:il|\.)?|May|June?|July?|Aug(?:ust|\.)?"
    r"|Sept?(?:ember|\.)?|Oct(?:ober|\.)?|Nov(?:ember|\.)?|Dec(?:ember|\.)?)"
)
_NUMBER = r"\d+(?:[.,]\d+)*"
# Dimensions that a judge rates from 1 to 5 (judges.domain.evidence_quality).
DIMENSIONS = (
    "contribution_accuracy",
    "contribution_coverage",
    "evidence_faithfulness",
    "evidence_self_contained",
    "evidence_concision",
    "language",
)
# Dates before percentages before numbers: a match of an earlier pattern is not matched again.
_ENTITIES = (
    re.compile(rf"\b\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}\s+\d{{4}}\b"),
    re.compile(rf"\b{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?(?:,)?\s+\d{{4}}\b"),
    re.compile(rf"\b{_MONTH}\s+\d{{4}}\b"),
    re.compile(r"\d{2,4}年(?:\d{1,2}月(?:\d{1,2}[日号])?)?|\d{1,2}月\d{1,2}[日号]"),
    re.compile(r"(?<![\d/.-])(?:\d{4}-\d{2}-\d{2}|\d{1,2}[/.]\d{1,2}[/.]\d{4}|\d{4}/\d{1,2}/\d{1,2})(?![\d/-])"),
    re.compile(rf"(?<![\d.,]){_NUMBER}\s?(?:[%‰％]|percent\b|per cent\b)"),
    re.compile(rf"(?<![\w.,]){_NUMBER}|(?<=[^\W\d_])(?<![A-Za-z]){_NUMBER}"),
)


class Malformed(ValueError):
    """A text is not a contribution with evidence; the message describes the problem."""


@dataclass(frozen=True, slots=True)
class EvidenceTarget:
    """The text that a model learns about a relevant pair (Prism 3.1)."""

    contribution: str
    evidence: str

    @property
    def text(self) -> str:
        """Return the target as in training sets."""
        return f"<contribution>{self.contribution}</contribution>\n<evidence>{self.evidence}</evidence>"


@dataclass(frozen=True, slots=True)
class EvidenceOutput:
    """A model's answer. `verdict`: 1, 0, or None for another first word; missing fields are None."""

    verdict: int | None
    contribution: str | None
    evidence: str | None
    rest: str  # The text after the first word.

    @property
    def target(self) -> EvidenceTarget | None:
        """Return contribution and evidence together; None where one of them is empty."""
        return EvidenceTarget(self.contribution, self.evidence) if self.contribution and self.evidence else None


@dataclass(frozen=True, slots=True)
class EvidenceMeasures:
    """Measures of a target by rule. `fidelity`, `ratio`: None without a divisor."""

    format: float
    contribution_sentences: int
    entities: tuple[str, ...]
    missing: tuple[str, ...]  # Entities that are not in the document.
    altered: tuple[str, ...]  # The missing numbers, percentages and dates.
    fidelity: float | None
    # As in the Prism paper: any substring of the document counts, so that 12 occurs in 120.
    fidelity_prism: float | None
    language: str
    expected_language: str
    language_fits: bool
    evidence_tokens: int
    document_tokens: int
    ratio: float | None  # Tokens of the evidence over tokens of the document (P figure 5).
    copied: bool  # Whether every sentence of the evidence is in the document, except for white space.


def parse_target(text: str) -> EvidenceTarget:
    """Parse a text of exactly the two fields with a line break between. Raises Malformed."""
    match = _TARGET.fullmatch(text.strip())
    if match is None:
        raise Malformed(
            _("the text does not match <contribution>..</contribution>, a line break and <evidence>..</evidence>")
        )
    target = EvidenceTarget(match[1].strip(), match[2].strip())
    check_target(target.contribution, target.evidence)
    return target


def check_target(contribution: str, evidence: str) -> None:
    """Raise Malformed unless both are not empty and free of tags."""
    for value, empty, tagged in (
        (contribution, _("the contribution is empty"), _("the contribution contains one of the tags")),
        (evidence, _("the evidence is empty"), _("the evidence contains one of the tags")),
    ):
        if not value.strip():
            raise Malformed(empty)
        if any(tag in value for tag in TAGS):
            raise Malformed(tagged)


def parse_output(text: str) -> EvidenceOutput:
    """Parse a model's answer: its first word, and each field that occurs exactly once."""
    first = _OUTPUT.match(text)
    if first is None:
        return EvidenceOutput(None, None, None, text.strip())
    rest = text[first.end() :].strip()
    return EvidenceOutput(
        int(first[1] == "yes"), _extract_field(rest, "contribution"), _extract_field(rest, "evidence"), rest
    )


def close_fields(text: str) -> str:
    """Close the open field of an answer that was cut off."""
    # An incomplete tag at the end is not text.
    text = re.sub(r"</?[a-z]*\Z", "", text)
    for name in _FIELDS:
        if text.count(f"<{name}>") == 1 and f"</{name}>" not in text:
            return f"{text}</{name}>"
    return text


def _extract_field(text: str, name: str) -> str | None:
    """Return the content of a field that is opened and closed exactly once and contains no tags."""
    if text.count(f"<{name}>") != 1 or text.count(f"</{name}>") != 1:
        return None
    match = _FIELDS[name].search(text)
    if match is None or any(tag in match[1] for tag in TAGS):
        return None
    return match[1].strip()


def format_score(text: str) -> float:
    """Return 0, 0.4, 0.7 or 1: "no", or "yes" with both fields, is 1 (Prism 5.3)."""
    output = parse_output(text)
    if output.verdict is None:
        return 0.0
    if output.verdict == 0:
        return 0.0 if output.rest else 1.0
    fields = sum(field is not None and len(field) > SHORTEST for field in (output.contribution, output.evidence))
    return (0.4, 0.7, 1.0)[fields]


def pattern_entities(text: str) -> tuple[str, ...]:
    """Return the distinct dates, percentages and numbers in their order."""
    spans: list[tuple[int, int]] = []
    for pattern in _ENTITIES:
        for match in pattern.finditer(text):
            if not any(match.start() < end and start < match.end() for start, end in spans):
                spans.append(match.span())
    return tuple(dict.fromkeys(text[start:end] for start, end in sorted(spans)))


def occurs_in(entity: str, document: str, *, whole: bool = True) -> bool:
    """Return whether the entity is in the document; `whole`: not inside a longer number, unlike in the paper."""
    if not whole or not entity:
        return entity in document
    # Adjacent digits and separators belong to a number: 200 occurs neither in 1,200 nor in 200.5.
    before = r"(?<!\d)(?<!\d[.,])" if entity[0].isdigit() else ""
    after = r"(?!\d)(?![.,]\d)" if entity[-1].isdigit() else ""
    return re.search(before + re.escape(entity) + after, document) is not None


def entity_fidelity(entities: Sequence[str], document: str, *, whole: bool = True) -> float | None:
    """Return the share of the entities that occur verbatim in the document; None without entities (Prism 5.3)."""
    if not entities:
        return None
    return sum(occurs_in(entity, document, whole=whole) for entity in entities) / len(entities)


def detect_languages(text: str) -> tuple[str, ...]:
    """Return the languages of at least a share MIXED of the text, most frequent first; at least one."""
    sizes: dict[str, int] = {}
    piece, sentences = "", split_sentences(text)
    # Consecutive sentences of about PIECE characters; the last piece may be shorter.
    for number, sentence in enumerate(sentences, 1):
        piece = f"{piece} {text[sentence.start : sentence.end]}".strip()
        if len(piece) >= PIECE or number == len(sentences):
            code = detect_language(piece)
            sizes[code], piece = sizes.get(code, 0) + len(piece), ""
    total = sum(sizes.values())
    languages = [code for code in sorted(sizes, key=lambda code: -sizes[code]) if sizes[code] >= MIXED * total]
    return tuple(languages) or (detect_language(text),)


def expected_language(document: str, query: str) -> str:
    """Return the document's language, or the query's if the document has several."""
    languages = detect_languages(document)
    return languages[0] if len(languages) == 1 else detect_language(query)


def language_fits(text: str, document: str, expected: str) -> bool:
    """Return whether the text has the expected language, or most of its words from a document of one language."""
    language = detect_language(text)
    if language == expected:
        return True
    words = tokenize_text(text)
    document_words = set(tokenize_text(document))
    is_mixed = len(detect_languages(document)) > 1
    return not is_mixed and bool(words) and sum(word in document_words for word in words) >= SHARED * len(words)


def count_tokens(text: str) -> int:
    """Count words, because only ratios are shown and a model's tokenizer is not always available."""
    return len(tokenize_text(text))


def compression_ratio(evidence: str, document: str, count: Callable[[str], int] = count_tokens) -> float | None:
    """Return tokens of the evidence over tokens of the document; None for an empty document."""
    size = count(document)
    return count(evidence) / size if size else None


def summary_quantiles(values: Sequence[float]) -> dict[str, float | None]:
    """Return p10, median and p90, linear between neighbours; None without values (P figure 5)."""
    import numpy as np  # Imported here, because it takes a tenth of a second, which judging pages do not need.

    quantiles = np.quantile(values, (0.1, 0.5, 0.9)).tolist() if values else [None] * 3
    return dict(zip(("p10", "median", "p90"), quantiles, strict=True))


def measure_target(
    target: EvidenceTarget,
    *,
    query: str,
    document: str,
    model_entities: Sequence[str] = (),
    count: Callable[[str], int] = count_tokens,
) -> EvidenceMeasures:
    """Compute all measures by rule. `model_entities`: listed by a model; those not in the evidence are ignored."""
    patterns = pattern_entities(target.evidence)
    listed_entities = [name.strip() for name in model_entities if name.strip() and name.strip() in target.evidence]
    entities = tuple(dict.fromkeys((*patterns, *listed_entities)))
    missing = tuple(entity for entity in entities if not occurs_in(entity, document))
    full_text = f"{target.contribution} {target.evidence}"
    expected = expected_language(document, query)
    source = " ".join(document.split())
    parts = [
        " ".join(target.evidence[sentence.start : sentence.end].split())
        for sentence in split_sentences(target.evidence)
    ]
    return EvidenceMeasures(
        format=format_score(f"yes\n{target.text}"),
        contribution_sentences=len(split_sentences(target.contribution)),
        entities=entities,
        missing=missing,
        altered=tuple(entity for entity in missing if entity in patterns),
        fidelity=entity_fidelity(entities, document),
        fidelity_prism=entity_fidelity(entities, document, whole=False),
        language=detect_language(full_text),
        expected_language=expected,
        language_fits=language_fits(full_text, document, expected),
        evidence_tokens=count(target.evidence),
        document_tokens=count(document),
        ratio=compression_ratio(target.evidence, document, count),
        copied=bool(parts) and all(part in source for part in parts),
    )


def as_json(measures: EvidenceMeasures) -> dict[str, Any]:
    """Return the measures for a row's JSON, with lists instead of tuples."""
    values = {name: getattr(measures, name) for name in EvidenceMeasures.__slots__}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
