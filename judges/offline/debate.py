"""The offline debate: agents that argue by the words of a document's sentences. Pure.

They follow the debate's protocol (DREAM 3.1). Each gives in at once if its side is hopeless, and later if the other
side's turn shows it. Between the bounds they disagree to the end, and the pair goes to people.

In a debate of four, the second couple comes to the same verdicts, but argues from single sentences and from all
quotations so far, so that no two agents say the same.
"""

import re
from collections.abc import Mapping

from corpus.search.text import tokenize_text
from judges.domain.debate import AGAINST, FOR
from judges.domain.quotes import locate_quote
from judges.offline.judges import (
    Lexicon,
    Need,
    ReadSentence,
    information_needs,
    matched_share,
    pick_sentences,
    read_sentences,
    runs_of,
    sentence_stems,
    stem,
)
from judges.records import DebateAgent, Inputs, Quote, Side, Turn

QUOTED = 3  # Most sentences that the side "for" quotes.
# Shares of the need, 0 to 1, at which a side gives in. The side "for" says no in round 1 below the first bound, and
# later below the third; the side "against" says yes in round 1 from the second bound, and later from the fourth.
Bounds = tuple[float, float, float, float]
WITH_ANSWERS: Bounds = (0.25, 0.65, 0.4, 0.5)
WITHOUT_ANSWERS: Bounds = (0.3, 0.7, 0.42, 0.55)
NEVER_GIVES_IN: Bounds = (0.0, 2.0, 0.0, 2.0)


def argue_turn(
    agent: DebateAgent,
    inputs: Inputs,
    lexicon: Lexicon,
    history: Mapping[DebateAgent, Turn] | None,
    *,
    gives_in: bool = True,
) -> Turn:
    """Return a turn of an agent. `history`: the turns of the previous round; None in round 1.

    With `gives_in` false, the agent argues for its side whatever the document says.
    """
    bounds = (WITH_ANSWERS if inputs.answers else WITHOUT_ANSWERS) if gives_in else NEVER_GIVES_IN
    needs = information_needs(inputs.query, inputs.answers, lexicon)
    hopeless, plain_to_see, given_up, convinced = bounds
    if history is None:
        is_for = agent.side is Side.FOR
        turn = _defend(inputs, needs, hopeless) if is_for else _attack(inputs, needs, plain_to_see)
    elif agent.side is Side.FOR:
        turn = _look_up(inputs, needs, given_up, history[AGAINST])
    else:
        turn = _check_quotes(inputs, needs, convinced, history[FOR])
    # Only the first couple decides on the verdict; the second couple finds further reasons for it.
    return _second_couple_turn(agent.side, turn.verdict, inputs, needs, history) if agent.couple else turn


def _defend(inputs: Inputs, needs: tuple[Need, ...], bound: float) -> Turn:
    """Return round 1 of the side "for": the sentences that together contain most of an answer."""
    number, need, sentences = _best_sentences(inputs, needs)
    share = matched_share(need, sentence_stems(sentences))
    matched_terms = _list_terms(_need_terms(need, sentence_stems(sentences), present=True))
    need_name = _name_need(number, inputs)
    if share < bound:
        reason = f"By words alone: even the best sentences hold only {share:.0%} of {need_name}."
        reason = f"{reason} I find too little to defend."
        return Turn(0, reason, _quote_sentences(inputs, sentences[:1]))
    reason = f"By words alone: these sentences hold {share:.0%} of {need_name}, among them {matched_terms}."
    reason = f"{reason} I count that as support."
    return Turn(1, reason, _quote_sentences(inputs, sentences))


def _attack(inputs: Inputs, needs: tuple[Need, ...], bound: float) -> Turn:
    """Return round 1 of the side "against": the words that even the best three sentences in a row lack."""
    rows = [list(run) for run in runs_of(read_sentences(inputs.document), 3)]
    options = [(number, need, row) for number, need in enumerate(needs, 1) for row in rows]
    number, need, row = max(options, key=lambda option: matched_share(option[1], sentence_stems(option[2])))
    share = matched_share(need, sentence_stems(row))
    missing = _list_terms(_need_terms(need, sentence_stems(row), present=False))
    need_name = _name_need(number, inputs)
    nearest = _quote_sentences(inputs, sorted(row, key=lambda sentence: -matched_share(need, set(sentence.stems)))[:1])
    if share >= bound:
        reason = (
            f"By words alone: three sentences in a row hold {share:.0%} of {need_name}. I find too little to object to."
        )
        return Turn(1, reason, nearest)
    reason = (
        f"By words alone: where the document comes nearest to {need_name}, it holds {share:.0%}. Missing: {missing}."
    )
    return Turn(0, reason, nearest)


