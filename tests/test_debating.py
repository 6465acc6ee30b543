"""A debate in words: turns, missing turns, and nothing of a model that becomes a tag."""

from annotation.debating import debate_of

EVIL = "<script>alert(1)</script>"


def turn(side: str, verdict: int | None, reason: str, *quotes: tuple[str, int | None]) -> dict[str, object]:
    places = [
        {"text": text, "start": start, "end": None if start is None else start + len(text)} for text, start in quotes
    ]
    return {"side": side, "round": 1, "verdict": verdict, "reason": reason, "quotes": places}


def test_a_turn_says_its_verdict_and_reason_in_the_reasons_language() -> None:
    (round_,) = debate_of([turn("for", 1, "يجيب النص عن السؤال.")]).rounds
    said, silent = round_.turns
    assert "says relevant" in said.words
    assert '<p lang="ar" dir="rtl">' in said.words
    assert "gave no readable answer" in silent.words
    assert "<p" not in silent.words


def test_what_a_model_wrote_stays_text() -> None:
    (round_,) = debate_of([{**turn("against", 0, EVIL, (EVIL, 0), (EVIL, None)), "judge": EVIL}]).rounds
    said = round_.turns[1]
    assert "<script" not in said.words + said.quotes
    assert said.words.count("&lt;script") == said.quotes.count("&lt;script") == 2


def test_a_sentence_that_both_rounds_quote_has_one_label_and_one_way_back() -> None:
    second = {**turn("for", 1, "Again.", ("One.", 0)), "round": 2}
    debate = debate_of([turn("for", 1, "First.", ("One.", 0)), second])
    assert [span.label for span in debate.spans] == ["F1"]
    assert [round_.turns[0].quotes.count('id="by-F1"') for round_ in debate.rounds] == [1, 0]


def test_a_side_that_comes_over_without_a_new_quote_is_marked() -> None:
    mark = "Changed sides without a new quote"
    (round_,) = debate_of([turn("for", 1, "Yes."), turn("against", 1, "Well then.", ("Nowhere.", None))]).rounds
    assert [mark in said.words for said in round_.turns] == [False, True]
    (round_,) = debate_of([turn("for", 1, "Yes."), turn("against", 1, "It says so.", ("One.", 0))]).rounds
    assert not any(mark in said.words for said in round_.turns)


def test_four_agents_are_two_couples_of_a_round_and_three_leave_no_silent_fourth():
    def said(side: str, couple: int, reason: str) -> dict[str, object]:
        return {"side": side, "round": 1, "couple": couple, "verdict": 1, "reason": reason, "quotes": []}

    turns = [said("for", 0, "A speaks."), said("against", 0, "B speaks."), said("for", 1, "C speaks.")]
    first, second = debate_of(turns).rounds
    assert [(first.number, first.couple), (second.number, second.couple)] == [(1, 0), (1, 1)]
    assert ["A speaks" in first.turns[0].words, "B speaks" in first.turns[1].words] == [True, True]
    assert len(second.turns) == 1 and "C speaks" in second.turns[0].words
    four = debate_of([*turns, said("against", 1, "D speaks.")]).rounds[1]
    assert len(four.turns) == 2 and "D speaks" in four.turns[1].words
