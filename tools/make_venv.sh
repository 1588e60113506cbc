#!/usr/bin/env bash
# Usage: make_venv.sh DIRECTORY PIP-ARGUMENT...
# Makes the virtual environment DIRECTORY, or reuses it, and runs `pip install PIP-ARGUMENT...`.
# PYTHON names the interpreter; when it is empty, the first supported one on the path is taken.
set -euo pipefail

venv=$1
shift

supported() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null
}

whole() { # the environment is complete, and its interpreter still exists and is supported
    supported "$venv/bin/python" && "$venv/bin/python" -c 'import pip' 2>/dev/null
}

find_python() {
    local name
    if [ -n "${PYTHON:-}" ]; then
        if supported "$PYTHON"; then
            echo "$PYTHON"
            return
        fi
        echo "error: PYTHON=$PYTHON is no Python 3.11, 3.12 or 3.13:" \
            "$("$PYTHON" --version 2>&1 || true)" >&2
        return 1
    fi
    for name in python3 python3.13 python3.12 python3.11; do
        if supported "$name"; then
            echo "$name"
            return
        fi
    done
    echo "error: Headrace needs Python 3.11, 3.12 or 3.13, and none is on the path" \
        "(python3 is: $(python3 --version 2>&1 || true))." >&2
    echo "Install one, or name it: make PYTHON=/path/to/python3.12 ..." >&2
    return 1
}

if ! whole; then
    python=$(find_python)
    echo "Making $venv with $("$python" --version)"
    "$python" -m venv --clear "$venv"
fi
echo "Installing into $venv: $*"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input "$@"
