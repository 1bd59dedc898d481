#!/bin/sh
# What `make lint` checks, over the sources that git knows: layout (clang-format), order of layers,
# length of files. Prints every finding; the exit code is 1 if there is one that must go.
bad=0
# tracked files that (still) exist
sources=$(git ls-files '*.c' '*.h' '*.inl' | while read -r f; do [ -f "$f" ] && echo "$f"; done)

clang-format --dry-run -Werror $sources || bad=1

# A file includes its own layer and layers before it in this list.
awk -v order="base spec out robot motion sim task learn plant figure cmd" '
  BEGIN { n = split(order, layer, " "); for (i = 1; i <= n; i++) rank[layer[i]] = i }
  FNR == 1 { split(FILENAME, part, "/"); mine = part[2] }
  /^#include "/ {
    split($2, name, /["\/]/)
    theirs = name[2]
    if (!(theirs in rank)) {
      printf "%s:%d: include of %s: not src/<layer>/<file>\n", FILENAME, FNR, $2; bad = 1
    } else if (mine in rank && rank[theirs] > rank[mine]) {
      printf "%s:%d: layer %s must not include layer %s\n", FILENAME, FNR, mine, theirs; bad = 1
    }
  }
  END { exit bad }
' $(echo "$sources" | grep '^src/') || bad=1

for f in $sources; do
  lines=$(wc -l <"$f")
  if [ "$lines" -gt 1500 ]; then
    echo "$f: $lines lines; at most 1500 are accepted"
    bad=1
  elif [ "$lines" -gt 900 ]; then
    echo "$f: $lines lines; consider splitting (warning)"
  fi
done

for f in $(git ls-files 'tests/*.sh' .ci/run); do
  sh -n "$f" 2>/dev/null || bash -n "$f" || bad=1
done
[ $bad -eq 0 ] && echo "lint: clean"
exit $bad
