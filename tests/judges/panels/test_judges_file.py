"""The judges file is read strictly: every mistake names its line and key, and nothing is taken over."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.errors import BadInput
from judges.panels.judges_file import parse, read
from judges.presets import PRESETS

VOTERS = 5


def text(**changes: str) -> str:
    """Five judges and a panel, one line a key; `judge` and `panel` add lines to the first judge and the panel."""
    lines = []
    for number in range(1, VOTERS + 1):
        lines += ["[[judge]]", f'name = "j{number}"', 'provider = "openai"', 'model = "m"']
        if number == 1 and "judge" in changes:
            lines.append(changes["judge"])
    lines += ["[panel]", 'debate = ["j1", "j2"]', 'ensemble = ["j1", "j2", "j3", "j4", "j5"]']
    if "panel" in changes:
        lines.append(changes["panel"])
    return "\n".join(lines)


def test_defaults_and_addresses_are_those_of_the_contract() -> None:
    file = parse(text())
    judge = file.judges[0]
    assert (judge.base_url, judge.api_key_env, judge.parameters) == ("", "OPENAI_API_KEY", {})
    assert (judge.max_concurrency, judge.input_price) == (None, None)
    panel = file.panel
    assert (panel.name, panel.majority, panel.early_stop, panel.adjudicator) == ("main", 3, False, "")
    written = parse(text(judge='base_url = "https://api.openai.com/v1/"')).judges[0]
    assert (written.base_url, written.api_key_env) == ("", "OPENAI_API_KEY")


def test_every_key_of_the_contract_is_taken() -> None:
    limits = {"max_concurrency": 64, "requests_per_minute": 600, "tokens_per_minute": 200_000}
    limits |= {"input_price": 0, "output_price": 1.10}
    parameters = {"temperature": 0.6, "top_p": 1, "max_output_tokens": 512, "timeout_s": 60, "logprobs": 5}
    lines = 'base_url = "http://127.0.0.1:8001/v1/"\napi_key_env = "SOME_API_KEY"\nscale = "binary"\n'
    lines += "\n".join(f"{key} = {value}" for key, value in {**limits, **parameters}.items())
    panel = 'name = "mine"\nadjudicator = "j1"\nmajority = 4\nearly_stop = true'
    judge = parse(text(judge=lines, panel=panel)).judges[0]
    assert judge.base_url == "http://127.0.0.1:8001/v1"
    assert {key: getattr(judge, key) for key in limits} == limits
    assert judge.parameters == {**parameters, "scale": "binary"}


# (what stands in the first judge, the key that the error names). The first judge's own lines are 1 to 4.
WRONG_JUDGES = [
    ("temprature = 0", "line 5: [[judge]] 1 temprature is unknown"),
    ("temperature = -1", "line 5: [[judge]] 1 temperature must be a number from 0 to 2"),
    ("temperature = nan", "temperature must be a number"),
    ("top_p = inf", "top_p must be a number"),
    ("max_concurrency = 0", "max_concurrency must be a whole number from 1"),
    ("max_concurrency = true", "max_concurrency must be a whole number"),
    ("timeout_s = 0", "timeout_s must be a number from 0.1"),
    ("logprobs = 21", "logprobs must be true, false or a number"),
    ("input_price = 1", "input_price needs output_price beside it, or leave both out"),
    ("input_price = -1\noutput_price = 1", "input_price must be a number from 0"),
    ('api_key_env = "sk-abc123"', "api_key_env must be the name of an environment variable, never the key"),
    ('base_url = "127.0.0.1:8001"', "base_url must be an address that begins with http://"),
    ('base_url = "http://me:secret@host/v1"', "base_url must not contain a name or password"),
    ('base_url = "http://host/v1?key=1"', "base_url must have no ?"),
    ('base_url = "http://[::1"', "base_url is not an address"),
    ('base_url = ""', "base_url must be text"),
    ('scale = "0-5"', '"0-5" is unknown; use one of binary, 0-3, 0-10'),
    ("relevant_from = 1", "relevant_from must be a grade of the judge's scale"),
    ('scale = "0-3"\nrelevant_from = 4', "relevant_from must be a grade of the judge's scale, from 1 to 3"),
    ('scale = "0-10"\ngenerations = 3', "generations needs a scale"),
    ('scale = "0-10"\ngenerations = 3\ntemperature = 1\nseed = 4', "seed makes all generations alike"),
    ('scale = "0-10"\ngenerations = 11\ntemperature = 1', "generations must be a whole number from 1 to 10"),
    ('prompt = "own"', '"own" is unknown; use one of rubric, verdict-only, score-chain'),
    ('prompt = "verdict-only"\nscale = "0-3"', 'prompt "verdict-only" needs scale = "binary"'),
    ('prompt = "score-chain"', 'prompt "score-chain" needs scale = "0-10"'),
    ('prompt = "score-chain"\nscale = "0-10"', "relevant_from is missing"),
    ('prompt = "verdict-only"\nendpoint = "decisions"', "prompt is not supported by a Decisions endpoint"),
    ('endpoint = "batch"', '"batch" is unknown; use one of chat, decisions'),
    ('endpoint = "decisions"\ntemperature = 0', "temperature is not supported by a Decisions endpoint"),
    ("threshold = 0.5", "threshold is not supported by provider openai"),
    ("cached_input_price = 0.1", "cached_input_price needs input_price and output_price"),
    ("[judge.nested]\na = 1", "nested is unknown"),
]


@pytest.mark.parametrize("provider", ["anthropic", "bedrock", "vertex-anthropic"])
def test_a_judge_that_takes_no_temperature_may_have_generations(provider: str) -> None:
    places = "".join(f'\n{key} = "eu-1"' for key in PRESETS[provider].needs)
    lines = text(judge=f'scale = "0-3"\ngenerations = 3{places}').replace('"openai"', f'"{provider}"', 1)
    assert parse(lines).judges[0].parameters["generations"] == 3


WRONG_PANELS = [
    ('name = "offline"', '"offline" is the built-in panel'),
    ('name = "a b"', "name must have no white space"),
    ("name = 7", "name must be text"),
    ("majority = 2", "line 24: [panel] majority must be a whole number from 3 to 5"),
    ("early_stop = 1", "early_stop must be true or false"),
    ('adjudicator = "nobody"', "adjudicator is not a judge of this file"),
    ('judges = ["j1"]', "judges is unknown"),
]


def replaced(old: str, new: str) -> str:
    """The usual text with one place changed."""
    assert old in text()
    return text().replace(old, new, 1)


WRONG_FILES = [
    ("", "judge is missing"),
    ("[panel]\n", "judge is missing"),
    ("judge = 7", "judge is not a list of tables"),
    ("[judge]\nname = 'a'", "judge is not a list of tables"),
    ("a." * 20 + "b = 1", "judges.toml, line 1: a key of more than 20 parts"),
    ("x = " + "9" * 5_000, "judges.toml: this is not TOML (“Exceeds the limit"),
    ("x = = 1", "judges.toml: this is not TOML in line 1, column 5 (“Invalid value”): check quotes and brackets"),
    (text() + "\n[other]\na = 1", "line 24: other is unknown"),
    ("\n".join(text().splitlines()[:20]), "panel is missing"),
    (replaced('name = "j1"', ""), "[[judge]] 1 name is missing"),
    (replaced('provider = "openai"', ""), "provider is missing"),
    (replaced('model = "m"', ""), "model is missing"),
    (replaced('name = "j2"', 'name = "j1"'), 'line 6: [[judge]] 2 name "j1" is taken by an earlier judge'),
    (replaced('name = "j1"', 'name = "a, b"'), "name must have no white space and no comma"),
    (replaced('name = "j1"', "name = 1"), "line 2: [[judge]] 1 name must be text"),
    (replaced('name = "j1"', 'name = "offline-bm25"'), "is a judge of the built-in panel"),
    (replaced('"openai"', '"opnai"'), 'line 3: [[judge]] 1 provider "opnai" is unknown; use one of openai'),
    (replaced('"openai"', '"openai-compatible"'), "base_url is missing: where is the server?"),
    (replaced('"openai"', '"offline"'), '"m" is not an offline model; use one of'),
    (replaced('"openai"', '"anthropic"\ntemperature = 0'), "line 4: [[judge]] 1 temperature is not supported by"),
    (replaced('["j1", "j2"]', '["j1"]'), "line 22: [panel] debate must name two judges"),
    (replaced('["j1", "j2"]', '["j1", "jx"]'), 'debate names "jx", which is not a judge of this file'),
    (replaced('["j1", "j2"]', '"j1"'), "debate must be a list of names of judges"),
    (replaced('debate = ["j1", "j2"]', "debate = []"), "line 22: [panel] debate must name two judges"),
    (replaced('"j4", "j5"]', '"j4", 5]'), "ensemble must be a list of names of judges"),
]


WRONG = [(text(judge=lines), message) for lines, message in WRONG_JUDGES]
WRONG += [(text(panel=lines), message) for lines, message in WRONG_PANELS]


@pytest.mark.parametrize(("whole", "message"), [*WRONG, *WRONG_FILES])
def test_a_mistake_is_named_in_one_line(whole: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse(whole)
    problem = str(caught.value)
    assert message in problem and problem.startswith("judges.toml") and "\n" not in problem
    assert "sk-abc123" not in problem and "secret" not in problem


def test_bytes_that_are_not_utf_8_are_refused_and_a_byte_order_mark_is_not(tmp_path: Path) -> None:
    path = tmp_path / "judges.toml"
    path.write_bytes(b"\xef\xbb\xbf" + text().encode())
    assert len(read(path).judges) == VOTERS
    path.write_bytes(b"# \xff\n")
    with pytest.raises(BadInput, match="byte 3 "):
        read(path)
    with pytest.raises(BadInput, match=r"folder.* judges\.toml"):
        read(tmp_path)


VALUES = st.one_of(
    st.integers(-2, 3).map(str),
    st.sampled_from(["true", "nan", '""', '"x"', "[]", "[1]", "{}", "1e400", "2020-01-01", '"http://h"', '"\\u0000"']),
)
KEYS = st.sampled_from(
    ["name", "model", "base_url", "temperature", "logprobs", "max_concurrency", "debate", "majority"]
)


@given(KEYS, VALUES, st.booleans())
def test_any_value_is_taken_or_refused_in_one_line(key: str, value: str, in_panel: bool) -> None:
    line = f"{key} = {value}"
    if in_panel:
        whole = text(panel=line)
    else:
        whole = text().replace('name = "j1"', line if key == "name" else f'name = "j1"\n{line}', 1)
    try:
        parse(whole)
    except BadInput as error:
        assert "\n" not in str(error)
