"""Judges at look-alikes, as a judges file makes them, and their votes through the real SDKs."""

import asyncio
from dataclasses import asdict
from typing import Any

from judges.domain.verdicts import parse_answer
from judges.panels.judge_keys import JudgeTable
from judges.prompts.answering import fit_prompt
from judges.prompts.render import render_ballot
from judges.providers import close_providers, open_provider
from judges.records import Inputs, Judge, ModelRequest, Reply
from tests.modelserver.fixtures import KEY_ENV, LocalModels
from tests.modelserver.presets import LOOK_ALIKES

INPUTS = Inputs("What?", (), "", "A mapping maps. It is mutable.")


def judge_of(models: LocalModels, preset: str, model: str = "yes", alike: str = "", **keys: Any) -> Judge:
    """A judge as a file with these keys makes it, at the look-alike of the preset or a variant of it."""
    home = f"{models.google}/{alike or preset}{LOOK_ALIKES[alike or preset].home}"
    entry = {"name": "j", "provider": preset, "model": model, "base_url": home, "api_key_env": KEY_ENV, **keys}
    entry = {key: value for key, value in entry.items() if value is not None}
    return Judge(id=1, **asdict(JudgeTable.model_validate(entry).entry()))


def vote_of(judge: Judge) -> ModelRequest:
    prompt, schema = render_ballot(INPUTS, judge)
    return ModelRequest(judge, fit_prompt(prompt, judge, schema), schema, INPUTS, "vote")


def ask(*requests: ModelRequest) -> list[Reply]:
    """The replies to these requests, all under way together, through the real SDK."""

    async def whole() -> list[Reply]:
        try:
            return await asyncio.gather(*(open_provider(one.judge).complete(one) for one in requests))
        finally:
            await close_providers()

    return asyncio.run(whole())


def verdict(reply: Reply, judge: Judge, role: str = "vote") -> int:
    return parse_answer(role, reply.text, INPUTS.document, judge).verdict
