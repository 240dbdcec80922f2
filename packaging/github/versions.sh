#!/usr/bin/env bash
# Checks both versions of a pull request out, beside each other: outputs `base` and `head`, their directories.
set -euo pipefail
field() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["pull_request"][sys.argv[2]]["sha"])' "$GITHUB_EVENT_PATH" "$1"; }
if ! base=$(field base) || ! head=$(field head); then
  echo "::error::crosswind compare is for pull requests: on: pull_request"
  exit 2
fi
for version in base head; do
  sha=${!version}
  git cat-file -e "$sha^{commit}" 2>/dev/null || git fetch --quiet --no-tags --depth=1 origin "$sha"
  git worktree add --quiet --force --detach "$RUNNER_TEMP/crosswind-$version" "$sha"
  echo "$version=$RUNNER_TEMP/crosswind-$version" >>"$GITHUB_OUTPUT"
done
