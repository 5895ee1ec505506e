package hostnode

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/deploy/local/must"
)

// patience bounds how long a test waits for something that takes milliseconds on an idle machine.
const patience = 30 * time.Second

func newTestLauncher(t *testing.T) *launcher {
	t.Helper()
	l := newLauncher()
	t.Cleanup(l.close)
	return l
}

func receive[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("no %s in %s", what, patience)
		panic("unreachable")
	}
}

// eventually waits until ok reports true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in %s: %s", patience, what)
		}
	}
}

// sh starts a shell script. It returns the process, the channel that reports its end, and
// the path of its log.
func sh(t *testing.T, script string) (*process, <-chan ending, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "0.log")
	log, err := createLog(path)
	must.Succeed(t, err)
	ends := make(chan ending, 1)
	c := command{path: "/bin/sh", argv: []string{"sh", "-c", script}, env: []string{"PATH=" + defaultPath}, dir: t.TempDir()}
	p, err := newTestLauncher(t).run(c, log, func(e ending) { ends <- e })
	must.Succeed(t, err)
	return p, ends, path
}

func readAll(t *testing.T, path string) string {
	t.Helper()
	var b bytes.Buffer
	must.Succeed(t, readLog(t.Context(), path, nil, &corev1.PodLogOptions{}, &b))
	return b.String()
}

// waitForLog returns when the log has at least one whole line.
func waitForLog(t *testing.T, path string) {
	t.Helper()
	eventually(t, "a line in "+path, func() bool { return strings.Contains(readAll(t, path), "\n") })
}

func TestExitCodesAndSignals(t *testing.T) {
	cases := map[string]struct {
		script string
		want   ending
	}{
		"success":                  {"exit 0", ending{code: 0}},
		"failure":                  {"exit 42", ending{code: 42}},
		"the largest code":         {"exit 255", ending{code: 255}},
		"killed":                   {"kill -KILL $$", ending{code: 137, signal: 9}},
		"terminated":               {"kill -TERM $$", ending{code: 143, signal: 15}},
		"code above 128 by itself": {"exit 143", ending{code: 143}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, ends, _ := sh(t, tc.script)
			got := receive(t, ends, "end")
			if got.at.IsZero() {
				t.Error("the end has no time")
			}
			got.at = time.Time{}
			must.Equal(t, "end", tc.want, got, cmp.AllowUnexported(ending{}))
		})
	}
}

func TestBothStreamsAreLoggedInOrder(t *testing.T) {
	_, ends, path := sh(t, "echo one; echo two >&2; echo three; printf rest")
	receive(t, ends, "end")
	must.Equal(t, "log", "one\ntwo\nthree\nrest", readAll(t, path))
}

func TestSignalReachesTheWholeGroup(t *testing.T) {
	p, ends, path := sh(t, `trap "wait; echo leader; exit 3" TERM; sh -c 'trap "echo child; exit 0" TERM; echo up; while :; do sleep 0.01; done' & wait`)
	waitForLog(t, path)
	p.signal(syscall.SIGTERM)
	if got := receive(t, ends, "end"); got.code != 3 {
		t.Errorf("exit code is %d, want 3", got.code)
	}
	got := readAll(t, path)
	for _, who := range []string{"child\n", "leader\n"} {
		if !strings.Contains(got, who) {
			t.Errorf("log %q does not contain %q", got, who)
		}
	}
}

func TestRestOfTheGroupDiesWithItsLeader(t *testing.T) {
	_, ends, path := sh(t, "sleep 1000 & echo $!")
	receive(t, ends, "end")
	pid, err := strconv.Atoi(strings.TrimSpace(readAll(t, path)))
	must.Succeed(t, err)
	eventually(t, "the leader's child is dead", func() bool { return !running(pid) })
}

// running reports whether a process exists and is no zombie.
func running(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	return len(rest) > 0 && rest[0] != 'Z'
}

func TestEndIsToldThoughAStrangerHoldsTheOutput(t *testing.T) {
	_, ends, path := sh(t, "setsid sleep 1000 & echo $!; sleep 0.1")
	if got := receive(t, ends, "end"); got.code != 0 {
		t.Errorf("exit code is %d, want 0", got.code)
	}
	text := readAll(t, path)
	pid, err := strconv.Atoi(strings.TrimSpace(text))
	must.Succeed(t, err)
	syscall.Kill(pid, syscall.SIGKILL)
}

