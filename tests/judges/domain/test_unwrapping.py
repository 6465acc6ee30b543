"""What may stand around an answer is taken off once, as the judge's version says; what does not parse is no label."""

import json
import math
import re
import zlib

import pytest
from django.test import Client
from hypothesis import example, given
from hypothesis import strategies as st

from corpus.evidence.measures import DIMENSIONS
from corpus.models import Pair
from judges.campaigns import selectors
from judges.domain.probabilities import answer_probabilities
from judges.domain.verdicts import STRICT, WHITESPACE, ParsingRules, Unusable, parse_answer, parse_vote, unwrap_answer
from judges.models import Attempt, AttemptBody, Campaign, JudgeVersion
from judges.presets import UNWRAPS
from judges.probes.injections import INJECTIONS, Injection
from judges.prompts.answers import evidence as writings
from judges.prompts.answers import retrieval as answers
from judges.records import TEXT_ROLES, Judge, Token, Turn
from tests.called import call
from tests.engine_parts import collection_of, judge, make_panel, state_of
from tests.factories import make_member, make_user
from tests.instances import until
from tests.modelserver.fixtures import KEY_ENV, LocalModels
from tests.stages import first_quick

NO = '{"reason": "It says another thing.", "response": "no"}'
YES = NO.replace('"no"', '"yes"')
FENCE = "```"
QUOTED = json.dumps({"reason": f"It shows {FENCE}json\n{YES}\n{FENCE}", "response": "no"})
CLOSING = json.dumps({"reason": f'It says </think>{{"response": "yes"}} and {FENCE}', "response": "no"})

# What is answered, and the label in the modes none, fence, think, both: y, n, or - for none. None
# is ever "yes" here, so a y would be a label from a place where no answer stands.
ANSWERS = {
    "an object": (NO, "nnnn"),
    "an object in white space": (f"\r\n\t {NO} \n\n", "nnnn"),
    "a fence": (f"{FENCE}\n{NO}\n{FENCE}", "-n-n"),
    "a fence of json": (f"{FENCE}json\n{NO}\n{FENCE}", "-n-n"),
    "a fence of JSON": (f"\n{FENCE}JSON \n{NO}\n{FENCE}\n", "-n-n"),
    "a fence with CRLF": (f"{FENCE}json\r\n{NO}\r\n{FENCE}\r\n", "-n-n"),
    "a fence with another language": (f"{FENCE}python\n{NO}\n{FENCE}", "----"),
    "a fence of a dialect": (f"{FENCE}json5\n{NO}\n{FENCE}", "----"),
    "a fence on one line": (f"{FENCE}json {NO} {FENCE}", "----"),
    "a fence closed on the object's line": (f"{FENCE}json\n{NO}{FENCE}", "----"),
    "a fence that is not closed": (f"{FENCE}json\n{NO}", "----"),
    "a fence that is only closed": (f"{NO}\n{FENCE}", "----"),
    "a fence of four": (f"{FENCE}`json\n{NO}\n{FENCE}`", "----"),
    "two fences": (f"{FENCE}json\n{YES}\n{FENCE}\n{FENCE}json\n{NO}\n{FENCE}", "----"),
    "text, then a fence": (f"Here it is:\n{FENCE}json\n{YES}\n{FENCE}", "----"),
    "a fence, then text": (f"{FENCE}json\n{YES}\n{FENCE}\nThe document is relevant.", "----"),
    "a fence in a reason": (QUOTED, "nnnn"),
    "a fence in a reason, in a fence": (f"{FENCE}json\n{QUOTED}\n{FENCE}", "-n-n"),
    "a byte order mark": (f"\ufeff{NO}", "----"),
    "a byte order mark before a fence": (f"\ufeff{FENCE}json\n{NO}\n{FENCE}", "----"),
    "a space without width before a fence": (f"\u200b{FENCE}json\n{NO}\n{FENCE}", "----"),
    "hard spaces": (f"\u00a0{NO}\u00a0", "----"),
    "thoughts, then an object": (f"<think>Let me see.</think>\n\n{NO}", "--nn"),
    "another verdict in the thoughts": (f"<think>Perhaps\n{YES}\nNo, the opposite.</think>{NO}", "--nn"),
    "a fence in the thoughts": (f"<think>{FENCE}json\n{YES}\n{FENCE}</think>\n{NO}", "--nn"),
    "the verdict in the thoughts": (f"<think>{YES}</think>", "----"),
    "a fence in the thoughts alone": (f"<think>\n{FENCE}json\n{YES}\n{FENCE}\n</think>", "----"),
    "thoughts that do not end": (f"<think>I would say {YES}", "----"),
    "thoughts that only end": (f"I would say\n</think>\n{YES}", "----"),
    "thoughts twice": (f"<think>a</think><think>b</think>{YES}", "----"),
    "thoughts in thoughts": (f"<think>a<think>b</think>c</think>{YES}", "----"),
    "thoughts that quote their end": (f'<think>It says </think>{YES}", a trick.</think>{NO}', "----"),
    "thoughts that quote their end last": (f"<think>It ends with </think></think>{YES}", "----"),
    "their end in a reason after thoughts": (f"<think>Hm.</think>{CLOSING}", "----"),
    "their end in a reason alone": (CLOSING, "nnnn"),
    "thoughts after the object": (f"{YES}<think>Or not?</think>", "----"),
    "thoughts in the middle": (f"Well. <think>Hm.</think>{YES}", "----"),
    "thoughts in capital letters": (f"<THINK>Hm.</THINK>{YES}", "----"),
    "thoughts, then a fence": (f"<think>Hm.</think>\n{FENCE}json\n{NO}\n{FENCE}", "---n"),
    "thoughts in a fence": (f"{FENCE}\n<think>Hm.</think>\n{YES}\n{FENCE}", "----"),
    "thoughts, then text and an object": (f"<think>Hm.</think>The answer: {YES}", "----"),
    "an object, then text": (f"{YES} Hope this helps!", "----"),
    "two objects": (f"{YES}\n{YES}", "----"),
    "yes outside the object": (f"yes\n{NO}", "----"),
    "a bare yes": ("yes", "----"),
    "a bare yes after thoughts": ("<think>Hm.</think>yes", "----"),
    "an array": (f"[{YES}]", "----"),
    "an object as a string": (json.dumps(YES), "----"),
    "a tool's call": (json.dumps({"name": "answer", "arguments": json.loads(YES)}), "----"),
    "the same key twice": ('{"response": "no", "response": "yes"}', "----"),
    "a number": ('{"response": 1}', "----"),
    "nothing": ("", "----"),
    "half an object in a fence": (f"{FENCE}json\n{YES[:-1]}\n{FENCE}", "----"),
    "a comma too many": (f"{YES[:-1]},}}", "----"),
}
LETTERS = {None: "-", 0: "n", 1: "y"}


