#!/usr/bin/env bash
# Installs what building Slackline needs and the machine lacks; quick and quiet when nothing is missing.
#   scripts/setup.sh          compilers and the guest toolchain
#   scripts/setup.sh --ci     also the licence checker
set -euo pipefail
cd "$(dirname "$0")/.."

need_cargo="1.95"
say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

command -v cargo >/dev/null || fail "cargo is missing: install Rust $need_cargo or newer with rustup"
have=$(cargo --version | awk '{print $2}')
[ "$(printf '%s\n%s\n' "$need_cargo" "$have" | sort -V | head -n 1)" = "$need_cargo" ] ||
    fail "cargo $have is too old: run 'rustup update' to get $need_cargo or newer"

packages=()
command -v c++ >/dev/null || packages+=(g++)
command -v cc >/dev/null || packages+=(gcc)
command -v make >/dev/null || packages+=(make)
# RocksDB's bindings are generated at build time. Only these names serve: libclang-cpp is another library.
have_libclang() {
    [ -n "${LIBCLANG_PATH:-}" ] ||
        compgen -G '/usr/lib/*/libclang.so*' || compgen -G '/usr/lib/*/libclang-[0-9]*.so*' ||
        compgen -G '/usr/lib/llvm-*/lib/libclang.so*' || compgen -G '/usr/lib/llvm-*/lib/libclang-[0-9]*.so*' ||
        compgen -G '/usr/lib64/libclang.so*' || compgen -G '/usr/lib64/llvm*/lib/libclang.so*'
}
have_libclang >/dev/null || packages+=(libclang-dev)
if [ "${#packages[@]}" -gt 0 ]; then
    install=(apt-get install -y --no-install-recommends "${packages[@]}")
    if ! command -v apt-get >/dev/null; then
        fail "missing: ${packages[*]} (Debian's names); install them with your system's package manager"
    elif [ "$(id -u)" = 0 ]; then
        say "installing ${packages[*]}"
        apt-get update -qq && "${install[@]}" >/dev/null
    elif sudo -n true 2>/dev/null; then
        say "installing ${packages[*]}"
        sudo apt-get update -qq && sudo "${install[@]}" >/dev/null
    else
        fail "missing: ${packages[*]}; run: sudo ${install[*]}"
    fi
fi

scripts/guest-toolchain.sh

if [ "${1:-}" = --ci ]; then
    tools=${XDG_CACHE_HOME:-$HOME/.cache}/slackline/tools
    if ! command -v cargo-deny >/dev/null && [ ! -x "$tools/bin/cargo-deny" ]; then
        say "building cargo-deny (a few minutes, once)"
        CARGO_TARGET_DIR=$tools/build cargo install --quiet --locked --root "$tools" cargo-deny --version 0.20.2
        rm -rf "$tools/build"
    fi
fi
