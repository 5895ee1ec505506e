package executor

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/state"
	"jobpolicy.dev/executor/tracker"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// maxDecisionsListed bounds the answer of DecisionsHandler.
const maxDecisionsListed = 5000

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
	// NotCreated is why the API server refuses pods, and Hindered the pods that cannot start.
	NotCreated string           `json:"notCreated,omitempty"`
	Hindered   tracker.Hindered `json:"hindered,omitzero"`
}

// DecisionsHandler answers GET with a JSON list: the last decision on each Job
// that exists, by namespace and name, at most 5000 of them (the newest). rule is
// the deciding rule, reason the explanation's summary, waiting whether the decision
// waits for something. verdict is the explanation with which the Job's end was decided;
// null while it has none. notCreated is why the API server refuses to create pods, and hindered
// says how many pods cannot start, and why most of them do not.
func (e *Executor) DecisionsHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			http.Error(w, "only GET is allowed", http.StatusMethodNotAllowed)
			return
		}
		body, err := json.Marshal(e.decisions())
		if err != nil {
			e.base.Logger.ErrorContext(r.Context(), "decisions do not marshal", slog.Any("error", err))
			http.Error(w, "internal error", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if _, err := w.Write(body); err != nil {
			e.base.Logger.DebugContext(r.Context(), "reader of decisions went away", slog.Any("error", err))
		}
	})
}

func (e *Executor) decisions() []decisionJSON {
	type decided struct {
		*state.Decision
		job *batchv1.Job
		of  *state.Job
	}
	var records []decided
	for _, s := range e.jobs.All() {
		if last, job := s.Decisions.Last(), s.Version.Current(); last != nil && job != nil {
			records = append(records, decided{last, job, s})
		}
	}
	slices.SortFunc(records, func(a, b decided) int { return b.Time.Compare(a.Time) })
	records = records[:min(len(records), maxDecisionsListed)]
	slices.SortFunc(records, func(a, b decided) int {
		return cmp.Or(cmp.Compare(a.job.Namespace, b.job.Namespace), cmp.Compare(a.job.Name, b.job.Name), cmp.Compare(a.job.UID, b.job.UID))
	})
	out := make([]decisionJSON, 0, len(records))
	for _, r := range records {
		explanation := decoded(r.Explanation)
		out = append(out, decisionJSON{
			Namespace: r.job.Namespace, Name: r.job.Name, UID: string(r.job.UID), Time: r.Time,
			Rule: explanation.GetDecidingRule().Name(), Reason: explanation.GetSummary(),
			Waiting: len(explanation.GetWaits()) > 0, Explanation: explanationJSON(explanation), Verdict: explanationJSON(decoded(r.Verdict)),
			NotCreated: r.of.Backoffs.Refusal().Why, Hindered: r.of.Pods.Hindered(),
		})
	}
	return out
}

// decoded is the explanation that was encoded; nil if there is none.
func decoded(explanation []byte) *jobpolicyv1.Explanation {
	if explanation == nil {
		return nil
	}
	e := &jobpolicyv1.Explanation{}
	if err := proto.Unmarshal(explanation, e); err != nil {
		return nil
	}
	return e
}

func explanationJSON(e *jobpolicyv1.Explanation) json.RawMessage {
	if e == nil {
		return json.RawMessage("null")
	}
	out, err := protojson.Marshal(e)
	if err != nil {
		return json.RawMessage("null")
	}
	return out
}
