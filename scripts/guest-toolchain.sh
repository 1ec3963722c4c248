#!/bin/sh
# Finds or prepares what compiles guests: a Rust toolchain with a standard library for wasm32-unknown-unknown.
#
#   guest-toolchain.sh [--no-install] [--print]
#
# Taken, in this order:
#   1. the rustc on PATH, when rustup has given it the target;
#   2. the sysroot that an earlier run of this script left in the cache;
#   3. Debian's rustc-web: its compiler has the target but no standard library for it, so the library is built from
#      Debian's sources once (about a minute) and kept in ${XDG_CACHE_HOME:-$HOME/.cache}/slackline/sysroot-VERSION.
# With root, missing Debian packages are installed, unless --no-install is given. Without, it says which are missing.
#
# With --print, standard output gives the result to programs, one KEY=VALUE a line: RUSTC, CARGO, and, except for rustup,
# SYSROOT and LINKER. What people should know goes to standard error; when nothing is missing, nothing is said. Safe to
# interrupt and to run twice at once: a sysroot is built aside and renamed.
set -eu

target=wasm32-unknown-unknown
packages="rustc-web cargo-web rust-web-src lld-19"
rustc=/usr/bin/rustc
cargo=/usr/bin/cargo
linker=wasm-ld-19
install=yes
print=no
for argument in "$@"; do
    case $argument in
        --no-install) install=no ;;
        --print) print=yes ;;
        *) echo "guest-toolchain: unknown argument $argument" >&2; exit 2 ;;
    esac
done

say() {
    echo "guest-toolchain: $*" >&2
}

# KEY=VALUE …
result() {
    [ "$print" = no ] || printf '%s\n' "$@"
    exit 0
}

has_std() {
    for library in "$1"/libstd-*.rlib; do
        [ -e "$library" ] && return 0
    done
    return 1
}

# 1. rustup's target.
if command -v rustc >/dev/null 2>&1 && command -v cargo >/dev/null 2>&1; then
    libraries=$(rustc --print target-libdir --target "$target" 2>/dev/null || true)
    if [ -n "$libraries" ] && has_std "$libraries"; then
        result "RUSTC=$(command -v rustc)" "CARGO=$(command -v cargo)"
    fi
fi

# 3a. Debian's packages.
missing=""
source_of() {
    version=$("$rustc" --version 2>/dev/null | cut -d' ' -f2)
    echo "/usr/src/rustc-$version/library"
}
# Guests name this version of the language in their manifests.
need=1.95
new_enough() {
    have=$("$1" --version 2>/dev/null | cut -d' ' -f2)
    [ -n "$have" ] && [ "$(printf '%s\n%s\n' "$need" "$have" | sort -V | head -n 1)" = "$need" ]
}
{ new_enough "$rustc" && "$rustc" --print target-list 2>/dev/null | grep -qx "$target"; } || missing="$missing rustc-web"
new_enough "$cargo" || missing="$missing cargo-web"
[ -d "$(source_of)/std" ] || missing="$missing rust-web-src"
command -v "$linker" >/dev/null 2>&1 || missing="$missing lld-19"
if [ -n "$missing" ]; then
    if [ "$install" = yes ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        say "installing$missing"
        # The lists first: old ones name old compilers.
        apt-get update -qq >&2 && apt-get install -y --no-install-recommends $packages >&2
        new_enough "$rustc" ||
            { echo "guest-toolchain: Debian's rustc-web is older than $need; try: rustup target add $target" >&2; exit 1; }
    else
        echo "guest-toolchain: no compiler for $target. Either of these provides one:" >&2
        echo "    rustup target add $target" >&2
        echo "    sudo apt-get install -y --no-install-recommends $packages    # Debian 12 or later" >&2
        exit 1
    fi
fi

# 2. The sysroot in the cache; its name holds the compiler's commit too, since libraries fit one compiler only. `recipe`
# counts the ways in which this script has built them, so that an older one's are not taken for its own.
recipe=3
version=$("$rustc" -vV | sed -n 's/^release: //p')-$("$rustc" -vV | sed -n 's/^commit-hash: \(.........\).*/\1/p')
cache=${XDG_CACHE_HOME:-$HOME/.cache}/slackline
sysroot=$cache/sysroot-$version-$recipe
libraries=$sysroot/lib/rustlib/$target/lib

# 3b. The standard library.
if ! has_std "$libraries"; then
    say "building the standard library for $target, once"
    mkdir -p "$cache"
    aside=$(mktemp -d "$cache/sysroot.XXXXXX")
    trap 'rm -rf "$aside"' EXIT
    trap 'exit 130' INT TERM HUP
    mkdir -p "$aside/crate/src" "$aside/sysroot/lib/rustlib/$target/lib"
    printf '[package]\nname = "nothing"\nversion = "0.0.0"\nedition = "2021"\n[workspace]\n[profile.release]\nopt-level = 3\n' \
        >"$aside/crate/Cargo.toml"
    echo '#![no_std]' >"$aside/crate/src/lib.rs"
    # RUSTC_BOOTSTRAP opens -Zbuild-std on a stable compiler; the libraries that come out serve stable builds. Debian
    # lays its sources where its compiler looks for them. Bitcode stays in, so that guests may use link-time optimisation.
    (
        cd "$aside/crate"
        env -u RUSTC_WRAPPER -u CARGO_BUILD_RUSTC_WRAPPER -u CARGO_ENCODED_RUSTFLAGS -u RUSTUP_TOOLCHAIN \
            CARGO_TARGET_DIR="$aside/target" CARGO_INCREMENTAL=0 RUSTC="$rustc" RUSTC_BOOTSTRAP=1 \
            RUSTFLAGS="-Clinker=$linker -Ctarget-feature=+simd128,+bulk-memory -Cembed-bitcode=yes" \
            "$cargo" build --quiet --release --target "$target" -Zbuild-std=std,panic_abort >&2
    )
    # An .rlib holds its .rmeta, so the libraries alone will do.
    for file in "$aside/target/$target/release/deps"/lib*.rlib; do
        case ${file##*/} in
            libnothing-*) ;;
            *) cp "$file" "$aside/sysroot/lib/rustlib/$target/lib/" ;;
        esac
    done
    has_std "$aside/sysroot/lib/rustlib/$target/lib" ||
        { echo "guest-toolchain: the build left no standard library" >&2; exit 1; }
    # Another run may have been quicker: then its sysroot is as good, and this one goes.
    mv -T "$aside/sysroot" "$sysroot" 2>/dev/null || has_std "$libraries" ||
        { echo "guest-toolchain: cannot write $sysroot" >&2; exit 1; }
    say "standard library in $sysroot"
fi
result "RUSTC=$rustc" "CARGO=$cargo" "SYSROOT=$sysroot" "LINKER=$linker"
