package plugin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"jobpolicy.dev/services/internal/cli"
)

// decisionsOf serves a list of two decisions, and others from the second request on.
func decisionsOf(t *testing.T, lists ...string) string {
	t.Helper()
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked == len(lists) || r.URL.Path != "/debug/decisions" {
			http.Error(w, "no more", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, lists[asked])
		asked++
	}))
	t.Cleanup(server.Close)
	return server.URL
}

const (
	firstDecisions  = `[{"namespace":"a","name":"one","uid":"1","time":"2026-05-04T12:00:02Z","reason":"active: 1 of 1 wanted"},{"namespace":"b","name":"two","uid":"2","time":"2026-05-04T12:00:01Z","reason":"nothing to do"}]`
	secondDecisions = `[{"namespace":"a","name":"one","uid":"1","time":"2026-05-04T12:00:03Z","rule":"completionsReached","reason":"the Job succeeds"},{"namespace":"b","name":"two","uid":"2","time":"2026-05-04T12:00:01Z","reason":"nothing to do"}]`
)

// The executor lists 5,000 decisions, and selects a namespace before.
func TestDecisionsOfManyJobs(t *testing.T) {
	var list []string
	for i := range 5000 {
		list = append(list, fmt.Sprintf(`{"namespace":"big","name":"j","uid":"%d","time":"2026-05-04T12:00:02Z"}`, i))
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("namespace") == "a&b" {
			fmt.Fprint(w, `[{"namespace":"a&b","name":"j","uid":"x","time":"2026-05-04T12:00:01Z","reason":"nothing to do"}]`)
			return
		}
		fmt.Fprint(w, "["+strings.Join(list, ",")+"]")
	}))
	t.Cleanup(server.Close)
	cases := map[string]struct {
		args             []string
		lines            int
		wantOut, wantErr string
	}{
		"of one namespace": {args: []string{"-n", "a&b"}, lines: 1, wantOut: "a&b/j"},
		"of all":           {lines: 5000, wantOut: "big/j", wantErr: "The executor lists only the newest 5000 decisions; -n selects those of one namespace.\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			code, out, errors := runApart(t, append([]string{"decisions", "--url", server.URL}, tc.args...)...)
			if lines := strings.Count(out, "\n"); code != cli.ExitOK || lines != tc.lines || !strings.Contains(out, tc.wantOut) || errors != tc.wantErr {
				t.Errorf("exit code %d, %d lines, want %d with %q; standard error %q, want %q", code, lines, tc.lines, tc.wantOut, errors, tc.wantErr)
			}
		})
	}
}

// A Job whose pods do not start has no new decision, and still something new to tell.
func TestDecisionsTellWhatHindersPods(t *testing.T) {
	const job = `[{"namespace":"a","name":"one","uid":"1","time":"2026-05-04T12:00:02Z","reason":"active: 2 of 3 wanted"%s}]`
	url := decisionsOf(t, fmt.Sprintf(job, ""), fmt.Sprintf(job, ""),
		fmt.Sprintf(job, `,"refused":[{"write":"create_pod","since":"2026-01-01T00:00:00Z","objects":1,"why":"exceeded quota: small"}],"hindered":{"pods":2,"reason":"ImagePullBackOff"}`))
	_, out, errors := runApart(t, "decisions", "-w", "--url", url+"/")
	const line = "12:00:02.000  a/one  active: 2 of 3 wanted"
	if want := line + "\n" + line + "; pods that cannot start: 2 (ImagePullBackOff); since 2026-01-01T00:00:00Z the API server refuses to create pods: exceeded quota: small\n"; out != want {
		t.Errorf("output\n%s%swant\n%s", out, errors, want)
	}
}

func TestDecisionsOfNoAddress(t *testing.T) {
	for _, address := range []string{"localhost:8082", "127.0.0.1", "ftp://a"} {
		code, _, errors := runApart(t, "decisions", "--url", address)
		if code != cli.ExitUsage || !strings.Contains(errors, "--url: expected an address such as http://127.0.0.1:8082, got") {
			t.Errorf("%s: exit code %d: %s", address, code, errors)
		}
	}
}

func TestDecisions(t *testing.T) {
	const one, two, end = "12:00:02.000  a/one  active: 1 of 1 wanted\n", "12:00:01.000  b/two  nothing to do\n", "12:00:03.000  a/one  the Job succeeds [completionsReached]\n"
	cases := map[string]struct {
		args     []string
		wantCode int
		want     string
	}{
		"the last ones, by time": {wantCode: cli.ExitOK, want: two + one},
		"of one namespace":       {args: []string{"-n", "b"}, wantCode: cli.ExitOK, want: two},
		// The watch ends when the executor answers no more.
		"each once, as it comes": {args: []string{"-w"}, wantCode: cli.ExitFailed, want: two + one + end},
		"an argument":            {args: []string{"job/a"}, wantCode: cli.ExitUsage, want: ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"decisions", "--url", decisionsOf(t, firstDecisions, secondDecisions)}, tc.args...)
			code, out, errors := runApart(t, args...)
			if code != tc.wantCode || out != tc.want {
				t.Errorf("exit code %d, output\n%s%swant %d and\n%s", code, out, errors, tc.wantCode, tc.want)
			}
		})
	}
}
