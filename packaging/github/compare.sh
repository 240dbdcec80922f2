#!/usr/bin/env bash
# Builds both versions and compares them: outputs `answer`, a file in Markdown, and `outcome`.
set -euo pipefail
cd "$RUNNER_TEMP"
for version in base head; do
  directory=$BASE
  [ $version = base ] || directory=$HEAD
  (cd "$directory" && eval "$BUILD") # an empty BUILD does nothing
  printf '#!/usr/bin/env bash\ncd %q || exit 1\n%s\n' "$directory" "$COMMAND" >"run-$version"
  chmod +x "run-$version"
done
status=0
crosswind compare ./run-base ./run-head --margin "$MARGIN" --by "$BY" --seconds "$SECONDS_LIMIT" --markdown \
  --out crosswind-comparison.json --force >crosswind-answer.md || status=$?
case $status in
0 | 3 | 4) ;; # equivalent or faster, not settled, slower
*)
  echo "::error::crosswind compare failed with status $status"
  exit "$status"
  ;;
esac
outcome=$(python3 -c 'import json; print(json.load(open("crosswind-comparison.json"))["result"]["outcome"])')
{
  echo "answer=$RUNNER_TEMP/crosswind-answer.md"
  echo "outcome=$outcome"
} >>"$GITHUB_OUTPUT"
