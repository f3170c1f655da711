# Sourced by scripts/run and scripts/test: makes a Python environment from a lock file.
# Needs bash 3.2 or newer, so that it works with what macOS ships.

say() { printf '%s\n' "$*" >&2; }

fail() {
    say "$1"
    exit 1
}

# Prints the real path of the first interpreter that is new enough and can make an environment.
# HERMES_PYTHON names one and is then the only candidate.
choose_python() {
    local check='import sys, venv, ensurepip
sys.exit(1) if sys.version_info < (3, 11) else print(sys.executable)'
    local candidate found without_venv=""
    local candidates=(python3.13 python3.12 python3.11 python3 python3.14)
    [[ -n ${HERMES_PYTHON:-} ]] && candidates=("$HERMES_PYTHON")
    for candidate in "${candidates[@]}"; do
        if found=$("$candidate" -c "$check" 2>/dev/null) && [[ -n $found ]]; then
            printf '%s\n' "$found"
            return 0
        fi
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            without_venv=$candidate
        fi
    done
    if [[ -n $without_venv ]]; then
        say "$without_venv has no venv module. Install it (Debian and Ubuntu: apt install python3-venv), then run this again."
    elif [[ -n ${HERMES_PYTHON:-} ]]; then
        say "HERMES_PYTHON=$HERMES_PYTHON is no Python 3.11 or newer. Unset it, or name another interpreter."
    else
        say "Hermes needs Python 3.11 or newer and found none (looked for: ${candidates[*]}). Install one, or name it with HERMES_PYTHON=/path/to/python3."
    fi
    return 1
}

fingerprint() { # what the environment depends on; a change of any of it makes it anew
    printf '%s\n' "$PWD"
    cksum pyproject.toml "$@"
}

# environment_is_current DIR LOCK...
environment_is_current() {
    local directory=$1
    shift
    [[ -f $directory/.hermes-stamp && $(<"$directory/.hermes-stamp") == "$(fingerprint "$@")" ]] &&
        "$directory/bin/python" -c '' 2>/dev/null
}

install_locked() { # install_locked DIR LOCK: prints pip's words only where it fails
    local directory=$1 lock=$2
    if ! "$directory/bin/python" -m pip install --no-input --disable-pip-version-check --no-compile \
        --require-hashes --no-deps -r "$lock" >"$directory/install.log" 2>&1; then
        tail -n 15 "$directory/install.log" >&2
        fail "installing $lock failed (whole log: $directory/install.log). Check the network and pip's configuration, then run this again: it goes on from where it is."
    fi
}

# make_environment DIR PURPOSE LOCK...: nothing to do if it fits the locks already.
make_environment() {
    local directory=$1 purpose=$2 python lock started=$SECONDS
    shift 2
    environment_is_current "$directory" "$@" && return 0
    python=$(choose_python) || exit 1
    say "$purpose: installing $(cat "$@" | grep -c '==') locked packages into $directory (about half a minute) ..."
    if ! "$directory/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        "$python" -m venv --clear "$directory" || fail "could not make $directory with $python"
    fi
    rm -f "$directory/.hermes-stamp"
    for lock in "$@"; do
        install_locked "$directory" "$lock"
    done
    say "$purpose: compiling and linking ..."
    "$directory/bin/python" -m pip install --no-input --disable-pip-version-check --quiet --no-deps \
        --no-build-isolation --editable . >>"$directory/install.log" 2>&1 ||
        { tail -n 15 "$directory/install.log" >&2; fail "installing the project itself failed (whole log: $directory/install.log)"; }
    "$directory/bin/python" -m compileall -q -j 0 "$directory/lib" hermes >/dev/null 2>&1 || true
    fingerprint "$@" >"$directory/.hermes-stamp"
    say "$purpose: done in $((SECONDS - started)) s"
}

# Two starts at once must not write one environment together; without flock (macOS) they may.
with_environment_lock() {
    if command -v flock >/dev/null; then
        exec 9>"$PWD/.venv.lock"
        flock 9
    fi
    "$@"
    exec 9>&-
}