def label(text: str, rules: ParsingRules) -> int | None:
    try:
        return parse_vote(text, rules).verdict
    except Unusable:
        return None


@pytest.mark.parametrize("name", ANSWERS)
def test_a_label_stands_only_where_the_rule_says_so(name: str) -> None:
    text, expected = ANSWERS[name]
    for lenient in (False, True):
        found = [label(text, ParsingRules(how, ignore_case=lenient, ignore_extra_keys=lenient)) for how in UNWRAPS]
        assert "".join(LETTERS[one] for one in found) == expected, lenient


# Words and keys: the label when read to the letter, with capital letters ignored, with further keys, with both.
WORDS = {
    "YES": ('{"response": "YES"}', "-y-y"),
    "Yes": ('{"response": "Yes"}', "-y-y"),
    "No": ('{"reason": "", "response": "No"}', "-n-n"),
    "white space around it": ('{"response": " yes "}', "----"),
    "a line's end behind it": ('{"response": "no\\n"}', "----"),
    "a full stop": ('{"response": "Yes."}', "----"),
    "wide letters": ('{"response": "ｙｅｓ"}', "----"),
    "a long s, that is an s in capitals": ('{"response": "yeſ"}', "----"),
    "another language": ('{"response": "ja"}', "----"),
    "an empty one": ('{"response": ""}', "----"),
    "a further key": ('{"response": "yes", "confidence": 0.9}', "--yy"),
    "a further key and capital letters": ('{"confidence": {"a": [1]}, "response": "No"}', "---n"),
    "the key with a capital letter": ('{"Response": "yes"}', "----"),
    "a further key twice": ('{"response": "yes", "x": 1, "x": 2}', "----"),
    "the key inside a further key": ('{"answer": {"response": "yes"}}', "----"),
    "a further key that is no JSON": ('{"response": "yes", "x": NaN}', "----"),
    "a reason that is no text": ('{"response": "yes", "reason": ["why"]}', "----"),
    "a call's name beside the fields": ('{"name": "answer", "reason": "", "response": "yes"}', "--yy"),
}


