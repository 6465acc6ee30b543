#!/usr/bin/env python
"""Quorum's command line: starts the instance's services where needed, then runs the command."""

import os
import sys


def main() -> None:
    """Run one management command."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    from config.startup import ensure_for_command

    ensure_for_command(sys.argv)
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