def _look_up(inputs: Inputs, needs: tuple[Need, ...], bound: float, other: Turn) -> Turn:
    """Return a later turn of the side "for": does the document contain the words that the other side misses?"""
    number, need, sentences = _best_sentences(inputs, needs)
    everywhere = sentence_stems(read_sentences(inputs.document)) | set(map(stem, tokenize_text(inputs.title)))
    share = matched_share(need, everywhere)
    missed_terms = {
        stem(word) for term in re.findall(r'"([^"]+)"', other.reason) for word in tokenize_text(term)
    } & need.terms.keys()
    present_terms = _list_terms([need.words[term] for term in need.terms if term in missed_terms & everywhere])
    absent_terms = _list_terms([need.words[term] for term in need.terms if term in missed_terms - everywhere])
    need_name = _name_need(number, inputs)
    if share < bound:
        reason = f"I looked for what the other side misses. Nowhere in the document: {absent_terms}."
        reason = f"{reason} As a whole it holds {share:.0%} of {need_name}. I give in."
        return Turn(0, reason, _quote_sentences(inputs, sentences[:1]))
    reason = (
        f"I looked for what the other side misses. Elsewhere in the document: {present_terms}. Nowhere: {absent_terms}."
    )
    return Turn(
        1, f"{reason} As a whole it holds {share:.0%} of {need_name}, so I stay.", _quote_sentences(inputs, sentences)
    )


def _check_quotes(inputs: Inputs, needs: tuple[Need, ...], bound: float, other: Turn) -> Turn:
    """Return a later turn of the side "against": do the sentences that the other side quotes contain an answer?"""
    verified_quotes = tuple(quote for quote in other.quotes if quote.start is not None)
    invented = len(other.quotes) - len(verified_quotes)
    quoted_stems = {stem(word) for quote in verified_quotes for word in tokenize_text(quote.text)}
    number, need = max(enumerate(needs, 1), key=lambda entry: matched_share(entry[1], quoted_stems))
    share = matched_share(need, quoted_stems)
    need_name = _name_need(number, inputs)
    note = f" {invented} of its quotations stand nowhere in the document." if invented else ""
    if share >= bound:
        return Turn(
            1,
            f"The sentences that the other side quotes hold {share:.0%} of {need_name}. I give in.{note}",
            verified_quotes,
        )
    missing = _list_terms(_need_terms(need, quoted_stems, present=False))
    reason = f"I read the other side's sentences: they hold {share:.0%} of {need_name} and still lack {missing}.{note}"
    return Turn(0, f"{reason} I stay.", verified_quotes[:1])


def _second_couple_turn(
    side: Side, verdict: int, inputs: Inputs, needs: tuple[Need, ...], history: Mapping[DebateAgent, Turn] | None
) -> Turn:
    """Return a turn of the second couple: in round 1 about single sentences, later about all quotations."""
    sentences = read_sentences(inputs.document)
    options = [
        (matched_share(need, set(sentence.stems)), number, need, sentence)
        for number, need in enumerate(needs, 1)
        for sentence in sentences
    ]
    share, number, need, best = max(options, key=lambda option: option[0], default=(0.0, 1, needs[0], None))
    need_name, stays = _name_need(number, inputs), verdict == int(side is Side.FOR)
    quotes = _quote_sentences(inputs, [best] if best else [])
    if history is None:
        statement = f"By words alone, sentence by sentence: the best one holds {share:.0%} of {need_name}"
        if side is Side.FOR:
            conclusion = "I count it as support" if stays else "I find nothing to defend in that"
            share = matched_share(need, sentence_stems(sentences))
            return Turn(verdict, f"{statement}, the whole document {share:.0%}. {conclusion}.", quotes)
        missing = _list_terms(_need_terms(need, set(best.stems if best else ()), present=False))
        conclusion = f"It lacks {missing}" if stays else "I see nothing to object to in that"
        return Turn(verdict, f"{statement}. {conclusion}.", quotes)
    texts = dict.fromkeys(quote.text for turn in history.values() for quote in turn.quotes if quote.start is not None)
    quoted_stems = {stem(word) for text in texts for word in tokenize_text(text)}
    statement = (
        f"I put together all that was quoted so far: it holds {matched_share(need, quoted_stems):.0%} of {need_name}"
    )
    terms = _list_terms(_need_terms(need, quoted_stems, present=side is Side.FOR))
    conclusion = f"{'There' if side is Side.FOR else 'Not there'}: {terms}. " + ("I stay" if stays else "I give in")
    return Turn(verdict, f"{statement}. {conclusion}.", quotes)


def _best_sentences(inputs: Inputs, needs: tuple[Need, ...]) -> tuple[int, Need, list[ReadSentence]]:
    """Return the need (with its number from 1) that up to three sentences match best, and these sentences in order."""
    options = [
        (number, need, pick_sentences(need, read_sentences(inputs.document), QUOTED, 0.05))
        for number, need in enumerate(needs, 1)
    ]
    return max(options, key=lambda option: matched_share(option[1], sentence_stems(option[2])))


def _quote_sentences(inputs: Inputs, sentences: list[ReadSentence]) -> tuple[Quote, ...]:
    return tuple(
        locate_quote(inputs.document[sentence.start : sentence.end], inputs.document) for sentence in sentences
    )


def _need_terms(need: Need, stems: set[str], *, present: bool) -> list[str]:
    """Return the need's words whose stems are present (or absent), by descending weight."""
    terms = sorted(need.terms, key=lambda term: -need.terms[term])
    return [need.words[term] for term in terms if (term in stems) is present]


def _list_terms(terms: list[str]) -> str:
    """List at most six words in quotation marks."""
    more = f" and {len(terms) - 6} more" if len(terms) > 6 else ""
    return ", ".join(f'"{word}"' for word in terms[:6]) + more if terms else "none of them"


def _name_need(number: int, inputs: Inputs) -> str:
    if not inputs.answers:
        return "the query's words"
    return f"answer {number}'s words" if len(inputs.answers) > 1 else "the answer's words"
