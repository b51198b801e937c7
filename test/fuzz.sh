#!/bin/sh
# Runs every fuzz target of the module, one after the other.
# usage: test/fuzz.sh [TIME]   e.g. 1000000x (executions, the default) or 30s
set -eu
cd "$(dirname "$0")/.."
time=${1:-1000000x}

for dir in $(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -r -n1 dirname | sort -u); do
	for target in $(grep -h '^func Fuzz' "$dir"/*_test.go | sed 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/'); do
		echo "== $dir $target $time"
		go test -tags assert -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$dir"
	done
done