@pytest.mark.parametrize("name", WORDS)
def test_capital_letters_and_further_keys_are_as_the_version_says(name: str) -> None:
    text, expected = WORDS[name]
    ways = [(False, False), (True, False), (False, True), (True, True)]
    for how in UNWRAPS:
        found = [label(text, ParsingRules(how, case, keys)) for case, keys in ways]
        assert "".join(LETTERS[one] for one in found) == expected


@pytest.mark.parametrize(("role", "grades"), [("vote", "binary"), ("vote", "0-3"), ("for", "binary"), ("check", "0-3")])
def test_the_judges_version_says_how_its_answers_are_read(role: str, grades: str) -> None:
    fields: dict[str, object] = {"reason": "It says so.", "response": "Yes", "sure": True}
    fields |= {"score": 3} if (role, grades) == ("vote", "0-3") else {}
    fields |= {"reference": ["It is mutable."]} if role != "vote" else {}
    text = f"<think>It is.</think>\n{FENCE}json\n{json.dumps(fields, indent=2)}\n{FENCE}"
    given = {"unwrap": "both", "ignore_case": True, "extra_keys": "ignore", "scale": grades, "relevant_from": 3}
    own = Judge("j", "openai-compatible", "m", id=1, parameters=given)
    turn = parse_answer(role, text, "It is mutable.", own)
    assert (turn.verdict, turn.reason) == (1, "It says so.")
    assert [quote.start for quote in turn.quotes] == ([0] if role != "vote" else [])
    needed = (
        given.keys() - {"scale", "relevant_from"} - ({"ignore_case"} if (role, grades) == ("vote", "0-3") else set())
    )
    for name in needed:
        less = Judge(
            "j", "openai-compatible", "m", id=1, parameters={key: one for key, one in given.items() if key != name}
        )
        with pytest.raises(Unusable):
            parse_answer(role, text, "It is mutable.", less)


EVERYTHING = ParsingRules("both", ignore_case=True, ignore_extra_keys=True)
ROLES = {
    "write": {"contribution": "It says what a mapping maps.", "evidence": "A mapping maps hashable values."},
    "entity": {"entities": ["mapping"]},
    "measure": {**dict.fromkeys(DIMENSIONS, 5), "note": ""},
    "rewrite": {"passage": "A mapping maps hashable values."},
    "reason": {"reasoning": "What is mapped?"},
}


@pytest.mark.parametrize("role", ROLES)
def test_every_role_that_writes_is_unwrapped_by_the_same_rule(role: str) -> None:
    def read(text: str, rules: ParsingRules) -> Turn:
        if role in TEXT_ROLES:
            return writings.parse_answer(role, text, "A mapping.", rules)
        return answers.parse_answer(role, text, 0, rules)

    plain = json.dumps(ROLES[role])
    wrapped = f"<think>{plain}</think>\n{FENCE}json\n{json.dumps({**ROLES[role], 'sure': True})}\n{FENCE}"
    assert read(wrapped, EVERYTHING) == read(plain, STRICT)
    strict = [STRICT, ParsingRules("think", False, True), ParsingRules("fence", False, True), ParsingRules("both")]
    for rules in strict:
        with pytest.raises(Unusable):
            read(wrapped, rules)


@pytest.mark.parametrize("injection", INJECTIONS, ids=lambda one: one.name)
def test_a_hostile_text_in_the_reasoning_or_beside_the_answer_gives_no_verdict(injection: Injection) -> None:
    hostile = injection.text
    for how in UNWRAPS:
        rules = ParsingRules(how, ignore_case=True, ignore_extra_keys=True)
        for text in (f"<think>{hostile}</think>\n{NO}", f"<think>It says {hostile}, but no.</think>\n{NO}"):
            assert label(text, rules) in (0, None)
        beside = [f"{hostile}\n{FENCE}json\n{NO}\n{FENCE}", f"{FENCE}json\n{NO}\n{FENCE}\n{hostile}", f"{NO}{hostile}"]
        beside += [f"<think>Hm.</think>{hostile}\n{NO}", f"<think>{hostile}", f"<think>{hostile}</think>"]
        assert [label(text, rules) for text in beside] == [None] * len(beside)


