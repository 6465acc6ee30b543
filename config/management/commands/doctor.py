"""`doctor`: check an instance for common problems, with a remedy for each."""

from dataclasses import asdict
from typing import Any

from config.doctor.checks import examine
from config.doctor.findings import Health
from corpus.commands import QuorumCommand
from corpus.errors import Incomplete


class ProblemsFound(Incomplete):
    """The doctor has found problems in this instance."""

    exit_code = 1


class Command(QuorumCommand):
    """The command that prints a line per finding, with a remedy, without changing anything."""

    help = (
        "Check versions, services, folders, keys, clocks, workers, leases, jobs and mail, and say in one line each what"
        " to do about what is wrong. Changes nothing. Exit code 1 when something is wrong."
    )

    def run(self, **options: Any) -> object:
        findings = examine()
        for finding in findings:
            self.say(finding.line())
        problems = [finding for finding in findings if finding.health is Health.PROBLEM]
        document = {"well": not problems, "findings": [asdict(finding) for finding in findings]}
        if problems:
            checks = ", ".join(dict.fromkeys(finding.check for finding in problems))
            raise ProblemsFound(f"{len(problems)} problems: {checks}", document)
        self.say("No problem was found.")
        return document
