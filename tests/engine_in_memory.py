"""The engine without a database: pairs that the real caller asks about, within real limits, and what became of them."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

from django.conf import settings
from redis.asyncio import Redis

from corpus.models import Collection
from corpus.rubric import BY_QUERY
from judges.costs.prices import Price, price_for_judge
from judges.domain import copies
from judges.domain.routing import NoVerdict
from judges.engine import calls, pairs
from judges.engine.budget import Budget
from judges.engine.cache import Cache
from judges.engine.calls import Caller, Cancelled, Tools
from judges.engine.leases import Claimed
from judges.engine.limits import RateLimits
from judges.engine.pending_answers import PendingAnswerLog
from judges.engine.plan import Plan
from judges.engine.rows import AttemptRow, Row
from judges.engine.writer import ResultWriter
from judges.models import Campaign
from judges.prompts import answering
from judges.records import Inputs, Judge

BETWEEN_S = 0.02  # A pair that was put back is asked about again after so long.
PATIENCE_S = 60.0  # After so long a campaign that has not ended waits for something.


@dataclass
class Played:
    """What became of pairs. `rows`: of the calls, as they would be stored."""

    rows: list[Row] = field(default_factory=list)
    states: dict[int, str] = field(default_factory=dict)
    votes: dict[tuple[int, str], str] = field(default_factory=dict)  # Outcomes by pair and judge.
    pause: str = ""  # Why the campaign pauses.
    waits: str = ""  # For what it waits.

    def rows_of(self, judge: str, pair: int = 0) -> list[Row]:
        """The judge's calls, of all pairs or of one."""
        return [row for row in self.rows if row["name"] == judge and pair in (0, row["pair"])]

    def cost(self, judge: str, pair: int = 0) -> float | None:
        """USD of the judge's calls; None: unknown."""
        costs = [row["cost"] for row in self.rows_of(judge, pair)]
        return None if None in costs else sum(costs)


class MemoryWriter:
    """Keeps rows, and answers what the engine asks PostgreSQL."""

    shard = 0

    def __init__(self, folder: Path, played: Played, names: dict[int, str], left: Callable[[], int]) -> None:
        self.spool, self.played, self.names, self.left = PendingAnswerLog(folder), played, names, left
        self.ids = itertools.count(1)

    async def next_id(self) -> int:
        return next(self.ids)

    async def write(self, attempted: AttemptRow) -> None:
        self.played.rows.append({**attempted.row, "name": self.names[attempted.row["judge"]]})

    async def ask(self, question: Callable[[Any], Any]) -> Any:
        return question(self)

    def execute(self, statement: str, values: Any = None) -> Any:
        """Rows of the few statements that are asked."""
        answers = any(row["judge"] == (values or {}).get("judge") and row["status"] == 200 for row in self.played.rows)
        found = (self.left(), answers) if statement == calls.OPEN_PAIRS else (0,)
        return SimpleNamespace(fetchone=lambda: found, fetchall=list, rowcount=1)


class NoBudget:
    """Nothing is bounded."""

    bounded, holder = False, ""

    async def reserve(self, usd: float) -> float:
        return usd

    def give_back(self, usd: float) -> None:
        """Nothing was held."""


class NoCache:
    """Nothing was answered before."""

    async def find(self, key: str) -> None:
        return None


def inputs_of(number: int, document: str = "") -> Inputs:
    """A pair whose texts hold its number."""
    text = document or f"Mapping {number} maps hashable values to objects. It is mutable."
    return Inputs(f"What does mapping number {number} map?", ("Values.",), "", text, document_id=number)


def plan_of(voters: Sequence[Judge], tables: dict[str, Price] | None = None, **more: Any) -> Plan:
    """A campaign in which these vote."""
    versions = answering.prompt_versions(BY_QUERY, voters)
    return Plan(
        campaign=1,
        collection=1,
        row=Campaign(pk=1, collection=Collection(pk=1, order="uncertainty", audit=0.0), policy="ensemble", majority=1),
        rubric=BY_QUERY,
        debaters=(),
        voters=tuple(voters),
        samples=copies.sample_indexes(tuple(voters)),
        prices={judge.id: price_for_judge(judge) for judge in voters},
        limits={},
        prompt_ids={(name, digest): 1 for name, (digest, _) in versions.items()},
        assessors={},
        tables={(judge.provider, judge.base_url): tables or {} for judge in voters},
        **more,
    )


async def play(
    voters: Sequence[Judge],
    asked: Sequence[Inputs],
    folder: Path,
    *,
    first_alone_s: float = 0.0,
    tables: dict[str, Price] | None = None,
    patience_s: float = PATIENCE_S,
) -> Played:
    """Judge the pairs as a worker would, until all have ended, the campaign pauses, or nothing goes on.

    `first_alone_s`: the others begin so much later than the first pair. Who calls it closes the providers.
    """
    played = Played()
    names = {judge.id: judge.name for judge in voters}
    writer = MemoryWriter(folder, played, names, lambda: len(asked) - len(played.states))
    limits = RateLimits(lambda: Redis.from_url(settings.REDIS_URL), f"{settings.PREFIX}:{uuid4().hex}", "memory")
    tools = Tools(
        cast(ResultWriter, writer),
        cast(Cache, NoCache()),
        limits,
        asyncio.Semaphore(512),
        "memory",
        settings.RETRY_SECONDS,
    )

    halted = False

    def refused(why: str) -> None:
        nonlocal halted
        halted = True
        played.pause = played.pause or why

    caller = Caller(tools, plan_of(voters, tables), cast(Budget, NoBudget()), lambda: halted, refused)
    claims: Counter[int] = Counter()

    async def judge(number: int, inputs: Inputs) -> None:
        base = 0
        while not halted:
            claimed = Claimed(number, number, 1, base, number, inputs)
            claims[number] += 1
            try:
                decided = await pairs.judge_pair(caller, claimed)
            except Cancelled:
                base = max((base, *claimed.tries.values()))
                played.waits = claimed.last_error or played.waits
                await asyncio.sleep(BETWEEN_S)
                continue
            played.states[number] = decided.row["state"]
            for place, vote in pairs.votes_of(claimed).items():
                outcome = vote.outcome if isinstance(vote, NoVerdict) else "labelled"
                played.votes[number, voters[place].name] = outcome
            return

    tasks: list[asyncio.Task[None]] = []
    try:
        for number, inputs in enumerate(asked, 1):
            tasks.append(asyncio.create_task(judge(number, inputs)))
            if number == 1 and first_alone_s:
                await asyncio.sleep(first_alone_s)
        ended, late = await asyncio.wait(tasks, timeout=patience_s)
        halted = True
        if paused := [account for account in limits.accounts.values() if late and account.pause_left]:
            played.waits = paused[0].problem
        limits.drop_cancelled()
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        for task in ended:
            task.result()
        return played
    finally:
        await limits.close()
