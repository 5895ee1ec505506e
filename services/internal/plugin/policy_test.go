package plugin

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jobpolicy.dev/services/internal/cli"
	"jobpolicy.dev/services/internal/testenv"
)

// serveTexts serves these answers in JSON, by path. Those of a Status have its code.
func serveTexts(t *testing.T, answers map[string]string) (url string) {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := answers[r.URL.Path]
		if !ok {
			t.Errorf("%s is asked for", r.URL.Path)
		}
		var status struct{ Code int }
		_ = json.Unmarshal([]byte(text), &status)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(cmp.Or(status.Code, http.StatusOK))
		_, _ = fmt.Fprint(w, text)
	}))
	t.Cleanup(web.Close)
	return web.URL
}

const forbiddenPolicy = `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Forbidden","message":"you may not","code":403}`

// serveCronJob serves the CronJob ns/backup, which names the JobPolicy spread, and this answer to who reads that.
func serveCronJob(t *testing.T, policy string) (url string) {
	t.Helper()
	return serveTexts(t, map[string]string{
		"/apis/batch/v1/namespaces/ns/cronjobs/backup": `{"apiVersion":"batch/v1","kind":"CronJob",
			"metadata":{"namespace":"ns","name":"backup","uid":"00000000-0000-0000-0000-000000000001","creationTimestamp":"2026-10-24T11:30:00Z",
			"annotations":{"jobpolicy.dev/policy":"spread"}},"spec":{"schedule":"0 * * * *"},"status":{"lastScheduleTime":"2026-10-24T12:00:00Z"}}`,
		"/apis/jobpolicy.dev/v1alpha1/namespaces/ns/jobpolicies/spread": policy,
	})
}

