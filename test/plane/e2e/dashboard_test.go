package e2e

import (
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/deploy/local/must"
)

// Every metric that the dashboard or an alert uses exists after one Job has run, even
// if nothing has failed yet.
func TestMetricsOfTheDashboardAndTheAlertsExist(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	createJob(t, namespace, "seen", batchv1.JobSpec{Template: shell("true", corev1.RestartPolicyNever)})
	waitFinished(t, namespace, "seen")
	_, here := watchedMetrics(t)
	eventually(t, "the services have the metrics that are watched", func() (bool, string) {
		missing := missingMetrics(t, here, plane.EngineURL(), plane.ExecutorURL())
		return len(missing) == 0, "missing are " + strings.Join(missing, ", ")
	})
	fallback := startExecutor(t, "--engine=127.0.0.1:1", "--engine-insecure", "--engine-fallback=embedded", "--managed-by=example.com/fallback", "--leader-elect=false")
	eventually(t, "an executor without an engine is ready", fallback.ready)
	if missing := missingMetrics(t, fallbackOnly, fallback.url); len(missing) > 0 {
		t.Errorf("an executor that decides by itself has no metrics %v", missing)
	}
}

// installedOnly are the metrics that the services of the shared control plane do
// not have: the executor takes part in no election and keeps no certificates, and the engine
// has no list of callers. Those of TestCertificatesRotateUnderLoad do, as in the manifests.
var installedOnly = []string{
	"jobpolicy_engine_authorized_callers_usable",
	"jobpolicy_certificate_issue_errors_total",
	"jobpolicy_issued_certificate_expiration_timestamp_seconds",
	"leader_election_master_status",
}

// shadowOnly are the metrics that only an executor in shadow mode has.
var shadowOnly = []string{"jobpolicy_shadow_open_differences"}

// fallbackOnly are the metrics that only an executor with --engine-fallback has.
var fallbackOnly = []string{"jobpolicy_executor_engine_fallback_active"}

// selected is a metric in a query. The chart's tests see to it that each is
// followed by matchers.
var selected = regexp.MustCompile(`\b([a-z][a-z0-9_]+)\{`)

// watchedMetrics are the names of the series in the queries of the dashboard and of
// the alerts: those that only installed services have, and those that are here.
func watchedMetrics(t *testing.T) (installed, here []string) {
	t.Helper()
	names := map[string]bool{}
	for _, file := range []string{"dashboard.json", "alerts.yaml"} {
		text, err := os.ReadFile("../../../deploy/chart/jobpolicy/files/" + file)
		must.Succeed(t, err)
		found := selected.FindAllStringSubmatch(string(text), -1)
		if len(found) < 5 {
			t.Fatalf("%s asks for %d series: want more", file, len(found))
		}
		for _, match := range found {
			names[match[1]] = true
		}
	}
	for _, name := range slices.Concat(installedOnly, shadowOnly, fallbackOnly) {
		if !names[name] {
			t.Errorf("neither the dashboard nor an alert asks for %s any more", name)
		}
		delete(names, name)
	}
	return installedOnly, slices.Sorted(maps.Keys(names))
}

// missingMetrics returns the names of which no service has a series.
func missingMetrics(t *testing.T, names []string, services ...string) []string {
	t.Helper()
	there := map[string]bool{}
	for _, service := range services {
		code, body := get(service + "/metrics")
		if code != http.StatusOK {
			t.Fatalf("%s/metrics: %d %s", service, code, body)
		}
		for line := range strings.Lines(body) {
			if name, _, ok := strings.Cut(line, " "); ok && !strings.HasPrefix(line, "#") {
				name, _, _ = strings.Cut(name, "{")
				there[name] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return there[name] })
}
