package views

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/writes"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// maxListed bounds the list of decisions.
const maxListed = 5000

// Jobs is the controller of Jobs, package executor.
type Jobs interface {
	EachJob(f func(executor.Observation))
}

type decisionJSON struct {
	Namespace   string          `json:"namespace"`
	Name        string          `json:"name"`
	UID         string          `json:"uid"`
	Time        time.Time       `json:"time"`
	Rule        string          `json:"rule"`
	Reason      string          `json:"reason"`
	Waiting     bool            `json:"waiting"`
	Explanation json.RawMessage `json:"explanation"`
	Verdict     json.RawMessage `json:"verdict"`
	// Refused are the writes that the API server refuses. Hindered are the pods that cannot start.
	Refused  []refusedJSON    `json:"refused,omitempty"`
	Hindered tracker.Hindered `json:"hindered,omitzero"`
}

// Decisions answers GET with a JSON list: the last decision on each Job that exists, by
// namespace and name. The query may select a namespace, a name, and a condition that is
// True in the Job's status. The newest 5000 of the selected decisions are listed.
func Decisions(jobs Jobs) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if err := refused(query, byNamespace, byName, byCondition); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		writeJSON(w, decisions(jobs, query))
	})
}

func decisions(jobs Jobs, query url.Values) []decisionJSON {
	var found []executor.Observation
	jobs.EachJob(func(o executor.Observation) {
		if o.Decision != nil && matches(query, o.Job.Namespace, o.Job.Name) && (!query.Has(byCondition) || has(o.Job, query.Get(byCondition))) {
			found = append(found, o)
		}
	})
	slices.SortFunc(found, func(a, b executor.Observation) int { return b.Decision.Time.Compare(a.Decision.Time) })
	found = found[:min(len(found), maxListed)]
	slices.SortFunc(found, func(a, b executor.Observation) int {
		return cmp.Or(cmp.Compare(a.Job.Namespace, b.Job.Namespace), cmp.Compare(a.Job.Name, b.Job.Name), cmp.Compare(a.Job.UID, b.Job.UID))
	})
	list := make([]decisionJSON, 0, len(found))
	for _, o := range found {
		list = append(list, decisionOf(o))
	}
	return list
}

func has(job *batchv1.Job, condition string) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return string(c.Type) == condition && c.Status == corev1.ConditionTrue
	})
}

// refusedJSON is a kind of write that the API server refuses.
type refusedJSON struct {
	Write   writes.Kind `json:"write"`
	Since   time.Time   `json:"since"`
	Objects int         `json:"objects"`
	Why     string      `json:"why"`
}

func refusedOf(refusals []writes.Refusal) (list []refusedJSON) {
	for _, r := range refusals {
		list = append(list, refusedJSON{r.Kind, r.Since.UTC(), r.Objects, r.Why})
	}
	return list
}

func decisionOf(o executor.Observation) decisionJSON {
	e := o.Decision.Explained()
	return decisionJSON{
		Namespace: o.Job.Namespace, Name: o.Job.Name, UID: string(o.Job.UID), Time: o.Decision.Time,
		Rule: e.GetDecidingRule().Name(), Reason: e.GetSummary(), Waiting: len(e.GetWaits()) > 0,
		Explanation: explained(e), Verdict: explained(o.Decision.Ended()), Refused: refusedOf(o.Refusals), Hindered: o.Hindered,
	}
}

func explained(e *jobpolicyv1.Explanation) json.RawMessage {
	if e == nil {
		return json.RawMessage("null")
	}
	out, err := protojson.Marshal(e)
	if err != nil {
		return json.RawMessage("null")
	}
	return out
}
