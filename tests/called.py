"""Commands called in the test's own process and transaction, for tests that need no second process."""

from io import StringIO

from django.core.management import CommandError, call_command

from tests.conftest import Finished


def call(*args: object) -> Finished:
    """`manage.py <args>`: its exit code and both outputs."""
    out, err, code = StringIO(), StringIO(), 0
    try:
        call_command(*map(str, args), stdout=out, stderr=err)
    except SystemExit as end:
        code = int(end.code or 0)
    except CommandError as error:
        code = error.returncode
        err.write(str(error))
    return Finished(code, out.getvalue(), err.getvalue())