func TestSignalAfterTheEndHitsNobody(t *testing.T) {
	p, ends, _ := sh(t, "exit 0")
	receive(t, ends, "end")
	if !p.reaped {
		t.Fatal("an ended process is not marked as reaped: its id could be another's")
	}
	p.signal(syscall.SIGKILL)
}

func TestProcessesDieWithTheLauncher(t *testing.T) {
	l := newLauncher()
	log, err := createLog(filepath.Join(t.TempDir(), "0.log"))
	must.Succeed(t, err)
	ends := make(chan ending, 1)
	c := command{path: "/bin/sleep", argv: []string{"sleep", "1000"}, dir: t.TempDir()}
	if _, err := l.run(c, log, func(e ending) { ends <- e }); err != nil {
		t.Fatal(err)
	}
	l.close()
	if got := receive(t, ends, "end"); got.signal != int32(syscall.SIGKILL) {
		t.Errorf("died of signal %d, want %d", got.signal, syscall.SIGKILL)
	}
}

func TestLookPath(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, mode os.FileMode) {
		path := filepath.Join(dir, name)
		must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Succeed(t, os.WriteFile(path, nil, mode))
	}
	write("first/data", 0o644)
	write("second/data", 0o755)
	write("second/tool", 0o755)
	path := filepath.Join(dir, "first") + ":" + filepath.Join(dir, "second")
	cases := map[string]struct{ name, want, wantErr string }{
		"found in the path":                       {name: "tool", want: "second/tool"},
		"what is not executable is passed over":   {name: "data", want: "second/data"},
		"a path relative to the directory":        {name: "second/tool", want: "second/tool"},
		"an absolute path":                        {name: filepath.Join(dir, "second/tool"), want: "second/tool"},
		"found nowhere":                           {name: "none", wantErr: `exec: "none": executable file not found in $PATH`},
		"a path to nothing":                       {name: "./none", wantErr: "no such file or directory"},
		"a path to a file that is not executable": {name: "first/data", wantErr: "permission denied"},
		"a directory":                             {name: "./first", wantErr: "permission denied"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := lookPath(tc.name, dir, path)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("error %v, want %q", err, tc.wantErr)
				}
				return
			}
			if err != nil || got != filepath.Join(dir, tc.want) {
				t.Errorf("found %q, %v; want %s", got, err, tc.want)
			}
		})
	}
}

func TestWorkingDirectory(t *testing.T) {
	existing, dir := t.TempDir(), t.TempDir()
	cases := map[string]struct{ wanted, want string }{
		"none":                           {"", dir},
		"an existing one of the machine": {existing, existing},
		"an absolute one that is absent": {"/no/such/dir", filepath.Join(dir, "no/such/dir")},
		"a relative one":                 {"a/b", filepath.Join(dir, "a/b")},
		"one that would leave":           {"../../x", filepath.Join(dir, "x")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := makeWorkingDir(dir, tc.wanted)
			if err != nil || got != tc.want {
				t.Fatalf("got %s, %v; want %s", got, err, tc.want)
			}
			if info, err := os.Stat(got); err != nil || !info.IsDir() {
				t.Errorf("%s is no directory: %v", got, err)
			}
		})
	}
}

// fixedTokens is a token source that needs no API server.
type fixedTokens struct{}

func (fixedTokens) token(context.Context, string, string, *corev1.ServiceAccountTokenProjection) (string, error) {
	return "a-token", nil
}

func (fixedTokens) authority(context.Context, string, string) (map[string]string, error) {
	return map[string]string{"ca.crt": "a-certificate"}, nil
}

func newTestRunner(t *testing.T) *runner {
	t.Helper()
	return &runner{
		layout:   layout{t.TempDir()},
		launcher: newTestLauncher(t),
		lookup:   mapLookup{},
		tokens:   fixedTokens{},
		base:     map[string]string{"PATH": defaultPath, "HOME": "/nonexistent"},
		logger:   slog.New(slog.DiscardHandler),
	}
}
