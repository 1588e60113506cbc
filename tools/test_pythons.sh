#!/usr/bin/env bash
# Runs the tests under each supported Python that this machine has, each in an environment of its
# own (.venv-3.11 ...), with the JAX that pip chooses for it. Says which were missing. Fails when
# the tests of one fail, or when no Python was found at all.
set -uo pipefail
cd "$(dirname "$0")/.."

find_python() { # an interpreter of release $1, on the path or among pyenv's
    local candidate
    for candidate in "python$1" "${PYENV_ROOT:-${HOME:-}/.pyenv}"/versions/"$1".*/bin/python; do
        if "$candidate" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$1')" \
            2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

run_tests() {
    local release=$1 python=$2 venv=.venv-$1
    PYTHON=$python tools/make_venv.sh "$venv" -e '.[dev]' || return
    "$venv/bin/python" -c 'import jax, sys; print("Python", sys.version.split()[0], "JAX", jax.__version__)'
    "$venv/bin/python" -m pytest -n 2 -q
}

summary=()
found=0
failed=0
for release in 3.11 3.12 3.13; do
    if ! python=$(find_python "$release"); then
        summary+=("$release  missing on this machine")
        continue
    fi
    found=$((found + 1))
    if run_tests "$release" "$python"; then
        summary+=("$release  passed  ($python)")
    else
        failed=$((failed + 1))
        summary+=("$release  FAILED  ($python)")
    fi
done
printf '%s\n' "" "Python" "${summary[@]}"
if [ "$found" -eq 0 ]; then
    echo "No supported Python was found: nothing was tested." >&2
    exit 1
fi
exit $((failed > 0))
