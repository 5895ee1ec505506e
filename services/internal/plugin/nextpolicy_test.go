package plugin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"jobpolicy.dev/services/internal/cli"
)

// serveCronJob serves the CronJob ns/backup, which names the JobPolicy spread, and this answer to who reads that.
func serveCronJob(t *testing.T, code int, policy string) (url string) {
	t.Helper()
	mux := http.NewServeMux()
	serve := func(path string, code int, body string) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_, _ = fmt.Fprint(w, body)
		})
	}
	serve("/apis/batch/v1/namespaces/ns/cronjobs/backup", http.StatusOK, `{"apiVersion":"batch/v1","kind":"CronJob",
		"metadata":{"namespace":"ns","name":"backup","uid":"00000000-0000-0000-0000-000000000001","creationTimestamp":"2026-10-24T11:30:00Z",
		"annotations":{"jobpolicy.dev/policy":"spread"}},"spec":{"schedule":"0 * * * *"},"status":{"lastScheduleTime":"2026-10-24T12:00:00Z"}}`)
	serve("/apis/jobpolicy.dev/v1alpha1/namespaces/ns/jobpolicies/spread", code, policy)
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	return web.URL
}

// Who may not read a JobPolicy is told so: the times look like those of a CronJob without one.
func TestNextSaysThatAPolicyCouldNotBeRead(t *testing.T) {
	const (
		forbidden = `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Forbidden","message":"you may not","code":403}`
		missing   = `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"NotFound","message":"there is none","code":404}`
		known     = `{"spec":{"cronJob":{"staggerSeconds":3600}}}`
		newer     = `{"spec":{"cronJob":{"staggerMinutes":60}}}`
	)
	setNow(t, time.Date(2026, time.October, 24, 12, 0, 0, 0, time.UTC))
	t.Setenv("KUBECONFIG", os.DevNull)
	cases := map[string]struct {
		code         int
		policy, want string
		staggered    bool
	}{
		"without the right": {http.StatusForbidden, forbidden, "read JobPolicy spread in namespace ns: you may not", false},
		"missing":           {http.StatusNotFound, missing, "read JobPolicy spread in namespace ns: there is none", false},
		"not understood":    {http.StatusOK, newer, "annotation jobpolicy.dev/policy: cronJob.staggerMinutes: there is no such field", false},
		"read":              {http.StatusOK, known, "", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			args := []string{"next", "cronjob/backup", "--namespace", "ns", "--server", serveCronJob(t, tc.code, tc.policy)}
			code, out := run(t, args...)
			if code != cli.ExitOK || strings.Contains(out, "not known: "+tc.want) != (tc.want != "") || strings.Contains(out, "later, at") != tc.staggered {
				t.Errorf("exit code %d, want the notice %q:\n%s", code, tc.want, out)
			}
			_, out = run(t, append(args, "-o", "json")...)
			var report nextReport
			if err := json.Unmarshal([]byte(out), &report); err != nil || !strings.HasPrefix(strings.Join(report.Unread, ""), tc.want) || (len(report.Unread) > 0) != (tc.want != "") {
				t.Errorf("error %v, unread %q, want %q", err, report.Unread, tc.want)
			}
		})
	}
}
