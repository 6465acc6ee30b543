"""What is wrong with a judges file is said in the reader's language."""

import html
import re

import pytest
from django.test import Client

from annotation.models import User
from judges.panels.offline_panel import ensure_offline
from tests.annotation.data.imports.test_errors_in_chinese import english
from tests.factories import make_collection, make_user
from tests.stages import first_quick

pytestmark = pytest.mark.django_db

J = '[[judge]]\nname = "j1"\nprovider = "openai"\nmodel = "gpt-4o-mini"\n'
TWO = J + J.replace("j1", "j2")
# After the line's number: what a judge's table may not hold, and what the file as a whole may not.
KEYS = [
    "temprature = 1", "temperature = 3", "top_p = 2", "max_output_tokens = 0", "timeout_s = 0", "logprobs = 99",
    'scale = "0-4"', "relevant_from = 1", "generations = 2", 'endpoint = "x"', 'prompt = "score-chain"',
    'prompt = "verdict-only"\nscale = "0-3"', 'schema_mode = "x"', "ignore_case = 1", "thinking = 0",
    "thinking = true\nreasoning_effort = 'low'", "safety_settings = {}", "extra_body = {}",
    "extra_body = { model = 'm' }", "extra_body = { service_tier = 'x' }", "extra_body = { max_tokens = 1 }",
    "extra_body = { day = 2020-01-01 }", "extra_headers = { Authorization = 'x' }", "extra_headers = { 'a b' = 'x' }",
    "seed = -1", "stop = []", "region = 'a b'", "base_url = 'ftp://x'", "base_url = 'https://a:b@x.org'",
    "base_url = 'https://x.org/?a'", "base_url = 'http://[x'", "api_key_env = 'sk-1'", "max_concurrency = 0",
    "input_price = -1", "input_price = 1", "reasoning_price = 1", "threshold = 0.5", "family = ' x'",
    "generations = 2\nscale = '0-3'\ntemperature = 1\nseed = 1",
]  # fmt: skip
FILES = [
    "x = = 1", "[judge", "", "judge = 7", "panel = 1", "x = 1", J.replace("j1", "a b"), J.replace("openai", "nobody"),
    J.replace("gpt-4o-mini", "m" * 201), J + J, TWO, J.replace('name = "j1"\n', ""),
    J.replace('"openai"', '"openai-compatible"'), J.replace('"openai"', '"offline"'),
    TWO + "[panel]\n", TWO + "[panel]\nensemble = ['j1', 'j2']\n", TWO + "[panel]\nensemble = ['j3']\n",
    TWO + "[panel]\nensemble = 1\n", TWO + "[panel]\ndebate = ['j1']\n", TWO + "[panel]\nname = 'offline'\n",
    TWO + "[panel]\nensemble = ['j1']\nmajority = 2\n", TWO + "[panel]\ndebate = ['j1', 'j2']\nmajority = 2\n",
    TWO + "[panel]\nensemble = ['j1']\nadjudicator = 'j3'\n",
    J + "temperature = 0\n[panel]\nensemble = ['j1', 'j1', 'j1']\n",
    J + "[[price]]\nprovider = 'offline'\nmodel = 'x'\ninput_price = 1\noutput_price = 1\n",
    J + "[[price]]\nprovider = 'openai'\nmodel = 'x*y'\ninput_price = 1\noutput_price = 1\n",
    J + 2 * "[[price]]\nprovider = 'openai'\nmodel = 'x'\ninput_price = 1\noutput_price = 1\n",
]  # fmt: skip
ALL = [*(J + key for key in KEYS[:3]), *FILES[:3], *(J + key for key in KEYS[3:]), *FILES[3:]]
# What stays as it is written in the file: keys, tables, providers and values.
WRITTEN = {
    *(line.split("=")[0].strip() for one in KEYS for line in one.split("\n")),
    *re.findall(r"\w+", "judge panel price name provider model ensemble debate majority adjudicator openai toml"),
    *re.findall(r"\w+", "token true false inf nan http https rerank quorum decisions config"),
}


@pytest.fixture
def olga(client: Client) -> Client:
    ensure_offline()
    make_collection("birds")
    client.force_login(make_user("olga", is_owner=True))
    User.objects.update(language="zh-hans")
    return client


def unknown_words(said: str) -> set[str]:
    """What is neither Chinese nor quoted nor a list of values nor written in the file."""
    bare = re.sub(r"https?://\S+|\w+ = \S+|：[\w, .-]+$|可用的有 .*|judges\.toml", " ", said)
    return {word for word in english(bare) if "_" not in word and word.lower() not in WRITTEN}


@pytest.mark.parametrize("text", first_quick(ALL, 6), ids=range(len(ALL)))
def test_a_wrong_judges_file_is_refused_in_chinese(olga: Client, text: str) -> None:
    response = olga.post("/c/birds/models/load/", {"text": text, "load": "1"})
    assert response.status_code == 422
    page = html.unescape(response.content.decode())
    said = " ".join(str(one) for errors in response.context["file_form"].errors.values() for one in errors)
    assert said in page
    assert re.search(r"[\u4e00-\u9fff]", said), said
    assert unknown_words(said) == set(), said
