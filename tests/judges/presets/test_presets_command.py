"""`presets` as the shell sees it, and docs/judge.md: every block is read from there and run."""

import asyncio
import re
import tomllib
from collections import Counter
from dataclasses import asdict, replace
from datetime import date
from pathlib import Path

import pytest

from judges.costs.judge_records import judge_of
from judges.models import JudgeVersion
from judges.panels import judges_file
from judges.panels.judge_keys import JUDGE_KEYS, JudgeTable
from judges.presets import PRESETS
from judges.probes.checks import run_checks
from judges.records import Judge, JudgeSettings
from tests.called import call
from tests.modelserver.fixtures import KEY, KEY_ENV, LocalModels
from tests.modelserver.presets import LOOK_ALIKES


def test_every_provider_stands_in_the_table_and_an_unknown_one_is_exit_2() -> None:
    heading, *rows = call("presets").out.splitlines()
    assert heading.split()[0] == "provider"
    assert [row.split()[0] for row in rows] == list(PRESETS)
    (openai,) = [row for row in rows if row.startswith("openai ")]
    for word in ("json_schema", "up to 20", "OPENAI_API_KEY", "https://api.openai.com/v1"):
        assert word in openai
    (anthropic,) = [row for row in call("presets", "--json").json["presets"] if row["name"] == "anthropic"]
    assert anthropic["schema_modes"] == list(PRESETS["anthropic"].schema_modes)
    assert anthropic["key_env"] == "ANTHROPIC_API_KEY"
    done = call("presets", "nobody")
    assert (done.code, done.out) == (2, "") and "nobody" in done.err and "openai, " in done.err


@pytest.mark.parametrize("name", PRESETS)
def test_its_block_is_one_that_a_judges_file_takes(name: str) -> None:
    done, block = call("presets", name), call("presets", name, "--json").json["block"]
    assert done.code == 0 and done.out.startswith(PRESETS[name].title) and block in done.out
    # A file of embedders alone judges nothing; a voter stands beside it.
    other = '[[judge]]\nname = "other"\nprovider = "openai"\nmodel = "m"\n[panel]\nensemble = ["other"]'
    assert judges_file.parse(f"{block}\n{other}").judges[0].provider == name


DOCS = Path(__file__).parents[3] / "docs"
DOCUMENT = (DOCS / "judge.md").read_text()
BLOCKS = re.findall(r"^```toml\n(\[\[judge\]\]\n.*?)^```$", DOCUMENT, re.DOTALL | re.MULTILINE)


def entry_of(block: str) -> JudgeSettings:
    (entry,) = tomllib.loads(block)["judge"]
    return JudgeTable.model_validate(entry).entry()


def provider_of(block: str) -> str:
    return str(tomllib.loads(block)["judge"][0]["provider"])


def judge_in(models: LocalModels, entry: JudgeSettings) -> Judge:
    """The judge of the block; only its address is another: that of the provider's look-alike."""
    own = judge_of(JudgeVersion(**asdict(entry)))
    home = f"{models.google}/{own.provider}{LOOK_ALIKES[own.provider].home}" if own.provider in LOOK_ALIKES else ""
    return replace(own, base_url=home or models.base_url(own.provider))


def test_there_is_a_block_for_every_provider_and_every_key_is_in_the_table() -> None:
    given = Counter(map(provider_of, BLOCKS))
    assert set(given) == set(PRESETS) - {"offline"}
    assert {name for name, times in given.items() if times > 1} == {"openai"}
    table = DOCUMENT.partition("### Every key of a judge")[2].partition("\n### ")[0]
    named = {key for cell in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for key in re.findall(r"`(\w+)`", cell)}
    assert named == JUDGE_KEYS - {"name", "provider", "model"}


@pytest.mark.parametrize("block", [one for one in BLOCKS if PRESETS[provider_of(one)].asks], ids=provider_of)
def test_a_block_judges_as_it_stands(model_server: LocalModels, monkeypatch: pytest.MonkeyPatch, block: str) -> None:
    """A debate turn and a vote, asked by check_judges itself."""
    judge = judge_in(model_server, entry_of(block))
    alike = LOOK_ALIKES.get(judge.provider)
    environment = alike.environment if alike else {}
    for name, value in {judge.api_key_env or KEY_ENV: KEY, **environment}.items():
        monkeypatch.setenv(name, value)
    if judge.provider.startswith("vertex"):
        judge = replace(judge, parameters={**judge.parameters, "token_command": ["echo", KEY]})
    for role in ("for", "vote"):
        (found,) = asyncio.run(run_checks([(judge, role)]))
        assert found.problem == "" or judge.provider == "ollama", (role, found.problem)  # its look-alike cuts


TOPICS = {
    "schema mode": "schema|json_object",
    "log-probabilities": "log-?prob",
    "batches": "batch",
    "prompt cache": "cache",
    "reasoning": "reasoning|think|thought",
}


@pytest.mark.parametrize("name", [name for name, one in PRESETS.items() if one.asks and name != "openai-compatible"])
def test_every_column_of_a_provider_has_a_dated_source(name: str) -> None:
    """Also where the source says nothing: then the fact says so."""
    facts = PRESETS[name].facts
    for topic, words in TOPICS.items():
        assert any(re.search(words, fact.what, re.IGNORECASE) for fact in facts), topic
    for fact in facts:
        assert re.fullmatch(r"https://\S+", fact.source) and date.fromisoformat(fact.date) >= date(2024, 1, 1)
