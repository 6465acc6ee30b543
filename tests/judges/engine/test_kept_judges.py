"""Judges keep their accounts, prompts, hashes and requests.

`kept_judges/recorded.json` is never written anew: an entry that differs is a judge of somebody's
campaign that would be another judge after an update, and whose paid answers would be bought again.
"""

import asyncio
import json
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from corpus.evidence.measures import EvidenceTarget
from judges.costs.judge_records import judge_of
from judges.domain.debate import AGAINST, FOR
from judges.engine import cache
from judges.models import JudgeVersion
from judges.panels import judges_file
from judges.panels.judges_file import JudgesFile
from judges.prompts import render
from judges.prompts.searching import PASSAGE_SCHEMA, plain_prompt, rewrite_prompt
from judges.prompts.writing import (
    ENTITY_SCHEMA,
    MEASURE_SCHEMA,
    WRITE_SCHEMA,
    entity_prompt,
    measure_prompt,
    write_prompt,
)
from judges.providers import close_providers, open_provider
from judges.records import Inputs, Judge, ModelRequest, Prompt, Quote, Turn
from tests.modelserver.fixtures import KEY_ENV, LocalModels

HERE = Path(__file__).parents[2] / "kept_judges"
FILES = ("example", "every-key")
RECORDED = json.loads((HERE / "recorded.json").read_text())
INPUTS = Inputs(
    "What does a mapping map?", ("Hashable values.",), "Mappings", "A mapping maps hashable values. It is mutable."
)
SAID = {
    FOR: Turn(1, "It names them.", (Quote("A mapping maps hashable values.", 0, 31),)),
    AGAINST: Turn(0, "It does not say what to.", (Quote("It is frozen."),)),
}
TARGET = EvidenceTarget("It says what a mapping maps.", "A mapping maps hashable values.")


def read(name: str) -> JudgesFile:
    return judges_file.read(HERE / f"{name}.toml")


def judges_in(name: str) -> list[Judge]:
    return [judge_of(JudgeVersion(**asdict(entry))) for entry in read(name).judges]


def questions(judge: Judge) -> dict[str, ModelRequest]:
    """What such a judge is asked, by the role and what distinguishes it."""
    if judge.provider == "embed-endpoint":
        texts = ("A mapping.", "A set.")
        return {"embed": ModelRequest(judge, plain_prompt("embed", texts), {}, INPUTS, "embed", documents=texts)}
    prompt, schema = render.render_ballot(INPUTS, judge)
    votes = {
        "vote": ModelRequest(judge, prompt, schema, INPUTS, "vote"),
        "filter": ModelRequest(judge, prompt, schema, INPUTS, "filter"),
        "generation, second": ModelRequest(judge, prompt, schema, INPUTS, "generation", sample=1),
    }
    if judge.provider == "rerank-endpoint":
        texts = ("A mapping.", "A set.")
        return votes | {"rank": ModelRequest(judge, plain_prompt("rank", texts), {}, INPUTS, "rank", documents=texts)}
    votes["vote, repaired"] = replace(votes["vote"], prompt=render.repair_prompt(prompt, "it was empty"))
    if judge.decides:
        return votes

    def asked(role: str, prompt: Prompt, schema: dict[str, Any], **more: Any) -> ModelRequest:
        return ModelRequest(judge, prompt, schema, INPUTS, role, **more)

    turn = render.TURN_SCHEMA
    later = {"round": 2, "history": SAID}
    return votes | {
        "for": asked("for", render.turn_prompt(INPUTS, FOR, 1), turn, round=1),
        "against, later": asked("against", render.turn_prompt(INPUTS, AGAINST, 2, SAID), turn, **later),
        "adjudicate": asked("adjudicate", render.adjudicate_prompt(INPUTS, SAID), render.VOTE_SCHEMA),
        "write": asked("write", write_prompt(INPUTS), WRITE_SCHEMA),
        "entity": asked("entity", entity_prompt("A mapping maps hashable values."), ENTITY_SCHEMA, written=TARGET),
        "measure": asked("measure", measure_prompt(INPUTS, TARGET), MEASURE_SCHEMA, written=TARGET),
        "rewrite": asked("rewrite", rewrite_prompt("hyde", INPUTS.query), PASSAGE_SCHEMA),
    }


def sent_of(models: LocalModels, asked: list[ModelRequest]) -> list[dict[str, Any]]:
    """Path and JSON of each request, as the server got it; long texts by their hash, properties in their order."""
    models.reset()

    async def send() -> None:
        try:
            for one in asked:
                judge = replace(one.judge, base_url=models.base_url(one.judge.provider), api_key_env=KEY_ENV)
                await open_provider(judge).complete(replace(one, judge=judge))
        finally:
            await close_providers()

    asyncio.run(send())
    return [{"path": sent["path"], "body": plain(sent["body"])} for sent in models.requests()]


def plain(value: Any, key: str = "") -> Any:
    if isinstance(value, str) and len(value) > 100:
        return f"sha256 {hashed(value)}"
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        pairs = [[name, plain(one, name)] for name, one in value.items()]
        return pairs if key == "properties" else {str(name): one for name, one in pairs}
    return value


def hashed(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def record(models: LocalModels, judge: Judge) -> dict[str, Any]:
    """Everything that makes a judge the judge it is. Requests of most roles by their hash: they are long and alike."""
    asked = questions(judge)
    told: dict[str, Any] = {"account": list(judge.account), "asked": {}}
    sent = [None] * len(asked) if judge.provider == "offline" else sent_of(models, list(asked.values()))
    for (role, request), body in zip(asked.items(), sent, strict=True):
        prompt = request.prompt
        told["asked"][role] = {
            "prompt": [prompt.name, prompt.sha256],
            "keys": [hashed(cache.make_cache_key(judge, prompt, sample, 7)) for sample in (0, 2)],
            "sent": body if role in ("vote", "rank", "embed") else hashed(json.dumps(body, sort_keys=True)),
        }
    names = ("max_output_tokens", "grades", "relevant_from", "ballot", "decides", "alternatives", "generations")
    return {**told, "means": {name: getattr(judge, name) for name in names}}


@pytest.mark.parametrize("name", FILES)
def test_judges_ask_what_they_asked(model_server: LocalModels, name: str) -> None:
    """Account, prompt names and hashes, keys of the cache, and every request as JSON."""
    judges = judges_in(name)
    kept = RECORDED["judges"][name]
    assert [judge.name for judge in judges] == list(kept)
    for judge in judges:
        assert json.loads(json.dumps(record(model_server, judge))) == kept[judge.name], judge.name


def test_prompts_keep_their_hashes() -> None:
    now = {name: sha for name, (sha, _) in render.prompt_versions().items()}
    assert {name: now.get(name) for name in RECORDED["prompts"]} == RECORDED["prompts"]