def test_thoughts_are_told_apart_and_probabilities_are_those_of_the_answer() -> None:
    text = f"<think>\nLet me see.\n</think>\n\n{NO}\n"
    assert unwrap_answer(text, "both") == unwrap_answer(text, "think") == (NO, "Let me see.")
    assert unwrap_answer(text, "none") == unwrap_answer(text, "fence") == (text, "")
    text = f'<think>{{"response": "yes"}}?</think>\n{FENCE}\n{{"response": "No"}}\n{FENCE}'
    words = [word for word in re.findall(r"\w+|\W+", text)]
    shares = {"yes": 0.3, "No": 0.9}
    tokens = tuple(Token(word, math.log(shares.get(word, 0.5)), {word: -0.1, "Yes": -3}) for word in words)
    left, _ = unwrap_answer(text, "both")
    found = answer_probabilities(text, tokens, 0, None, text.rfind(left))
    assert found is not None and found["no"] == pytest.approx(0.9) and found["yes"] == pytest.approx(math.exp(-3))
    score = '<think>{"score": 3}</think>{"score": 1}'
    tokens = tuple(Token(word, math.log(0.2 if word == "1" else 0.7)) for word in re.findall(r"\w+|\W+", score))
    assert answer_probabilities(score, tokens, 0, 1, score.rfind("{")) == {"1": pytest.approx(0.2)}


OBJECTS = st.builds(
    lambda reason, response: json.dumps({"reason": reason, "response": response}, ensure_ascii=False),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    st.sampled_from(["yes", "no"]),
)
MARKS = ["<think>", "</think>", FENCE, f"{FENCE}json\n", f"\n{FENCE}"]
PIECES = st.sampled_from([*MARKS, "\n", " ", "\r\n", "{", "}", YES, NO, "yes", "~~~", "x"])
AROUND = st.lists(PIECES, max_size=4).map("".join)
TEXTS = st.lists(PIECES | OBJECTS | st.text(max_size=5), max_size=8).map("".join)
HOW = st.sampled_from(UNWRAPS)


@given(text=TEXTS, how=HOW)
def test_unwrapping_cuts_a_piece_out_and_again_changes_nothing(text: str, how: str) -> None:
    left, thought = unwrap_answer(text, how)
    assert left in text and thought in text
    assert unwrap_answer(left, how) == (left, "")
    if how == "none":
        assert (left, thought) == (text, "")


@given(object=OBJECTS, before=AROUND, after=AROUND, how=HOW)
@example(object=NO, before="", after="", how="none")
@example(object=NO, before=f"{FENCE}json\n", after=f"\n{FENCE}", how="fence")
@example(object=NO, before="<think>yes</think>", after="", how="think")
@example(object=NO, before=f"<think>{YES}</think>\n{FENCE}\n", after=f"\n{FENCE}", how="both")
def test_whatever_stands_around_an_object_it_is_read_only_in_an_allowed_wrapping(object, before, after, how):
    """The rule once more, said another way: by what the surroundings are, piece by piece."""
    text = before + object + after
    allowed, rest = False, before.strip(WHITESPACE)
    if rest.startswith("<think>") and "</think>" in rest and how in ("think", "both"):
        marks = (text.count("<think>"), text.count("</think>"))
        rest = rest.partition("</think>")[2].strip(WHITESPACE) if marks == (1, 1) else "no"
    if not rest:
        allowed = not after.strip(WHITESPACE)
    elif how in ("fence", "both"):
        line = before.rstrip(WHITESPACE).rpartition("\n")[2].strip(WHITESPACE) if "\n" in before else rest
        fence = rest in (FENCE, f"{FENCE}json") and line.endswith(rest) and "\n" in before[before.rindex(FENCE) :]
        allowed = fence and after.strip(WHITESPACE) == FENCE and "\n" in after[: after.index(FENCE)]
    found = label(text, ParsingRules(how))
    assert (found is not None) == (allowed and label(object, ParsingRules()) is not None)
    if found is not None:
        assert found == label(object, ParsingRules())


@given(thought=TEXTS, object=OBJECTS, how=HOW, end=st.sampled_from(["</think>", "</think>\n", "\n</think>\n\n"]))
def test_no_label_ever_comes_from_thoughts(thought: str, object: str, how: str, end: str) -> None:
    """Whatever is thought, and whichever end of the thoughts one takes for theirs."""
    for after in ("", object, f"{FENCE}json\n{object}\n{FENCE}", "text"):
        found = label(f"<think>{thought}{end}{after}", ParsingRules(how))
        assert found is None or (after and found == label(object, ParsingRules()))


