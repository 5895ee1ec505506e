# What the build*.sh scripts share, above all what they show of a go build. They set here, their directory, and source this
# file. Needs bash.

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
# people. It shows how far the build is also while no line comes: linking and large
# downloads take a while.
follow() {
	local total=$1 programs=$2 compiled=0 downloaded=0 last=$SECONDS every=10 line begun="" result
	if $terminal; then every=0; fi
	while true; do
		result=0
		IFS= read -r -t 1 line || result=$?
		line=$begun$line begun=""
		if [ "$result" -gt 128 ]; then
			begun=$line # No whole line has come in a second.
		elif [ "$result" -ne 0 ] && [ -z "$line" ]; then
			break
		else
			case $line in
			"go: downloading "*) downloaded=$((downloaded + 1)) ;;
			"" | "#"* | *[[:space:]]*) note "$line" ;;
			*) compiled=$((compiled + 1)) ;;
			esac
		fi
		if [ $((SECONDS - last)) -ge "$every" ]; then
			last=$SECONDS
			show_progress "$compiled" "$total" "$downloaded" "$programs"
		fi
	done
	if $terminal; then printf '\r\033[K'; fi
}

# show_progress COMPILED TOTAL DOWNLOADED PROGRAMS; a TOTAL of 0 is not known yet.
show_progress() {
	local text=
	if [ "$3" -gt 0 ]; then text="downloaded $3 modules, "; fi
	if [ "$2" -gt 0 ]; then
		text+="compiled $1 of $2 packages, "
	elif [ -z "$text" ]; then
		text="reading the list of modules, "
	fi
	text+="${SECONDS}s"
	if [ "$2" -gt 0 ] && [ $(($1 + $4)) -ge "$2" ]; then text+=", linking"; fi
	status "$text"
}

# stale PACKAGE... sets total to how many packages are not in the build cache: 0 when
# that cannot be told; the build will say why. It downloads the modules first, and
# shows how far that is.
stale() {
	local list
	list=$(mktemp)
	go list -deps -f '{{if .Stale}}x{{end}}' "$@" 2>&1 >"$list" | { grep --line-buffered '^go: downloading ' || true; } | follow 0 0 || true
	total=$(grep -c x "$list" || true)
	rm "$list"
}

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

# build MODULE OUTPUT PACKAGE [FLAG...] builds packages of a module, which is named by
# its directory below deploy/local. The module stands outside the workspace: what these
# programs require does not reach the products.
build() {
	local module=$1 output=$2 package=$3 total result=0
	shift 3
	cd "$here/$module"
	GOWORK=off stale "$@" "$package"
	if [ "$total" -gt 20 ]; then note "$module: compiling $total packages"; fi
	GOWORK=off go build -v "$@" -o "$output/" "$package" 2>&1 | follow "$total" 1 || result=$?
	if [ "$result" -ne 0 ]; then
		note "build of $module failed after ${SECONDS}s"
		exit "$result"
	fi
}

# version MODULE PATH prints the version at which a module is pinned.
version() { GOWORK=off go -C "$here/$1" list -m -f '{{.Version}}' "$2"; }
