package guide

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jobpolicy.dev/deploy/local/must"
)

const examplePage = `# A page

Text with ` + "`code`" + `.

` + "```sh" + `
echo one
` + "```" + `

It prints this:

` + "```text" + `
one
` + "```" + `

## Lists

1. First:

   ` + "```sh" + `
   if true; then
     echo two
   fi
   ` + "```" + `

` + "```yaml" + `
kind: Job
` + "```" + `
`

func TestReadFindsCommandsAndTheirOutput(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	must.Succeed(t, os.WriteFile(path, []byte(examplePage), 0o644))
	got, err := Read(path)
	must.Succeed(t, err)
	want := []Step{
		{Heading: "A page", Line: 6, Command: "echo one", Prints: "one"},
		{Heading: "Lists", Line: 20, Command: "if true; then\n  echo two\nfi"},
	}
	must.Equal(t, "steps", want, got)
}

func TestReadRefusesBrokenPages(t *testing.T) {
	cases := map[string]struct{ page, want string }{
		"a block without an end":            {"a\n```sh\necho", "2: the block is never closed"},
		"output without a command":          {"```text\none\n```", "1: the text block follows no command"},
		"output of a command under another": {"```sh\ntrue\n```\n# Next\n```text\none\n```", "5: the text block follows no command"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := parse(tc.page)
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("error %v, want %q…", err, tc.want)
			}
		})
	}
}

func TestMatch(t *testing.T) {
	cases := map[string]struct {
		want, got string
		matches   bool
	}{
		"the same":                             {"a b\nc", "a b\nc\n", true},
		"columns of another width":             {"NAME AGE", "NAME      AGE", true},
		"an ellipsis in a line":                {"pod/… ran", "pod/x-1 ran", true},
		"lines left out":                       {"a\n…\nd", "a\nb\nc\nd", true},
		"no lines left out":                    {"a\n…\nb", "a\nb", true},
		"the end left out":                     {"a\n…", "a\nb", true},
		"the beginning left out":               {"…\nb", "a\nb", true},
		"signs of regular expressions":         {"a.b (c)", "a.b (c)", true},
		"a dot is only a dot":                  {"a.b", "axb", false},
		"another line":                         {"a", "b", false},
		"a line too many at the end":           {"a", "a\nb", false},
		"a line too many at the beginning":     {"b", "a\nb", false},
		"a missing line":                       {"a\nb", "a", false},
		"a missing line after lines left out":  {"a\n…\nz", "a\nb", false},
		"part of a line":                       {"a", "a b", false},
		"lines in another order":               {"a\nb", "b\na", false},
		"nothing printed, something expected":  {"a", "", false},
		"only what is left out, and no output": {"…", "", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := Match(tc.want, tc.got); (err == nil) != tc.matches {
				t.Errorf("Match = %v, want a match: %t", err, tc.matches)
			}
		})
	}
}

func TestRun(t *testing.T) {
	shell := Shell{Dir: t.TempDir(), Env: append(os.Environ(), "WORD=hello")}
	cases := map[string]struct {
		step    Step
		wantErr string
	}{
		"what is printed on either output counts":  {step: Step{Command: "echo $WORD; echo there >&2", Prints: "hello\nthere"}},
		"a page that does not say what is printed": {step: Step{Command: "echo $WORD"}},
		"a command that fails":                     {step: Step{Command: "echo why; false; echo not reached"}, wantErr: "exit status 1; it printed:\nwhy\n"},
		"a pipe that fails in its middle":          {step: Step{Command: "false | true"}, wantErr: "exit status 1"},
		"a variable that is not set":               {step: Step{Command: "echo $NOBODY"}, wantErr: "exit status 1"},
		"other output":                             {step: Step{Command: "echo $WORD", Prints: "bye"}, wantErr: `the page expects the line "bye"`},
		"a process that stays behind":              {step: Step{Command: "sleep 60 & echo done", Prints: "done"}},
		"a job in the background":                  {step: Step{Command: "sleep 60 &\nkill %1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := shell.Run(ctx, tc.step)
			if tc.wantErr == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), tc.wantErr) {
				t.Errorf("error %v, want %q…", err, tc.wantErr)
			}
		})
	}
}

func TestNothingOutlivesACommand(t *testing.T) {
	dir := t.TempDir()
	_, err := Shell{Dir: dir}.Run(t.Context(), Step{Command: "sleep 600 &\necho $! > pid"})
	must.Succeed(t, err)
	waitForEnd(t, filepath.Join(dir, "pid"))
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dir := t.TempDir()
	pid := filepath.Join(dir, "pid")
	go func() {
		for ctx.Err() == nil {
			if data, _ := os.ReadFile(pid); len(data) > 0 {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	_, err := Shell{Dir: dir}.Run(ctx, Step{Command: "sleep 600 &\necho $! > pid\nwait"})
	if !errors.Is(errors.Unwrap(err), context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	waitForEnd(t, pid)
}

// waitForEnd waits until the process whose id is in a file is gone, or dead and
// not yet waited for by the machine's first process.
func waitForEnd(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	must.Succeed(t, err)
	id := strings.TrimSpace(string(data))
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + id + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
	}
	t.Errorf("process %s still runs", id)
}
