#!/bin/sh
# The quick suite on each supported Python that is found, each with its packages in .venvs/VERSION: `make test-pythons`.
# VERSIONS="3.12 3.13": on these alone.
cd "$(dirname "$0")/.." || exit 2
for version in ${VERSIONS:-3.11 3.12 3.13 3.14}; do
    program=$(sh tests/find_python.sh "$version")
    if [ -z "$program" ]; then
        result="is not here"
    elif ! make VENV=".venvs/$version" PYTHON="$program" install-dev install-training; then
        result="packages cannot be installed"
        failed=1
    elif ".venvs/$version/bin/python" -m pytest -n 2; then
        result="passed"
    else
        result="failed"
        failed=1
    fi
    summary="${summary:-}Python $version: $result
"
done
printf '%s' "$summary"
exit "${failed:-0}"