LENIENT = {"unwrap": "both", "ignore_case": True, "extra_keys": "ignore"}


def wrapped_turn(response: str) -> str:
    """An answer about `collection_of`'s first document, as a model without a schema gives it."""
    fields = {"reference": ["Part of books."], "reason": f"I say {response}.", "response": response, "sure": True}
    return f"<think>Is {YES} right?</think>\n\n{FENCE}json\n{json.dumps(fields, indent=1)}\n{FENCE}\n"


def test_the_answer_is_stored_as_it_came_and_people_see_the_debate_alone(worker, model_server):
    """Through the engine: the raw body, what was thought beside it, and the debate beside the text."""
    collection_of(1)
    make_panel(model_server, debate=("one", "other"), parameters=LENIENT)
    said = {"one": wrapped_turn("Yes"), "other": wrapped_turn("NO")}
    model_server.script({name: {"text": text} for name, text in said.items()})
    status = judge("--policy", "debate", check=True).json
    assert status["escalations"] == {"disagreement": 1}
    bodies = {body.attempt_id: zlib.decompress(body.raw) for body in AttemptBody.objects.all()}
    attempts = list(Attempt.objects.select_related("judge"))
    assert len(attempts) == 4 and {one.outcome for one in attempts} == {"labelled"}
    for one in attempts:
        answered = json.loads(bodies[one.pk])["choices"][0]["message"]["content"]
        assert answered == said[one.judge.model] and one.verdict == (one.judge.model == "one")
        assert one.reasoning == f"Is {YES} right?"
    pair = Pair.objects.get()
    debate = selectors.debate_of(pair)
    assert [(speech.verdict, speech.reason) for speech in debate[:2]] == [(1, "I say Yes."), (0, "I say NO.")]
    assert [quote["start"] is not None for quote in debate[0].quotes] == [True]
    alice, olga = Client(), Client()
    alice.force_login(make_member(pair.collection, "alice").user)
    page = alice.post("/c/books/judge/next/", headers={"HX-Request": "true"}).text
    assert "I say Yes." in page and "right?" not in page and "&lt;think" not in page and FENCE not in page
    olga.force_login(make_user("olga", is_owner=True))
    assert "&lt;think&gt;" in olga.get(f"/c/books/pairs/{pair.pk}/").text


def make_judge(models: LocalModels, alike: str, unwrap: str) -> None:
    JudgeVersion.objects.create(
        name="judge",
        model="judge",
        provider=alike.partition("+")[0],
        base_url=f"{models.google}/{alike}/v1",
        api_key_env=KEY_ENV,
        parameters={"unwrap": unwrap} if unwrap != "none" else {},
        input_price=0.0,
        output_price=0.0,
    )


@pytest.mark.slow
@pytest.mark.parametrize("unwrap", first_quick(UNWRAPS))
def test_hostile_answers_become_labels_only_where_the_rule_says_so(models: LocalModels, unwrap: str) -> None:
    """Each pair has its own answer, given to the first question and to the repair alike."""
    collection_of(len(ANSWERS))
    make_judge(models, "ollama", unwrap)
    expected, script = {}, []
    for number, (text, letters) in enumerate(ANSWERS.values()):
        asks = {"contains": f"mapping number {number} map"}
        script.append({**asks, "text": text} if text else {**asks, "fault": "empty"})
        expected[f"What does mapping number {number} map?"] = letters[UNWRAPS.index(unwrap)]
    models.script({"judge": script})
    judge("--policy", "single", "--judges", "judge")
    while state_of(Campaign.objects.get()) == "paused":  # as often as twenty answers in a row could not be used
        call("campaign", "books", "resume")
        until(lambda: state_of(Campaign.objects.get()) != "running")
    done = call("status", "books", "--json")
    attempts = list(Attempt.objects.select_related("pair__query"))
    found = dict.fromkeys(expected, LETTERS[None])
    found |= {one.pair.query.text: LETTERS[one.verdict] for one in attempts if one.outcome == "labelled"}
    assert found == expected
    labels = sum(letter != "-" for letter in expected.values())
    assert (done.json["labelled"], done.json["failed"]) == (labels, len(ANSWERS) - labels)
    assert {one.outcome for one in attempts} <= {"labelled", "unparsed", "out_of_range"}
