package plugin

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jobpolicy.dev/services/internal/cli"
)

// busyKubectl stands for a kubectl that forwards many connections: it prints more lines than
// fit into a pipe, and ends when it is interrupted.
const busyKubectl = `#!/bin/sh
echo "Forwarding from 127.0.0.1:$SERVED -> 8082"
yes "Handling connection for $SERVED" | head -n 5000
touch "$PRINTED"
exec sleep 60
`

// kubectl prints a line for each connection. It must not wait until the command has ended.
func TestKubectlIsReadWhileDecisionsAreRead(t *testing.T) {
	dir := t.TempDir()
	printed := filepath.Join(dir, "printed")
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(busyKubectl), 0o755); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 500 {
			if _, err := os.Stat(printed); err == nil {
				fmt.Fprint(w, `[{"namespace":"a","name":"one","uid":"1","time":"2026-05-04T12:00:02Z","reason":"nothing to do"}]`)
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		http.Error(w, "kubectl waits for a reader", http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("SERVED", at.Port())
	t.Setenv("PRINTED", printed)
	code, out, errors := runApart(t, "decisions", "--pod=mine")
	if want := "12:00:02.000  a/one  nothing to do\n"; code != cli.ExitOK || out != want {
		t.Errorf("exit code %d, output\n%s%swant\n%s", code, out, errors, want)
	}
}

// An executor that stops sending ends the command, before its answer or within it. A long answer
// of which parts arrive does not.
func TestDecisionsOfAnExecutorThatStopsSending(t *testing.T) {
	before := decisionsTimeout
	decisionsTimeout = 4 * time.Second
	t.Cleanup(func() { decisionsTimeout = before })
	cases := map[string]struct {
		parts    []string
		pause    time.Duration // before each part
		wantCode int
		want     string
	}{
		"no answer":     {parts: []string{"[]"}, pause: time.Minute, wantCode: cli.ExitFailed, want: "the executor sent nothing for 4s"},
		"its beginning": {parts: []string{"", "[", "]"}, pause: time.Minute, wantCode: cli.ExitFailed, want: "the executor sent nothing for 4s"},
		"a slow answer": {parts: strings.Split("[          ]", ""), pause: 400 * time.Millisecond, wantCode: cli.ExitOK, want: "No decisions found"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				for _, part := range tc.parts {
					if part != "" {
						select {
						case <-r.Context().Done():
							return
						case <-time.After(tc.pause):
						}
					}
					fmt.Fprint(w, part)
					w.(http.Flusher).Flush()
				}
			}))
			t.Cleanup(server.Close)
			code, _, errors := runApart(t, "decisions", "--url", server.URL)
			if code != tc.wantCode || !strings.Contains(errors, tc.want) {
				t.Errorf("exit code %d, want %d and %q: %s", code, tc.wantCode, tc.want, errors)
			}
		})
	}
}

// With --watch, Jobs that are gone take no memory. A list of 5,000 may be cut, and then shows
// nothing about the Jobs that it lacks.
func TestDecisionsOfJobsThatAreGoneAreForgotten(t *testing.T) {
	var lists []string
	for _, n := range []int{3, maxDecisions, 1} {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`{"uid":"%d/%d","time":"2026-05-04T12:00:02Z"}`, n, i))
		}
		lists = append(lists, "["+strings.Join(list, ",")+"]")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, lists[0])
		lists = lists[1:]
	}))
	t.Cleanup(server.Close)
	c := &decisionsCommand{executorPod: executorPod{IO: cli.IO{Out: io.Discard, Err: io.Discard}}, output: &cli.Output{}, only: func() string { return "" }, told: map[string]news{}}
	for _, want := range []int{3, 3 + maxDecisions, 1} {
		if err := c.tell(t.Context(), server.URL); err != nil || len(c.told) != want {
			t.Errorf("error %v; %d Jobs are remembered, want %d", err, len(c.told), want)
		}
	}
}
