# What build.sh and build-node.sh show of a go build; they source this file. Needs bash.

terminal=false
if [ -t 1 ]; then terminal=true; fi

# status TEXT shows what is under way; on a terminal it replaces the last status.
status() {
	if $terminal; then printf '\r\033[K%s' "$1"; else printf '%s\n' "$1"; fi
}

# note TEXT shows a line that stays.
note() {
	if $terminal; then printf '\r\033[K'; fi
	printf '%s\n' "$1"
}

# follow TOTAL PROGRAMS reads the output of go build -v: the path of each package
# as it is compiled, "go: downloading …" lines, and everything else, which is for
# people.
follow() {
	local total=$1 programs=$2 compiled=0 downloaded=0 last=0 line
	while IFS= read -r line || [ -n "$line" ]; do
		case $line in
		"go: downloading "*) downloaded=$((downloaded + 1)) ;;
		"" | "#"* | *[[:space:]]*)
			note "$line"
			continue
			;;
		*) compiled=$((compiled + 1)) ;;
		esac
		# Elsewhere than on a terminal one line in 15 seconds is enough.
		if $terminal || [ $((SECONDS - last)) -ge 15 ]; then
			last=$SECONDS
			show_progress "$compiled" "$total" "$downloaded" "$programs"
		fi
	done
	if $terminal; then printf '\r\033[K'; fi
}

# show_progress COMPILED TOTAL DOWNLOADED PROGRAMS
show_progress() {
	local text="compiled $1 of $2 packages, ${SECONDS}s"
	if [ "$3" -gt 0 ]; then text="downloaded $3 modules, $text"; fi
	if [ $(($1 + $4)) -ge "$2" ]; then text+=", linking"; fi
	status "$text"
}

# stale PACKAGE... prints how many packages are not in the build cache: 0 when
# that cannot be told; the build will say why.
stale() { go list -deps -f '{{if .Stale}}x{{end}}' "$@" 2>/dev/null | grep -c x || true; }

# kubernetes_ldflags VERSION prints the linker flags that put a version into the
# programs of Kubernetes. Without it they call themselves v0.0.0-master, and
# clients refuse or misjudge them.
kubernetes_ldflags() {
	local version=$1 flags="-s -w" major minor variables
	major=${version#v} major=${major%%.*}
	minor=${version#v*.} minor=${minor%%.*}
	for variables in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
		flags+=" -X $variables.gitVersion=$version"
		flags+=" -X $variables.gitMajor=$major -X $variables.gitMinor=$minor"
	done
	echo "$flags"
}
