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

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// maxDecisionsListed bounds the answer of DecisionsHandler.
const maxDecisionsListed = 5000

// decisionRecord is the last decision on a Job. It is kept with the Job, and
// goes with it. The explanations are encoded, because every finished Job has them
// and hardly anybody reads them.
type decisionRecord struct {
	time        time.Time
	explanation []byte
	// verdict is the explanation that says how the Job ends, and why; nil: it
	// does not end yet.
	verdict []byte
}

// recordAfter makes the record of a decision. verdict says how the Job ends; nil if
// it does not end yet. Once a verdict is announced, a decision only repeats it; what
// led to it is said by an earlier one, which nobody knows any more after a restart.
func recordAfter(last *decisionRecord, at time.Time, verdict *jobpolicyv1.Verdict, explanation []byte) *decisionRecord {
	r := &decisionRecord{time: at, explanation: explanation}
	switch {
	case verdict.GetRepeated() && last != nil && last.verdict != nil:
		r.verdict = last.verdict
	case verdict != nil:
		r.verdict = explanation
	}
	return r
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
}

// DecisionsHandler answers GET with a JSON list: the last decision on each Job
// that exists, by namespace and name, at most 5000 of them (the newest). rule is
// the deciding rule, reason the explanation's summary, waiting whether something
// is held back. verdict is the explanation with which the Job's end was decided;
// null while it has none.
func (e *Executor) DecisionsHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			http.Error(w, "only GET is allowed", http.StatusMethodNotAllowed)
			return
		}
		body, err := json.Marshal(e.decisions())
		if err != nil {
			e.log.ErrorContext(r.Context(), "decisions do not marshal", slog.Any("error", err))
			http.Error(w, "internal error", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if _, err := w.Write(body); err != nil {
			e.log.DebugContext(r.Context(), "reader of decisions went away", slog.Any("error", err))
		}
	})
}

func (e *Executor) decisions() []decisionJSON {
	type decided struct {
		*decisionRecord
		job *batchv1.Job
	}
	var records []decided
	for _, s := range e.jobs.all() {
		s.mu.Lock()
		if s.last != nil && s.job != nil {
			records = append(records, decided{s.last, s.job})
		}
		s.mu.Unlock()
	}
	slices.SortFunc(records, func(a, b decided) int { return b.time.Compare(a.time) })
	records = records[:min(len(records), maxDecisionsListed)]
	slices.SortFunc(records, func(a, b decided) int {
		return cmp.Or(cmp.Compare(a.job.Namespace, b.job.Namespace), cmp.Compare(a.job.Name, b.job.Name), cmp.Compare(a.job.UID, b.job.UID))
	})
	out := make([]decisionJSON, 0, len(records))
	for _, r := range records {
		explanation := decoded(r.explanation)
		out = append(out, decisionJSON{
			Namespace: r.job.Namespace, Name: r.job.Name, UID: string(r.job.UID), Time: r.time,
			Rule: explanation.GetDecidingRule(), Reason: explanation.GetSummary(),
			Waiting: len(explanation.GetWaits()) > 0, Explanation: explanationJSON(explanation), Verdict: explanationJSON(decoded(r.verdict)),
		})
	}
	return out
}

// decoded returns nil for nil.
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
