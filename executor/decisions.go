package executor

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// maxDecisionsListed bounds the answer of DecisionsHandler.
const maxDecisionsListed = 5000

// decisionRecord is the last decision on a Job. It is kept with the Job, and
// goes with it.
type decisionRecord struct {
	namespace, name, uid string
	time                 time.Time
	explanation          *jobpolicyv1.Explanation
	// verdict is the explanation that says how the Job ends, and why; nil: it
	// does not end yet.
	verdict *jobpolicyv1.Explanation
}

// verdictAfter finds the explanation of a Job's end. Once a verdict is declared,
// a decision only repeats it; what led to it is said by an earlier one, which
// nobody knows any more after a restart.
func verdictAfter(last *decisionRecord, now *jobpolicyv1.Explanation) *jobpolicyv1.Explanation {
	switch now.GetDecidingRule() {
	case "":
		return nil
	case ruleSuccessAlreadyDeclared, ruleFailureAlreadyDeclared:
		if last != nil && last.verdict != nil {
			return last.verdict
		}
	}
	return now
}

// Names of engine rules that repeat a verdict. They are part of the contract.
const (
	ruleSuccessAlreadyDeclared = "successAlreadyDeclared"
	ruleFailureAlreadyDeclared = "failureAlreadyDeclared"
)

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
	var records []*decisionRecord
	for _, s := range e.jobs.all() {
		s.mu.Lock()
		last := s.last
		s.mu.Unlock()
		if last != nil {
			records = append(records, last)
		}
	}
	slices.SortFunc(records, func(a, b *decisionRecord) int { return b.time.Compare(a.time) })
	records = records[:min(len(records), maxDecisionsListed)]
	slices.SortFunc(records, func(a, b *decisionRecord) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name), cmp.Compare(a.uid, b.uid))
	})
	out := make([]decisionJSON, 0, len(records))
	for _, r := range records {
		out = append(out, decisionJSON{
			Namespace: r.namespace, Name: r.name, UID: r.uid, Time: r.time,
			Rule: r.explanation.GetDecidingRule(), Reason: r.explanation.GetSummary(),
			Waiting: len(r.explanation.GetWaits()) > 0, Explanation: explanationJSON(r.explanation), Verdict: explanationJSON(r.verdict),
		})
	}
	return out
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
