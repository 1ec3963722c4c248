#!/usr/bin/env bash
# Fails when a crate knows what it must not know (ARCHITECTURE.md, "Invariants").
set -euo pipefail
cd "$(dirname "$0")/.."
failed=0

# Every normal and build dependency of a package, direct or not, one name a line.
tree() { cargo tree --offline -q -p "$1" -e normal,build --prefix none -f '{p}' | awk '{print $1}' | sort -u; }

forbid() { # package, extended regular expression of names
    local found
    found=$(tree "$1" | grep -vx "$1" | grep -Ex "$2" || true)
    if [ -n "$found" ]; then
        echo "forbidden edge: $1 depends on $(echo "$found" | tr '\n' ' ')" >&2
        failed=1
    fi
}

forbid slackline-core 'tokio|tonic|wasmtime|rocksdb|librocksdb-sys|rayon'
for crate in server client kernels data storage sandbox; do
    package=slackline-$crate
    others='server|client|kernels|data|storage|sandbox|testkit|guest'
    forbid "$package" "slackline|slackline-($others)"
    forbid "$package" 'tonic|prost|rustls'
    [ "$crate" = sandbox ] || forbid "$package" 'wasmtime'
    [ "$crate" = storage ] || forbid "$package" 'rocksdb|librocksdb-sys'
done
forbid slackline-control 'slackline|slackline-(server|client|kernels|data|storage|sandbox|wire|testkit|guest)|tokio|tonic|wasmtime|rocksdb|librocksdb-sys'
forbid slackline-wire 'slackline|slackline-.*|wasmtime|rocksdb|librocksdb-sys|openssl-sys|aws-lc-sys|aws-lc-rs'
forbid slackline-testkit 'wasmtime|rocksdb|librocksdb-sys'
forbid slackline-guest 'slackline-.*|slackline'
for manifest in plugins/*/Cargo.toml; do
    name=$(sed -n 's/^name = "\(slackline-plugin-.*\)"/\1/p' "$manifest" | head -n 1)
    forbid "$name" 'slackline|slackline-(core|server|client|kernels|data|storage|sandbox|testkit)|wasmtime|rocksdb'
done
[ "$failed" = 0 ] && echo "edges: no crate knows what it must not know"
exit "$failed"
