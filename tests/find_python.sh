# Prints the program of a version of Python, on the path or among pyenv's: `sh tests/find_python.sh 3.12`. Nothing where
# it is not found or does not run.
for program in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python"$1"; do
    if "$program" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$1')" 2>/dev/null; then
        command -v "$program"
        break
    fi
done
