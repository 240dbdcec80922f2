#!/usr/bin/env bash
# Writes the answer into the run's summary and one comment of the pull request, which later runs edit.
set -euo pipefail
mark="<!-- crosswind compare -->"
{
  echo "$mark"
  printf 'A is the base, B this pull request, both of\n\n    %s\n\n' "${COMMAND//$'\n'/$'\n    '}"
  cat "$ANSWER"
} >"$RUNNER_TEMP/crosswind-comment.md"
cat "$RUNNER_TEMP/crosswind-comment.md" >>"$GITHUB_STEP_SUMMARY"
if [ -n "${GH_TOKEN:-}" ]; then
  number=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["pull_request"]["number"])' "$GITHUB_EVENT_PATH")
  comments=repos/$GITHUB_REPOSITORY/issues
  # A token of a fork's pull request may not comment: then the summary is all.
  known=$(gh api --paginate "$comments/$number/comments" --jq ".[] | select(.body | startswith(\"$mark\")) | .id" | sed -n 1p) || known=""
  if [ -n "$known" ]; then
    gh api --method PATCH "$comments/comments/$known" --field "body=@$RUNNER_TEMP/crosswind-comment.md" --silent || echo "::notice::no comment: see the summary"
  else
    gh api --method POST "$comments/$number/comments" --field "body=@$RUNNER_TEMP/crosswind-comment.md" --silent || echo "::notice::no comment: see the summary"
  fi
fi
if [ "$OUTCOME" = slower ] && [ "$FAIL_ON_SLOWER" = true ]; then
  echo "::error::this pull request is slower"
  exit 1
fi
