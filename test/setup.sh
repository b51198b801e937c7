#!/bin/sh
# Installs what the tests need and this machine lacks. Programs come from Debian
# (apt-get, as root), the clients' libraries from their own registries into a
# cache folder outside the tree. No service is started. A second run finds
# everything in place and does nothing.
set -eu

cache=${TALLY_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tally-test}
clients=$(cd "$(dirname "$0")/clients" && pwd)
mkdir -p "$cache"

# --- programs ---------------------------------------------------------------

missing=
need() { # program, its Debian package
	command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}
need redis-server redis-server
need redis-cli redis-tools
need gcc "gcc libc6-dev" # the race detector links with it
need python3 python3
need javac default-jdk-headless
need mvn maven
need node nodejs
need npm npm
need awk gawk
# Debian keeps venv apart from python3.
if command -v python3 >/dev/null 2>&1 && ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
	missing="$missing python3-venv"
fi
case "$missing" in *python3*) missing="$missing python3-venv" ;; esac

if [ -n "$missing" ]; then
	echo "setup: installing$missing"
	if ! command -v apt-get >/dev/null 2>&1; then
		echo "setup: no apt-get here; install these (or their equals) by hand, then run make test again:$missing" >&2
		exit 1
	fi
	root=
	if [ "$(id -u)" != 0 ]; then
		root=sudo
		if ! command -v sudo >/dev/null 2>&1; then
			echo "setup: installing needs root; run as root: apt-get install$missing" >&2
			exit 1
		fi
	fi
	# policy-rc.d forbids Debian's packages to start their services, for as
	# long as the installation takes; a policy that is there already stays.
	policy=/usr/sbin/policy-rc.d
	if [ ! -e $policy ]; then
		printf '#!/bin/sh\nexit 101\n' | $root tee $policy >/dev/null
		$root chmod 755 $policy
		trap '$root rm -f $policy' EXIT
	fi
	log=$cache/apt.log
	# shellcheck disable=SC2086 # words on purpose
	if ! { $root env DEBIAN_FRONTEND=noninteractive apt-get update &&
		$root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1; then
		tail -20 "$log" >&2
		echo "setup: apt-get failed; its whole output is in $log" >&2
		exit 1
	fi
fi

# --- libraries --------------------------------------------------------------

# once NAME FILE COMMAND…: runs COMMAND unless it succeeded before with the same
# FILE, which names the versions.
once() {
	stamp=$cache/$1.stamp file=$2
	shift 2
	if [ -f "$stamp" ] && cmp -s "$stamp" "$file"; then return; fi
	echo "setup: $*"
	if ! "$@" >"$cache/install.log" 2>&1; then
		tail -20 "$cache/install.log" >&2
		echo "setup: failed: $*" >&2
		exit 1
	fi
	cp "$file" "$stamp"
}

python_client() {
	python3 -m venv --clear "$cache/python"
	"$cache/python/bin/pip" install --quiet -r "$clients/python/requirements.txt"
}
node_client() {
	mkdir -p "$cache/node"
	cp "$clients/node/package.json" "$cache/node/"
	npm install --prefix "$cache/node" --no-audit --no-fund --silent
}
java_client() {
	mvn --batch-mode --quiet -f "$clients/java/pom.xml" \
		dependency:copy-dependencies -DoutputDirectory="$cache/java" -Dmdep.overWriteReleases=true
}

once python "$clients/python/requirements.txt" python_client
once node "$clients/node/package.json" node_client
once java "$clients/java/pom.xml" java_client
