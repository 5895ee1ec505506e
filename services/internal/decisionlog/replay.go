package decisionlog

import (
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// An Engine decides. It is called concurrently, and its errors have a gRPC status.
type Engine struct {
	Job     func(*jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error)
	CronJob func(*jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error)
	// Settings replace those of each request about a Job. nil: none do.
	Settings *Settings
}

// A Difference is a record whose request has another answer now.
type Difference struct {
	// Record is its number in the log, from 1.
	Record int `json:"record"`
	// Object names the Job or CronJob: job/NAMESPACE/NAME.
	Object string `json:"object"`
	// Then and Now are the rule of a Job's verdict or "no verdict", the steps of a decision
	// on a CronJob, or the code of a refusal.
	Then string `json:"then"`
	Now  string `json:"now"`
	// Fields of the response that differ, by name.
	Fields []string `json:"fields"`
}

// Result is the result of a replay.
type Result struct {
	// Same is how many answers are the same. Skipped is how many records were not decided
	// again, because they have no answer of an engine or hide a name that the decision
	// depends on.
	Same        int          `json:"same"`
	Skipped     int          `json:"skipped"`
	Differences []Difference `json:"differences"`
}

// chunk is how many records are decided concurrently.
const chunk = 1024

// Replay decides the requests of a log again. If the log cannot be read, or the engine cannot
// be asked, it returns the error with what it has found so far.
func Replay(log iter.Seq2[*jobpolicyv1.DecisionRecord, error], e Engine) (Result, error) {
	var result Result
	n := 0
	var waiting []*jobpolicyv1.DecisionRecord
	decide := func() error {
		first := n - len(waiting) + 1
		err := result.add(first, e.compare(first, waiting))
		waiting = waiting[:0]
		return err
	}
	for record, err := range log {
		if err != nil {
			err = errors.Join(decide(), err)
			return result, err
		}
		n++
		if waiting = append(waiting, record); len(waiting) == chunk {
			if err := decide(); err != nil {
				return result, err
			}
		}
	}
	err := decide()
	return result, err
}

// An outcome is the result for one record.
type outcome struct {
	skipped    bool
	difference *Difference
	err        error
}

func (r *Result) add(first int, outcomes []outcome) error {
	for i, o := range outcomes {
		switch {
		case o.err != nil:
			return fmt.Errorf("record %d: %w", first+i, o.err)
		case o.skipped:
			r.Skipped++
		case o.difference != nil:
			r.Differences = append(r.Differences, *o.difference)
		default:
			r.Same++
		}
	}
	return nil
}

// compare decides records concurrently.
func (e Engine) compare(first int, records []*jobpolicyv1.DecisionRecord) []outcome {
	outcomes := make([]outcome, len(records))
	var workers errgroup.Group
	workers.SetLimit(4 * runtime.GOMAXPROCS(0))
	for i, record := range records {
		workers.Go(func() error {
			outcomes[i] = e.again(first+i, record)
			return nil
		})
	}
	_ = workers.Wait() // The errors are in the outcomes.
	return outcomes
}

// again decides a record's request again.
func (e Engine) again(n int, record *jobpolicyv1.DecisionRecord) outcome {
	if skipped(record) {
		return outcome{skipped: true}
	}
	now, err := e.Decide(record)
	if err != nil && !answered(status.Code(err)) {
		return outcome{err: err}
	}
	fields := different(record, now, err)
	if len(fields) == 0 {
		return outcome{}
	}
	return outcome{difference: &Difference{
		Record: n, Object: object(record), Then: decidedBy(response(record), record.GetError().GetCode()), Now: decidedBy(now, int32(status.Code(err))), Fields: fields,
	}}
}

// Decide decides the request of a record again.
func (e Engine) Decide(record *jobpolicyv1.DecisionRecord) (proto.Message, error) {
	if cron := record.GetCronJob(); cron != nil {
		answer, err := e.CronJob(cron.GetRequest())
		return orNil(answer), err
	}
	req := record.GetJob().GetRequest()
	if e.Settings != nil {
		req = e.Settings.in(req)
	}
	answer, err := e.Job(req)
	return orNil(answer), err
}

// orNil is a message, or a nil interface for a nil message.
func orNil[M interface {
	comparable
	proto.Message
}](m M) proto.Message {
	var none M
	if m == none {
		return nil
	}
	return m
}

// Exchanged are the request of a record and its response, nil if the call failed.
func Exchanged(record *jobpolicyv1.DecisionRecord) (request, response proto.Message) {
	if cron := record.GetCronJob(); cron != nil {
		return cron.GetRequest(), orNil(cron.GetResponse())
	}
	return record.GetJob().GetRequest(), orNil(record.GetJob().GetResponse())
}

func response(record *jobpolicyv1.DecisionRecord) proto.Message {
	_, response := Exchanged(record)
	return response
}

// skipped reports whether the record has no answer, or its answer depends on a name that is
// hidden.
func skipped(record *jobpolicyv1.DecisionRecord) bool {
	if record.GetExchange() == nil || (response(record) == nil && !answered(codes.Code(record.GetError().GetCode()))) {
		return true
	}
	return record.GetRedacted() && len(record.GetCronJob().GetRequest().GetNamesTaken()) > 0
}

// answered reports whether the code is an answer of the engine to the request.
func answered(code codes.Code) bool {
	return code == codes.InvalidArgument || code == codes.Unimplemented
}

// different lists the fields of the response that differ. It does not compare explanations,
// because their words may change. Of refusals it compares the code.
func different(record *jobpolicyv1.DecisionRecord, now proto.Message, err error) []string {
	then := response(record)
	if then == nil || now == nil {
		if then == nil && now == nil && codes.Code(record.GetError().GetCode()) == status.Code(err) {
			return nil
		}
		return []string{"the answer"}
	}
	then, now = proto.Clone(then), proto.Clone(now)
	withoutNewEnd(then, now)
	if record.GetRedacted() {
		WithoutNames(then)
		WithoutNames(now)
	}
	var names []string
	a, b := then.ProtoReflect(), now.ProtoReflect()
	fields := a.Descriptor().Fields()
	for i := range fields.Len() {
		if f := fields.Get(i); !ignored[f.Name()] && !equal(f, a, b) {
			names = append(names, string(f.Name()))
		}
	}
	return names
}

// withoutNewEnd removes how a Job failed if the engine of the log did not say it: that is a report,
// and no part of what is done.
func withoutNewEnd(then, now proto.Message) {
	if before, ok := then.(*jobpolicyv1.DecideJobResponse); ok && before.GetVerdict().GetEnd() == nil {
		if verdict := now.(*jobpolicyv1.DecideJobResponse).GetVerdict(); verdict != nil {
			verdict.End = nil
		}
	}
}

// ignored are the fields that are no part of a decision.
var ignored = map[protoreflect.Name]bool{"explanation": true, "request_id": true}

func equal(f protoreflect.FieldDescriptor, a, b protoreflect.Message) bool {
	return a.Has(f) == b.Has(f) && a.Get(f).Equal(b.Get(f))
}

func object(record *jobpolicyv1.DecisionRecord) string {
	if cron := record.GetCronJob(); cron != nil {
		ref := cron.GetRequest().GetCronJob()
		return "cronjob/" + ref.GetNamespace() + "/" + ref.GetName()
	}
	ref := record.GetJob().GetRequest().GetJob()
	return "job/" + ref.GetNamespace() + "/" + ref.GetName()
}

// decidedBy names the rule of a Job's verdict, the steps of a decision on a CronJob, or the
// code of a refusal.
func decidedBy(answer proto.Message, code int32) string {
	switch answer := answer.(type) {
	case *jobpolicyv1.DecideJobResponse:
		if verdict := answer.GetVerdict(); verdict != nil {
			return verdict.GetRule().Name()
		}
		return "no verdict"
	case *jobpolicyv1.DecideCronJobResponse:
		return steps(answer)
	default:
		return "refused: " + codes.Code(code).String()
	}
}

// steps names what a decision on a CronJob does.
func steps(answer *jobpolicyv1.DecideCronJobResponse) string {
	var all []string
	for name, does := range map[string]bool{
		"create": answer.GetCreate() != nil, "delete": len(answer.GetDelete()) > 0, "edit": answer.GetEdits() != nil, "status": answer.GetStatus() != nil,
	} {
		if does {
			all = append(all, name)
		}
	}
	if all == nil {
		return "nothing"
	}
	slices.Sort(all)
	return strings.Join(all, " and ")
}
