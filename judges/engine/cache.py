"""Cache of model answers: a call equal to an earlier one gets that call's answer instead of being sent again.

Of several answers to equal calls the newest that was sent counts, since a campaign may ask for fresh
answers. The newest is that of the newest campaign: each process draws its ids ahead, so their order
is not the order of time.
"""

import asyncio
import json
from functools import lru_cache
from hashlib import sha256
from typing import Any

from psycopg import Connection
from psycopg.rows import dict_row

from judges.engine.rows import AttemptRow
from judges.engine.writer import ResultWriter
from judges.records import Judge, Prompt

SOME = 8  # Calls that continue in one pass of the loop: all calls of a claim at once would delay arriving answers.

FIND = """
SELECT DISTINCT ON (a.cache_key) a.cache_key, a.verdict, a.score, a.probabilities, a.reason, a.quotes,
       a.finish_reason AS finish, a.status, a.reasoning, a.answered_by, b.messages, b.raw
FROM judges_attempt a JOIN judges_attemptbody b ON b.campaign_id = a.campaign_id AND b.attempt_id = a.id
WHERE a.cache_key = ANY(%s) AND a.outcome = 'labelled'
ORDER BY a.cache_key, a.cached, a.campaign_id DESC, a.id DESC
"""

# The same for calls of retrieval runs; vectors are looked up by their texts instead (benchmark.runs.vectors).
FIND_CALLS = """
SELECT DISTINCT ON (cache_key) cache_key, NULL AS verdict, NULL AS score, NULL AS probabilities, text AS reason,
       '[]'::jsonb AS quotes, finish_reason AS finish, status, '' AS reasoning, answered_by, messages,
       raw
FROM judges_retrievalcall WHERE cache_key = ANY(%s) AND outcome = 'labelled' AND role <> 'embed'
ORDER BY cache_key, cached, campaign_id DESC, id DESC
"""


def make_cache_key(judge: Judge, prompt: Prompt, sample: int, collection: int) -> str:
    """Return the sha256 of provider, base URL, model, parameters, prompt version, rendered messages and sample."""
    # The sample counts equal judges before this one on the panel: another order of the panel finds
    # its votes again. What a call is said to cost changes no answer. The order of a dictionary's
    # keys must not change the hash, hence sort_keys.
    answer_parameters = {key: value for key, value in judge.parameters.items() if key != "call_price"}
    parameters = json.dumps(answer_parameters, sort_keys=True)
    hashed = _judge_part(judge.provider, judge.base_url, judge.model, parameters).copy()
    # The judge's half of the hash is the same for all of its calls: it is kept, and copied here.
    # Offline judges also read the collection's index.
    extra = collection if judge.provider == "offline" else 0
    hashed.update(f"{prompt.sha256}\0{sample}\0{extra}\0{len(prompt.system)}\0{prompt.system}{prompt.user}".encode())
    return str(hashed.hexdigest())


@lru_cache(maxsize=256)
def _judge_part(*parts: str) -> Any:
    return sha256(json.dumps(parts).encode())


class Cache:
    """Look-up of earlier answers, in one statement for all calls that wait at the same time."""

    def __init__(self, writer: ResultWriter, statement: str = FIND) -> None:
        self.writer = writer
        self.statement = statement
        self.waiting: dict[str, asyncio.Future[AttemptRow | None]] = {}
        self.task: asyncio.Task[None] | None = None

    async def find(self, cache_key: str) -> AttemptRow | None:
        # Two calls with one key at the same time wait for one look-up.
        if cache_key not in self.waiting:
            self.waiting[cache_key] = asyncio.get_running_loop().create_future()
            if len(self.waiting) == 1:
                self.task = asyncio.create_task(self._look())
        # Shielded: the look-up serves other calls, so the end of one waiter must not cancel it.
        return await asyncio.shield(self.waiting[cache_key])

    async def _look(self) -> None:
        # One pass of the loop collects the keys of all calls that begin together.
        await asyncio.sleep(0)
        lookups, self.waiting = self.waiting, {}

        def find(connection: Connection[Any]) -> dict[str, AttemptRow]:
            answers = {}
            for row in connection.cursor(row_factory=dict_row).execute(self.statement, [list(lookups)]):
                cache_key, messages, raw = (row.pop(name) for name in ("cache_key", "messages", "raw"))
                row |= {"outcome": "labelled", "counts": True, "cached": True}
                answers[cache_key] = AttemptRow(row, bytes(messages), bytes(raw))
            return answers

        try:
            earlier_answers = await self.writer.ask(find)
        except Exception as error:
            for future in lookups.values():
                future.set_exception(error)
            return
        for number, (cache_key, future) in enumerate(lookups.items()):
            future.set_result(earlier_answers.get(cache_key))
            if number % SOME == SOME - 1:
                await asyncio.sleep(0)
