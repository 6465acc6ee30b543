"""The doctor's checks in their order. A check is skipped if its service does not answer; one that fails reports it."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from django.db import DatabaseError, InterfaceError
from redis.exceptions import RedisError

from config.doctor import machine, services, work
from config.doctor.findings import Finding, Health, first_line, problem

logger = logging.getLogger(__name__)
POSTGRESQL, REDIS, MIGRATIONS = "postgresql", "redis", "migrations"


@dataclass(frozen=True, slots=True)
class Check:
    """A check of the instance. `needs`: names of checks that must have no problem, or this one is not run."""

    name: str
    run: Callable[[], Iterator[Finding]]
    needs: tuple[str, ...] = ()


CHECKS = (
    Check("versions", machine.check_versions),
    Check("folder", machine.check_folder),
    Check("disk", machine.check_disk),
    Check("store", machine.check_store),
    Check("secret key", machine.check_secret_key),
    Check("settings", machine.check_settings),
    Check("static files", machine.check_static_files),
    Check(POSTGRESQL, services.check_postgresql),
    Check(REDIS, services.check_redis),
    Check(MIGRATIONS, services.check_migrations, (POSTGRESQL,)),
    Check("clock", services.check_clock, (POSTGRESQL,)),
    Check("keys", work.check_keys, (POSTGRESQL, MIGRATIONS)),
    Check("accounts", work.check_accounts, (POSTGRESQL, MIGRATIONS)),
    Check("workers", work.check_workers, (POSTGRESQL, MIGRATIONS, REDIS)),
    Check("leases", work.check_leases, (POSTGRESQL, MIGRATIONS)),
    Check("jobs", work.check_jobs, (POSTGRESQL, MIGRATIONS)),
    Check("answers", work.check_pending_answers, ("folder",)),
    Check("mail", machine.check_mail),
)


def examine() -> list[Finding]:
    """Run all checks and return their findings."""
    findings: list[Finding] = []
    failed_checks: set[str] = set()
    for check in CHECKS:
        if missing := [name for name in check.needs if name in failed_checks]:
            findings.append(Finding(check.name, Health.UNKNOWN, f"not looked at: {missing[0]} has a problem"))
            # Checks that need a skipped check are skipped as well.
            failed_checks.add(check.name)
            continue
        check_findings: list[Finding] = []
        try:
            for finding in check.run():
                check_findings.append(finding)
        except (DatabaseError, InterfaceError, RedisError, OSError) as error:
            says = f"it cannot be looked at ({first_line(error)})"
            check_findings.append(problem(check.name, says, "run doctor again in a moment"))
        except Exception as error:
            logger.exception("the check of %s broke", check.name)
            says = f"the check broke ({first_line(error)})"
            check_findings.append(problem(check.name, says, "report it with the lines of the log"))
        findings += check_findings
        if any(finding.health is Health.PROBLEM for finding in check_findings):
            failed_checks.add(check.name)
    return findings
