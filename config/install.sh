#!/bin/sh
# Sets up .venv with the pinned, hashed packages: `sh config/install.sh base|dev`. Quick when nothing has changed.
set -eu
cd "$(dirname "$0")/.."
kind=${1:-base}
supported='import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'

say() { echo "quorum: $*" >&2; }

find_python() {
    for name in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
        if command -v "$name" >/dev/null 2>&1 && "$name" -c "$supported" 2>/dev/null; then
            echo "$name"
            return
        fi
    done
    found=$("${PYTHON:-python3}" --version 2>/dev/null || echo "no ${PYTHON:-python3}")
    say "Python 3.11, 3.12 or 3.13 is needed, and this is $found: install one, or name it with PYTHON=/path/to/python"
    return 1
}

make_venv() {
    rm -rf .venv
    if command -v uv >/dev/null 2>&1 && uv venv --quiet --seed --python "$(command -v "$python")" .venv 2>/dev/null; then
        return
    fi
    "$python" -m venv .venv && return
    rm -rf .venv
    say "$python cannot make virtual environments: install its venv package (python3-venv), or install uv"
    exit 2
}

install_packages() {
    if command -v uv >/dev/null 2>&1 && uv pip install --quiet --python .venv/bin/python --require-hashes "$@"; then
        return
    fi
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes "$@"
}

python=$(find_python) || exit 2
.venv/bin/python -c "$supported" 2>/dev/null || make_venv
say "installing packages ($kind) ..."
case $kind in
    base) install_packages -r requirements.txt ;;
    dev) install_packages -r requirements.txt -r requirements-dev.txt ;;
esac
# Tools that do not start in this folder (pytest, celery, gunicorn) find the project all the same.
.venv/bin/python -c 'import pathlib, sysconfig; pathlib.Path(sysconfig.get_path("purelib"), "quorum.pth").write_text(str(pathlib.Path.cwd()) + "\n")'
touch ".venv/.base"
[ "$kind" = base ] || touch ".venv/.dev"