// Who may not read a JobPolicy is told so: the times look like those of a CronJob without one.
func TestNextSaysThatAPolicyCouldNotBeRead(t *testing.T) {
	const (
		missing = `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"NotFound","message":"there is none","code":404}`
		known   = `{"spec":{"cronJob":{"staggerSeconds":3600}}}`
		newer   = `{"spec":{"cronJob":{"staggerMinutes":60}}}`
	)
	setNow(t, time.Date(2026, time.October, 24, 12, 0, 0, 0, time.UTC))
	t.Setenv("KUBECONFIG", os.DevNull)
	cases := map[string]struct {
		policy, want string
		staggered    bool
	}{
		"without the right": {forbiddenPolicy, "read JobPolicy spread in namespace ns: you may not", false},
		"missing":           {missing, "read JobPolicy spread in namespace ns: there is none", false},
		"not understood":    {newer, "annotation jobpolicy.dev/policy: cronJob.staggerMinutes: there is no such field", false},
		"read":              {known, "", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			args := []string{"next", "cronjob/backup", "--namespace", "ns", "--server", serveCronJob(t, tc.policy)}
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

// The default policy of a namespace is not for Jobs that the built-in controller runs.
func TestExplainReadsAPolicyOnlyOfAJobThatTakesOptions(t *testing.T) {
	setNow(t, time.Date(2026, time.October, 24, 12, 0, 0, 0, time.UTC))
	t.Setenv("KUBECONFIG", os.DevNull)
	for manager, reads := range map[string]bool{"jobpolicy.dev/executor": true, "kubernetes.io/job-controller": false} {
		answers := map[string]string{
			"/apis/batch/v1/namespaces/ns/jobs/backup": `{"apiVersion":"batch/v1","kind":"Job",
				"metadata":{"namespace":"ns","name":"backup","uid":"00000000-0000-0000-0000-000000000001","creationTimestamp":"2026-10-24T11:30:00Z"},
				"spec":{"managedBy":"` + manager + `","selector":{"matchLabels":{"a":"b"}},"template":{"spec":{"restartPolicy":"Never"}}}}`,
			"/api/v1/namespaces/ns/pods":   `{"apiVersion":"v1","kind":"PodList"}`,
			"/api/v1/namespaces/ns/events": `{"apiVersion":"v1","kind":"EventList"}`,
		}
		if reads {
			answers["/api/v1/namespaces/ns"] = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"ns","annotations":{"jobpolicy.dev/default-policy":"spread"}}}`
			answers["/apis/jobpolicy.dev/v1alpha1/namespaces/ns/jobpolicies/spread"] = forbiddenPolicy
		}
		code, out := run(t, "explain", "job/backup", "-n", "ns", "--server", serveTexts(t, answers))
		if code != cli.ExitOK || strings.Contains(out, "read JobPolicy spread in namespace ns: you may not") != reads {
			t.Errorf("%s: exit code %d, want the policy to be read: %v\n%s", manager, code, reads, out)
		}
	}
}

// Explain and timeline list the options of a Job, and where they are.
func TestTheOptionsOfAJobAreListed(t *testing.T) {
	setNow(t, time.Date(2026, time.October, 24, 12, 0, 0, 0, time.UTC))
	t.Setenv("KUBECONFIG", os.DevNull)
	const (
		spread = `{"spec":{"job":{"whenJobFails":"EndPods","retryDelay":{"delaysSeconds":[4,1]}}}}`
		listed = "job.retryDelay delaysSeconds [4, 1]; job.whenJobFails EndPods"
	)
	cases := map[string]struct{ annotation, byDefault, policy, want string }{
		"the policy that it names":       {"spread", "", spread, "JobPolicy spread: " + listed},
		"the default of the namespace":   {"", "spread", spread, "JobPolicy spread, the default of namespace ns: " + listed},
		"its own annotation":             {"{job: {endCondition: true}}", "", "", "the annotation jobpolicy.dev/policy: job.endCondition true"},
		"a policy that cannot be read":   {"spread", "", forbiddenPolicy, "JobPolicy spread: cannot be read"},
		"a policy for CronJobs":          {"spread", "", `{"spec":{"cronJob":{"staggerSeconds":60}}}`, "JobPolicy spread: none"},
		"no policy, and none by default": {"", "", "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			annotations := "{}"
			if tc.annotation != "" {
				annotations = fmt.Sprintf(`{"jobpolicy.dev/policy":%q}`, tc.annotation)
			}
			server := serveTexts(t, map[string]string{
				"/apis/batch/v1/namespaces/ns/jobs/backup": `{"apiVersion":"batch/v1","kind":"Job",
					"metadata":{"namespace":"ns","name":"backup","uid":"00000000-0000-0000-0000-000000000001","creationTimestamp":"2026-10-24T11:30:00Z","annotations":` + annotations + `},
					"spec":{"managedBy":"jobpolicy.dev/executor","selector":{"matchLabels":{"a":"b"}},"template":{"spec":{"restartPolicy":"Never"}}}}`,
				"/api/v1/namespaces/ns/pods":                                    `{"apiVersion":"v1","kind":"PodList"}`,
				"/api/v1/namespaces/ns/events":                                  `{"apiVersion":"v1","kind":"EventList"}`,
				"/api/v1/namespaces/ns":                                         fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"ns","annotations":{"jobpolicy.dev/default-policy":%q}}}`, tc.byDefault),
				"/apis/jobpolicy.dev/v1alpha1/namespaces/ns/jobpolicies/spread": tc.policy,
			})
			for command, before := range map[string]string{"explain": "\noptions   ", "timeline": "\noptions of "} {
				code, out := run(t, command, "job/backup", "-n", "ns", "--server", server)
				_, line, has := strings.Cut(out, before)
				line, _, _ = strings.Cut(line, "\n")
				if code != cli.ExitOK || has != (tc.want != "") || line != tc.want {
					t.Errorf("%s: exit code %d, options %q, want %q:\n%s", command, code, line, tc.want, out)
				}
			}
			page := filepath.Join(t.TempDir(), "page.html")
			if code, out := run(t, "timeline", "job/backup", "-n", "ns", "--server", server, "--html", page); code != cli.ExitOK {
				t.Fatal(out)
			}
			text := string(testenv.ReadFile(t, page))
			if strings.Contains(text, "<p>Options of ") != (tc.want != "") || tc.want != "" && !strings.Contains(text, "<p>Options of "+tc.want+"</p>") {
				t.Errorf("the page lacks %q, or has options of nobody:\n%s", tc.want, text)
			}
		})
	}
}

// The next runs of a CronJob whose JobPolicy cannot be read are told by its last valid options, and it is said so.
func TestNextFollowsTheLastValidOptions(t *testing.T) {
	setNow(t, time.Date(2026, time.October, 24, 12, 0, 0, 0, time.UTC))
	t.Setenv("KUBECONFIG", os.DevNull)
	server := serveTexts(t, map[string]string{
		"/apis/batch/v1/namespaces/ns/cronjobs/backup": `{"apiVersion":"batch/v1","kind":"CronJob",
			"metadata":{"namespace":"ns","name":"backup","uid":"00000000-0000-0000-0000-000000000001","creationTimestamp":"2026-10-24T11:30:00Z",
			"annotations":{"jobpolicy.dev/policy":"spread","jobpolicy.dev/last-valid-policy":"{cronJob: {staggerSeconds: 600}}"}},"spec":{"schedule":"0 * * * *"}}`,
		"/apis/jobpolicy.dev/v1alpha1/namespaces/ns/jobpolicies/spread": forbiddenPolicy,
	})
	code, out := run(t, "next", "cronjob/backup", "-n", "1", "--namespace", "ns", "--server", server)
	if code != cli.ExitOK || !strings.Contains(out, "you may not; these times follow the last valid options of the CronJob\n") || !strings.Contains(out, "later, at") {
		t.Errorf("exit code %d, want times by the last valid options:\n%s", code, out)
	}
}
