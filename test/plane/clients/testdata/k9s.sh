# For scenarios of k9s. It runs in a terminal, where the script presses keys and reads the screen (terminal/main.go).
. "$TESTDATA/kubectl.sh"

# k9s_shows VIEW starts k9s with a view: the plural of a resource.
k9s_shows() {
	mkdir -p k9s
	echo 'k9s: {skipLatestRevCheck: true}' >k9s/config.yaml # It does not ask the internet.
	coproc TERMINAL { K9S_CONFIG_DIR=$PWD/k9s terminal k9s --splashless --command "$1"; }
}

# ask COMMAND... gives terminal a command, and prints its answer.
ask() {
	local answer
	echo "$*" >&"${TERMINAL[1]}"
	IFS= read -r answer <&"${TERMINAL[0]}"
	if [ -n "$answer" ]; then echo "$1: $answer"; fi
}

# see REGEXP waits until a line of the screen matches, and prints what matches. miss REGEXP waits until none does.
see() { ask see "$1"; }
miss() { ask miss "$1"; }

# press KEY... presses keys; their names are in terminal/main.go.
press() { ask press "$*"; }

# quit leaves k9s.
quit() {
	press :quit enter
	ask end
}
