"""All checks in their order. One whose service does not answer is not run, and one that breaks says so itself."""

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
    """`needs`: names of checks without a problem, or this one is not run."""

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
    """Run all checks; return what each found."""
    found: list[Finding] = []
    unwell: set[str] = set()
    for check in CHECKS:
        if missing := [name for name in check.needs if name in unwell]:
            found.append(Finding(check.name, Health.UNKNOWN, f"not looked at: {missing[0]} has a problem"))
            # What was not looked at cannot be relied on: checks that need it are not run either.
            unwell.add(check.name)
            continue
        these = list(_run_check(check))
        found += these
        if any(one.health is Health.PROBLEM for one in these):
            unwell.add(check.name)
    return found


def _run_check(check: Check) -> Iterator[Finding]:
    try:
        yield from check.run()
    except (DatabaseError, InterfaceError, RedisError, OSError) as error:
        yield problem(check.name, f"it cannot be looked at ({first_line(error)})", "run doctor again in a moment")
    except Exception as error:
        logger.exception("the check of %s broke", check.name)
        yield problem(check.name, f"the check broke ({first_line(error)})", "report it with the lines of the log")
