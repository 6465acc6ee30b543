"""Answers that dead workers had received and not yet committed: stored before their pairs are claimed again."""

import asyncio
import logging
from contextlib import ExitStack, suppress
from pathlib import Path

from judges.engine import answers
from judges.engine.pending_answers import orphaned_files
from judges.engine.writer import ResultWriter
from judges.providers import load_provider, open_provider
from judges.records import Body, Judge, ProviderError, Reply

logger = logging.getLogger(__name__)


async def recover_answers(writer: ResultWriter, folder: Path) -> int:
    """Store what is in the files of dead processes; how many answers."""
    count = 0
    with ExitStack() as stack:
        # Another process may be at it, and the loop goes on while this one waits.
        for path in await asyncio.to_thread(stack.enter_context, orphaned_files(folder)):
            found = []
            for line in path.read_bytes().splitlines():
                with suppress(ValueError, TypeError, KeyError):  # the last line, cut off by the kill
                    found.append(answers.load_answer(line))
            ended = [sent.ended(await interpret_body(sent.judge, body))[1] for sent, body in found]
            results = await asyncio.gather(*map(writer.write, ended), return_exceptions=True)
            for error in filter(None, results):  # its campaign is deleted: nobody will pay for it again
                logger.error("an answer of a dead worker cannot be stored: %s", error)
            path.unlink(missing_ok=True)
            count += len(ended)
    return count


async def interpret_body(judge: Judge, body: Body) -> Reply | ProviderError:
    """What the judge's provider makes of a kept body."""
    await asyncio.to_thread(load_provider, judge.provider)
    try:
        return open_provider(judge).meaning(body, judge)
    except ProviderError as error:
        return error
    except Exception as error:
        return unexpected_error(error, body)


def unexpected_error(error: Exception, body: Body | None) -> ProviderError:
    """A surprise in an SDK or in our own reading costs this attempt, and not what was paid for."""
    found = ProviderError(f"{type(error).__name__}: {error}", raw=body.text if body else "")
    if body is not None:
        found.status, found.billed = body.status, True
    return found
