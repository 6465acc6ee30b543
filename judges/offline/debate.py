"""The extractive pair: two offline agents that argue from a document's sentences, word by word. Pure.

They follow the debate's protocol (DREAM 3.1). Each gives in at once where its side is hopeless, and
later where what the other side said shows it.

Between the bounds they stay apart, and the pair goes to people. Where four debate, the second
couple comes to the same verdicts, but looks at single sentences and at what all have quoted, so
each agent has something of its own to say.
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

QUOTED = 3  # Sentences that the side for quotes at most.
# Shares of the need, 0 to 1, at which a side gives in. The side for begins with no below the first,
# and gives in below the third once it has read the other turn; the side against begins with yes
# from the second on, and gives in from the fourth on.
Bounds = tuple[float, float, float, float]
WITH_ANSWERS: Bounds = (0.25, 0.65, 0.4, 0.5)
WITHOUT_ANSWERS: Bounds = (0.3, 0.7, 0.42, 0.55)
NEVER_GIVES_IN: Bounds = (0.0, 2.0, 0.0, 2.0)


def argue_turn(
    seat: DebateAgent,
    inputs: Inputs,
    lexicon: Lexicon,
    history: Mapping[DebateAgent, Turn] | None,
    *,
    gives_in: bool = True,
) -> Turn:
    """Make one turn. `history`: the turns of the round before; None in round 1.

    An agent that never gives in says the best that can be said for its side, whatever the text says.
    """
    bounds = (WITH_ANSWERS if inputs.answers else WITHOUT_ANSWERS) if gives_in else NEVER_GIVES_IN
    wanted = information_needs(inputs.query, inputs.answers, lexicon)
    hopeless, plain_to_see, given_up, convinced = bounds
    if history is None:
        is_for = seat.side is Side.FOR
        turn = _defend(inputs, wanted, hopeless) if is_for else _attack(inputs, wanted, plain_to_see)
    elif seat.side is Side.FOR:
        turn = _look_up(inputs, wanted, given_up, history[AGAINST])
    else:
        turn = _check_quotes(inputs, wanted, convinced, history[FOR])
    # Only the first couple's turns decide; the second couple tells what else is to be seen.
    return _second_couple_turn(seat.side, turn.verdict, inputs, wanted, history) if seat.couple else turn


def _defend(inputs: Inputs, wanted: tuple[Need, ...], bound: float) -> Turn:
    """Round 1 of the side for: the sentences that together hold most of an answer."""
    number, need, chosen = _best_sentences(inputs, wanted)
    held = matched_share(need, sentence_stems(chosen))
    found = _list_terms(_need_terms(need, sentence_stems(chosen), present=True))
    what = _name_need(number, inputs)
    if held < bound:
        reason = f"By words alone: even the best sentences hold only {held:.0%} of {what}. I find too little to defend."
        return Turn(0, reason, _quote_sentences(inputs, chosen[:1]))
    reason = f"By words alone: these sentences hold {held:.0%} of {what}, among them {found}. I count that as support."
    return Turn(1, reason, _quote_sentences(inputs, chosen))


def _attack(inputs: Inputs, wanted: tuple[Need, ...], bound: float) -> Turn:
    """Round 1 of the side against: the words that the best three sentences in a row lack."""
    rows = [list(run) for run in runs_of(read_sentences(inputs.document), 3)]
    options = [(number, need, row) for number, need in enumerate(wanted, 1) for row in rows]
    number, need, row = max(options, key=lambda option: matched_share(option[1], sentence_stems(option[2])))
    held = matched_share(need, sentence_stems(row))
    missing = _list_terms(_need_terms(need, sentence_stems(row), present=False))
    what = _name_need(number, inputs)
    nearest = _quote_sentences(inputs, sorted(row, key=lambda one: -matched_share(need, set(one.stems)))[:1])
    if held >= bound:
        reason = f"By words alone: three sentences in a row hold {held:.0%} of {what}. I find too little to object to."
        return Turn(1, reason, nearest)
    reason = f"By words alone: where the document comes nearest to {what}, it holds {held:.0%}. Missing: {missing}."
    return Turn(0, reason, nearest)


def _look_up(inputs: Inputs, wanted: tuple[Need, ...], bound: float, other: Turn) -> Turn:
    """Return a later turn of the side for: are the words that the other side misses anywhere in the document?"""
    number, need, chosen = _best_sentences(inputs, wanted)
    everywhere = sentence_stems(read_sentences(inputs.document)) | set(map(stem, tokenize_text(inputs.title)))
    held = matched_share(need, everywhere)
    missed = {
        stem(word) for term in re.findall(r'"([^"]+)"', other.reason) for word in tokenize_text(term)
    } & need.terms.keys()
    there = _list_terms([need.words[term] for term in need.terms if term in missed & everywhere])
    absent = _list_terms([need.words[term] for term in need.terms if term in missed - everywhere])
    what = _name_need(number, inputs)
    if held < bound:
        reason = f"I looked for what the other side misses. Nowhere in the document: {absent}."
        reason = f"{reason} As a whole it holds {held:.0%} of {what}. I give in."
        return Turn(0, reason, _quote_sentences(inputs, chosen[:1]))
    reason = f"I looked for what the other side misses. Elsewhere in the document: {there}. Nowhere: {absent}."
    return Turn(1, f"{reason} As a whole it holds {held:.0%} of {what}, so I stay.", _quote_sentences(inputs, chosen))


def _check_quotes(inputs: Inputs, wanted: tuple[Need, ...], bound: float, other: Turn) -> Turn:
    """Return a later turn of the side against: do the sentences that the other side quotes hold an answer?"""
    found = tuple(quote for quote in other.quotes if quote.start is not None)
    invented = len(other.quotes) - len(found)
    quoted = {stem(word) for quote in found for word in tokenize_text(quote.text)}
    number, need = max(enumerate(wanted, 1), key=lambda entry: matched_share(entry[1], quoted))
    held = matched_share(need, quoted)
    what = _name_need(number, inputs)
    aside = f" {invented} of its quotations stand nowhere in the document." if invented else ""
    if held >= bound:
        return Turn(1, f"The sentences that the other side quotes hold {held:.0%} of {what}. I give in.{aside}", found)
    missing = _list_terms(_need_terms(need, quoted, present=False))
    reason = f"I read the other side's sentences: they hold {held:.0%} of {what} and still lack {missing}.{aside}"
    return Turn(0, f"{reason} I stay.", found[:1])


def _second_couple_turn(
    side: Side, verdict: int, inputs: Inputs, wanted: tuple[Need, ...], history: Mapping[DebateAgent, Turn] | None
) -> Turn:
    """Return the turn of an agent of the second couple: first on single sentences, later on what everybody quoted."""
    spoken = read_sentences(inputs.document)
    options = [
        (matched_share(need, set(one.stems)), number, need, one)
        for number, need in enumerate(wanted, 1)
        for one in spoken
    ]
    held, number, need, best = max(options, key=lambda option: option[0], default=(0.0, 1, wanted[0], None))
    what, stays = _name_need(number, inputs), verdict == int(side is Side.FOR)
    quotes = _quote_sentences(inputs, [best] if best else [])
    if history is None:
        told = f"By words alone, sentence by sentence: the best one holds {held:.0%} of {what}"
        if side is Side.FOR:
            end = "I count it as support" if stays else "I find nothing to defend in that"
            held = matched_share(need, sentence_stems(spoken))
            return Turn(verdict, f"{told}, the whole document {held:.0%}. {end}.", quotes)
        missing = _list_terms(_need_terms(need, set(best.stems if best else ()), present=False))
        end = f"It lacks {missing}" if stays else "I see nothing to object to in that"
        return Turn(verdict, f"{told}. {end}.", quotes)
    texts = dict.fromkeys(quote.text for turn in history.values() for quote in turn.quotes if quote.start is not None)
    quoted = {stem(word) for text in texts for word in tokenize_text(text)}
    told = f"I put together all that was quoted so far: it holds {matched_share(need, quoted):.0%} of {what}"
    found = _list_terms(_need_terms(need, quoted, present=side is Side.FOR))
    end = f"{'There' if side is Side.FOR else 'Not there'}: {found}. " + ("I stay" if stays else "I give in")
    return Turn(verdict, f"{told}. {end}.", quotes)


def _best_sentences(inputs: Inputs, wanted: tuple[Need, ...]) -> tuple[int, Need, list[ReadSentence]]:
    """The answer (number from 1) that up to three sentences from anywhere hold best, and those in the text's order."""
    options = [
        (number, need, pick_sentences(need, read_sentences(inputs.document), QUOTED, 0.05))
        for number, need in enumerate(wanted, 1)
    ]
    return max(options, key=lambda option: matched_share(option[1], sentence_stems(option[2])))


def _quote_sentences(inputs: Inputs, chosen: list[ReadSentence]) -> tuple[Quote, ...]:
    return tuple(locate_quote(inputs.document[one.start : one.end], inputs.document) for one in chosen)


def _need_terms(need: Need, held: set[str], *, present: bool) -> list[str]:
    """Return the need's words that are held (or are not), most telling first."""
    terms = sorted(need.terms, key=lambda term: -need.terms[term])
    return [need.words[term] for term in terms if (term in held) is present]


def _list_terms(found: list[str]) -> str:
    """List at most six words in quotation marks."""
    more = f" and {len(found) - 6} more" if len(found) > 6 else ""
    return ", ".join(f'"{word}"' for word in found[:6]) + more if found else "none of them"


def _name_need(number: int, inputs: Inputs) -> str:
    if not inputs.answers:
        return "the query's words"
    return f"answer {number}'s words" if len(inputs.answers) > 1 else "the answer's words"
