package main

import (
	"os/exec"
	"strings"
	"testing"

	"jobpolicy.dev/deploy/local/must"
)

func TestSession(t *testing.T) {
	s, err := begin(exec.Command("sh", "-c", `printf 'name?\n'; read name; printf '\033[2J\033[Hhello %s\n' "$name"; read more; exit 3`))
	must.Succeed(t, err)
	defer s.kill()
	for _, step := range []struct{ command, argument, answer, err string }{
		{"see", `^[a-z]+\?$`, "name?", ""},
		{"press", "Ann enter", "", ""},
		{"see", "hello .*", "hello Ann", ""},
		{"miss", "name", "", ""},
		{"jump", "", "", "expected press, see, miss or end"},
		{"see", "(", "", "missing closing )"},
		{"press", "enter", "", ""},
		{"end", "", "3", ""},
		{"see", "never", "", "the program has ended"},
	} {
		answer, err := s.do(step.command, step.argument)
		if answer != step.answer || (err != nil) != (step.err != "") || err != nil && !strings.Contains(err.Error(), step.err) {
			t.Fatalf("%s %s: %q and error %v, want %q and error %q", step.command, step.argument, answer, err, step.answer, step.err)
		}
	}
}
