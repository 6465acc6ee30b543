"""Progress of a campaign as text for a terminal. Pure: the input is the status document."""

import time
from collections.abc import Iterator
from typing import Any

from judges.costs.accounting import of_status

WIDTH = 28
Status = dict[str, Any]


def count_ended(status: Status) -> int:
    return int(status["labelled"] + status["escalated"] + status["failed"])


class CampaignProgress:
    """Progress since the object was created, with rate and forecast."""

    def __init__(self, status: Status) -> None:
        self.began = time.monotonic()
        self.start_count = count_ended(status)

    def line(self, status: Status) -> str:
        """Return one line: bar, pairs done, rate, cost, forecast."""
        done, pairs = count_ended(status), max(1, status["pairs"])
        seconds = time.monotonic() - self.began
        rate = (done - self.start_count) / seconds if seconds > 0 else 0.0
        bar = "#" * (WIDTH * done // pairs)
        time_left = "?"
        if rate:
            minutes, rest = divmod(int((status["pairs"] - done) / rate), 60)
            hours, minutes = divmod(minutes, 60)
            time_left = f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
        warning = ", a batch is lost: see its status" if unconfirmed_batches(status) else ""
        return (
            f"[{bar:.<{WIDTH}}] {done:,}/{status['pairs']:,} pairs, {rate:,.1f}/s, "
            f"{status['calls']:,} calls, {of_status(status).text}, {time_left} left{warning}"
            + (f"; waits: {status['paused_because']}" if status["paused_because"] else "")
        )


def unconfirmed_batches(status: Status) -> list[dict[str, Any]]:
    """Return the batches of which it is unknown whether the provider began them."""
    return [batch for batch in status.get("batches", []) if batch["state"] == "lost"]


def summary_lines(status: Status, *, whole: bool = False) -> Iterator[str]:
    """Yield lines on the labelled, escalated and failed pairs, and on the calls and their cost.

    `whole`: the status is that of a collection, not of one campaign.
    """
    if status["campaign"] is None and not count_ended(status):
        yield f"{status['collection']}: no campaign yet"
        return
    open_note = f", {status['open']:,} of them wait for people" if status["open"] else ""
    if whole:
        newest = f"newest campaign {status['campaign']} ({status['policy']}): {status['state']}"
        yield (
            f"{status['collection']}: {count_ended(status):,} of {status['pairs']:,} pairs have an outcome{open_note}; "
            f"{newest if status['campaign'] is not None else 'no campaign'}"
        )
    else:
        yield (
            f"campaign {status['campaign']} ({status['policy']}) on {status['collection']}: {status['state']}; "
            f"judges are done with {count_ended(status):,} of {status['pairs']:,} pairs{open_note}"
        )
    labels = status["labels"]
    yield (
        f"  labelled   {status['labelled']:>8,}   relevant {labels.get('1', 0):,}, not relevant {labels.get('0', 0):,}"
    )
    truncated = sum(judge["truncated"] for judge in status.get("judges", []))
    # Truncated answers are of this reason; the judges' notes below name the limit that cut them.
    causes = {"unparsed": f" ({truncated:,} answers truncated at max_output_tokens)"} if truncated else {}
    reasons = ", ".join(
        f"{reason} {count:,}{causes.get(reason, '')}"
        for reason, count in status["escalations"].items()
        if reason != "audit"
    )
    yield f"  to people  {status['escalated']:>8,}   {reasons}".rstrip()
    if status["audits"]:
        yield f"  audits     {status['audits']:>8,}   labelled pairs that two people check, blind"
    yield f"  failed     {status['failed']:>8,}"
    if status["paused_because"]:
        yield f"  {'paused' if status['state'] == 'paused' else 'waits'}: {status['paused_because']}"
    yield (
        f"  calls      {status['calls']:>8,}   {status['calls_failed']:,} failed, {truncated:,} truncated, "
        f"{status['calls_cached']:,} from the cache, cost {of_status(status).text}"
    )
    for line in status.get("judge_notes", []):
        yield f"  {line}"
    for batch in status.get("batches", []):
        yield f"  batch      {batch['calls']:>8,}   {batch['model']}, {batch['state']}: {batch['name']}"
        if batch["problem"]:
            yield f"             {batch['problem']}"
    if unconfirmed_batches(status):
        yield (
            "             look for a lost batch in the provider's own console; if it is not there, "
            f"campaign {status['collection']} send-again sends it again (both are paid for if it is there)"
        )
