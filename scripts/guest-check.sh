#!/bin/sh
# Builds the template to a component as a user would, outside the repository, and checks its imports and exports.
#
#   scripts/guest-check.sh SLACKLINE
#
# SLACKLINE is the binary. Skipped, with the reason, where there is no guest toolchain.
set -eu

binary=$(realpath "${1:?usage: guest-check.sh SLACKLINE}")
here=$(dirname "$(realpath "$0")")
if ! "$here/guest-toolchain.sh" --no-install; then
    echo "guest-check: skipped, no guest toolchain"
    exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
unset CARGO_TARGET_DIR
"$binary" plugin new checked
"$binary" plugin test checked
"$binary" plugin build checked --release
"$binary" plugin inspect checked/target/component/checked.wasm | tee inspected
for name in tables input run telemetry about update; do
    grep -q "slackline:plugin/$name@" inspected || { echo "guest-check: the component lacks $name" >&2; exit 1; }
done
if grep -q "wasi:" inspected; then
    echo "guest-check: the component imports WASI" >&2
    exit 1
fi
echo "guest-check: passed"
