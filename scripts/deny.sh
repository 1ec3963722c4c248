#!/usr/bin/env bash
# Licences, sources and duplicate bans of every dependency; advisories where a copy of the database is at hand.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PATH:${XDG_CACHE_HOME:-$HOME/.cache}/slackline/tools/bin"
# cargo-deny reads the dependencies of every platform; a build has fetched only this one's.
cargo fetch --locked --quiet
cargo deny --offline --log-level error check licenses bans sources
if ls "${CARGO_HOME:-$HOME/.cargo}"/advisory-db*/ >/dev/null 2>&1; then
    cargo deny --offline check advisories
else
    echo "advisories: skipped, no copy of the advisory database is on this machine ('cargo deny fetch' gets one)"
fi
