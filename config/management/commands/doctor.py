"""`doctor`: look at all that support would ask for, and say what to do about faults."""

from dataclasses import asdict
from typing import Any

from config.doctor.checks import examine
from config.doctor.findings import Health
from corpus.commands import QuorumCommand
from corpus.errors import Incomplete


class Unwell(Incomplete):
    """Something is wrong with this instance."""

    exit_code = 1


class Command(QuorumCommand):
    """Prints a line a thing, with a remedy; changes nothing. Exit 1 if something is wrong."""

    help = (
        "Check versions, services, folders, keys, clocks, workers, leases, jobs and mail, and say in one line each what"
        " to do about what is wrong. Changes nothing. Exit code 1 when something is wrong."
    )

    def run(self, **options: Any) -> object:
        found = examine()
        for one in found:
            self.say(one.line())
        wrong = [one for one in found if one.health is Health.PROBLEM]
        document = {"well": not wrong, "findings": [asdict(one) for one in found]}
        if wrong:
            checks = ", ".join(dict.fromkeys(one.check for one in wrong))
            raise Unwell(f"{len(wrong)} problems: {checks}", document)
        self.say("No problem was found.")
        return document
