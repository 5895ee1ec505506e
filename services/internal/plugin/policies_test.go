package plugin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/rest"

	"jobpolicy.dev/executor/wire"
)

// A hundred CronJobs of a group name two JobPolicies, of which one cannot be read.
func TestPoliciesOfAGroupAreReadOnce(t *testing.T) {
	reads := 0
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reads++
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/apis/jobpolicy.dev/v1alpha1/namespaces/ns/jobpolicies/p1" {
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprint(w, forbiddenPolicy)
			return
		}
		_, _ = fmt.Fprint(w, `{"spec":{"cronJob":{"staggerSeconds":60}}}`)
	}))
	defer web.Close()
	policies, err := client(&rest.Config{Host: web.URL}, "/apis", policyVersion)
	if err != nil {
		t.Fatal(err)
	}
	crons := make([]batchv1.CronJob, 100)
	for i := range crons {
		crons[i].Annotations = map[string]string{wire.Policy: fmt.Sprintf("p%d", i%2)}
	}
	unread := (&clusterReader{Namespace: "ns", policies: policies}).usePolicies(t.Context(), crons)
	if reads != 2 || len(unread) != 1 {
		t.Errorf("%d reads, want 2; unread %q, want one", reads, unread)
	}
	if got := crons[98].Annotations[wire.Policy]; got != crons[0].Annotations[wire.Policy] || got == "p0" {
		t.Errorf("the policy of a later one is %q", got)
	}
}
