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

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
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
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadLog(t *testing.T) {
	lines := []string{"a\n", "b\n", "\n", "c ", "and d\n", "e"}
	cases := map[string]struct {
		query logQuery
		want  string
	}{
		"everything":                {logQuery{tail: -1}, "a\nb\n\nc and d\ne"},
		"the last two":              {logQuery{tail: 2}, "and d\ne"},
		"more lines than there are": {logQuery{tail: 100}, "a\nb\n\nc and d\ne"},
		"no line":                   {logQuery{tail: 0}, ""},
		"since a time":              {logQuery{tail: -1, since: at(3)}, "c and d\ne"},
		"since after the end":       {logQuery{tail: -1, since: at(9)}, ""},
		"the first bytes":           {logQuery{tail: -1, limit: 3}, "a\nb"},
		"a limit beyond the end":    {logQuery{tail: -1, limit: 1000}, "a\nb\n\nc and d\ne"},
		"with timestamps": {
			logQuery{tail: 4, timestamps: true},
			"2023-11-14T22:13:22Z \n2023-11-14T22:13:23Z c and d\n2023-11-14T22:13:25Z e",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, readAll(t, storedLog(t, lines...), tc.query)); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSeekTailAcrossBlocks(t *testing.T) {
	var lines []string
	for i := range 5000 {
		lines = append(lines, fmt.Sprintf("line %d %s\n", i, strings.Repeat("x", i%50)))
	}
	got := readAll(t, storedLog(t, lines...), logQuery{tail: 4000})
	if want := strings.Join(lines[1000:], ""); got != want {
		t.Errorf("4000 lines from the end are %d bytes, want %d", len(got), len(want))
	}
}

func TestLogGivesBackWhatWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.SliceOfN(rapid.SampledFrom([]byte("ab \n\x00\xff")), 0, 200).Draw(rt, "text")
		filler := rapid.IntRange(0, 3*maxLogText).Draw(rt, "filler")
		text = append(text, bytes.Repeat([]byte("y"), filler)...)
		log, err := createLog(path)
		if err != nil {
			rt.Fatal(err)
		}
		log.copyFrom(bytes.NewReader(text))
		if got := readAll(t, path, logQuery{tail: -1}); got != string(text) {
			rt.Fatalf("read %d bytes, wrote %d", len(got), len(text))
		}
	})
}

func TestStoredLinesAreStamped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	log, err := createLog(path)
	if err != nil {
		t.Fatal(err)
	}
	log.copyFrom(strings.NewReader("one\ntwo"))
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	stamp := `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`
	if want := regexp.MustCompile("^" + stamp + " stdout F one\n" + stamp + " stdout P two\n$"); !want.Match(got) {
		t.Errorf("log is %q, want %s", got, want)
	}
}

func TestFollowEndsWithTheRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	log, err := createLog(path)
	if err != nil {
		t.Fatal(err)
	}
	output, input := io.Pipe()
	go log.copyFrom(output)
	followed, follower := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- readLog(t.Context(), path, log, logQuery{follow: true, tail: -1}, follower, func() {})
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
	if err := receive(t, done, "end of following"); err != nil {
		t.Fatal(err)
	}
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
