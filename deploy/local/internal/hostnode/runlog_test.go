package hostnode

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"jobpolicy.dev/deploy/local/must"
)

// storedLog writes a log file whose lines are stamped 0, 1, 2… seconds after the epoch; a text without a newline is
// stored as a partial line.
func storedLog(t *testing.T, texts ...string) string {
	t.Helper()
	var b strings.Builder
	for i, text := range texts {
		tag := logPartial
		if line, ok := strings.CutSuffix(text, "\n"); ok {
			tag, text = logFull, line
		}
		fmt.Fprintf(&b, "%s %s%s\n", at(i).Format(time.RFC3339Nano), tag, text)
	}
	path := filepath.Join(t.TempDir(), "0.log")
	must.Succeed(t, os.WriteFile(path, []byte(b.String()), 0o600))
	return path
}

func TestReadLog(t *testing.T) {
	lines := []string{"a\n", "b\n", "\n", "c ", "and d\n", "e"}
	cases := map[string]struct {
		want   *corev1.PodLogOptions
		answer string
	}{
		"everything":      {&corev1.PodLogOptions{}, "a\nb\n\nc and d\ne"},
		"the last two":    {&corev1.PodLogOptions{TailLines: new(int64(2))}, "and d\ne"},
		"no line":         {&corev1.PodLogOptions{TailLines: new(int64(0))}, ""},
		"since a time":    {&corev1.PodLogOptions{SinceTime: &metav1.Time{Time: at(3)}}, "c and d\ne"},
		"the first bytes": {&corev1.PodLogOptions{LimitBytes: new(int64(3))}, "a\nb"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			must.Succeed(t, readLog(t.Context(), storedLog(t, lines...), nil, tc.want, &b))
			must.Equal(t, "log", tc.answer, b.String())
		})
	}
}

func TestLogGivesBackWhatWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.SliceOfN(rapid.SampledFrom([]byte("ab \n\x00\xff")), 0, 200).Draw(rt, "text")
		filler := rapid.IntRange(0, 3*maxLogText).Draw(rt, "filler")
		text = append(text, bytes.Repeat([]byte("y"), filler)...)
		log, err := createLog(path)
		must.Succeed(rt, err)
		log.copyFrom(bytes.NewReader(text))
		if got := readAll(t, path); got != string(text) {
			rt.Fatalf("read %d bytes, wrote %d", len(got), len(text))
		}
	})
}

func TestStoredLinesAreStamped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	log, err := createLog(path)
	must.Succeed(t, err)
	log.copyFrom(strings.NewReader("one\ntwo"))
	got, err := os.ReadFile(path)
	must.Succeed(t, err)
	stamp := `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`
	if want := regexp.MustCompile("^" + stamp + " stdout F one\n" + stamp + " stdout P two\n$"); !want.Match(got) {
		t.Errorf("log is %q, want %s", got, want)
	}
}

func TestFollowEndsWithTheRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	log, err := createLog(path)
	must.Succeed(t, err)
	output, input := io.Pipe()
	go log.copyFrom(output)
	followed, follower := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- readLog(t.Context(), path, log, &corev1.PodLogOptions{Follow: true}, follower)
		follower.Close()
	}()
	for _, line := range []string{"first\n", "second\n"} {
		io.WriteString(input, line)
		got := make([]byte, len(line))
		if _, err := io.ReadFull(followed, got); err != nil || string(got) != line {
			t.Fatalf("followed %q, %v; want %q before the next is written", got, err, line)
		}
	}
	input.Close()
	must.Succeed(t, receive(t, done, "end of following"))
}

func TestTerminationMessageIsTheEndOfTheLog(t *testing.T) {
	var lines []string
	for i := range 100 {
		lines = append(lines, fmt.Sprintf("%d\n", i))
	}
	if got, want := logTail(storedLog(t, lines...)), strings.Join(lines[20:], ""); got != want {
		t.Errorf("message is %q, want the last 80 lines", got)
	}
	long := strings.Repeat("x", messageBytes) + "end\n"
	if got := logTail(storedLog(t, long)); len(got) != messageBytes || !strings.HasSuffix(got, "xend\n") {
		t.Errorf("message of a long line has %d bytes and ends in %q", len(got), got[len(got)-5:])
	}
	if got := logTail(filepath.Join(t.TempDir(), "none")); got != "" {
		t.Errorf("message without a log is %q", got)
	}
}
