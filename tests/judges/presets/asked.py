"""Judges at look-alikes, as a judges file makes them, and their votes through the real SDKs."""

import asyncio
from collections.abc import Coroutine
from dataclasses import asdict
from typing import Any

from judges.domain.verdicts import parse_answer
from judges.panels.judge_keys import JudgeTable
from judges.prompts.answering import fit_prompt
from judges.prompts.render import VOTE_SCHEMA, render_ballot, vote_prompt
from judges.providers import close_providers, open_provider
from judges.records import Inputs, Judge, ModelRequest, Prompt, Reply
from tests.modelserver.fixtures import KEY_ENV, LocalModels
from tests.modelserver.presets import LOOK_ALIKES

INPUTS = Inputs("What?", (), "", "A mapping maps. It is mutable.")


def judge_of(models: LocalModels, preset: str, model: str = "yes", alike: str = "", **keys: Any) -> Judge:
    """A judge as a file with these keys makes it, at the look-alike of the preset or a variant of it."""
    look_alike = LOOK_ALIKES[alike or preset]
    own = {key: value for key, value in look_alike.judge.items() if value != ""}
    if "token_command" not in own and preset != "bedrock":
        own["api_key_env"] = KEY_ENV
    home = f"{models.google}/{alike or preset}{look_alike.home}"
    entry = {"name": "j", "provider": preset, "model": model, "base_url": home, **own, **keys}
    entry = {key: value for key, value in entry.items() if value is not None}
    return Judge(id=1, **asdict(JudgeTable.model_validate(entry).entry()))


def vote_of(judge: Judge) -> ModelRequest:
    """Its own ballot, as an engine sends it."""
    prompt, schema = render_ballot(INPUTS, judge)
    return ModelRequest(judge, fit_prompt(prompt, judge, schema), schema, INPUTS, "vote")


def plain_vote(judge: Judge, prompt: Prompt | None = None, inputs: Inputs = INPUTS) -> ModelRequest:
    """A vote in the prompt that is given, whatever the judge's keys say."""
    return ModelRequest(judge, prompt or vote_prompt(inputs), VOTE_SCHEMA, inputs, "vote")


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """What comes of it, in a loop whose providers are closed at its end."""

    async def whole() -> Any:
        try:
            return await work
        finally:
            await close_providers()

    return asyncio.run(whole())


def ask(*requests: ModelRequest) -> list[Reply]:
    """The replies to these requests, all under way together, through the real SDK."""

    async def together() -> list[Reply]:
        return await asyncio.gather(*(open_provider(request.judge).complete(request) for request in requests))

    replies: list[Reply] = run(together())
    return replies


def reply_of(judge: Judge, prompt: Prompt | None = None, inputs: Inputs = INPUTS) -> Reply:
    """To one vote."""
    return ask(plain_vote(judge, prompt, inputs))[0]


def verdict(reply: Reply, judge: Judge, role: str = "vote") -> int:
    return parse_answer(role, reply.text, INPUTS.document, judge).verdict
