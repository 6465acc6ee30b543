#!/usr/bin/env python
"""Quorum's command line: starts the instance's services where needed, then runs the command."""

import os
import sys


def ensure_utf8() -> None:
    """Begin again with UTF-8 where the locale knows ASCII alone: names of files and what is said hold any letter."""
    if sys.getfilesystemencoding() == "ascii":
        # `-X utf8` goes before PYTHONUTF8=0; the variable is for programs that this starts.
        arguments = [sys.executable, "-X", "utf8", *sys.orig_argv[1:]]
        os.execve(sys.executable, arguments, {**os.environ, "PYTHONUTF8": "1"})


def main() -> None:
    """Run one management command."""
    if sys.argv[1:2] in (["version"], ["--version"]):
        from config.version import VERSION

        sys.stdout.write(f"Quorum {VERSION}\n")
        return
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    from config.startup import ensure_for_command

    ensure_for_command(sys.argv)
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    ensure_utf8()
    main()
