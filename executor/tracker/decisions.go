package tracker

import (
	"cmp"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Decision is the last decision on a Job. The explanations are kept encoded, to save
// memory: every finished Job has one, and few are ever read.
type Decision struct {
	// Time is the request's now: wall time.
	Time time.Time
	// Explanation is empty if the caller asked for none.
	Explanation []byte
	// Verdict is the explanation of how and why the Job ends; nil if it does not end yet.
	Verdict []byte
}

// Explained is the decoded explanation of the decision; nil if there is none.
func (d *Decision) Explained() *jobpolicyv1.Explanation {
	if d == nil {
		return nil
	}
	return decoded(d.Explanation)
}

// Ended is the decoded explanation of how and why the Job ends; nil if there is none.
func (d *Decision) Ended() *jobpolicyv1.Explanation {
	if d == nil {
		return nil
	}
	return decoded(d.Verdict)
}

func decoded(explanation []byte) *jobpolicyv1.Explanation {
	e := &jobpolicyv1.Explanation{}
	if explanation == nil || proto.Unmarshal(explanation, e) != nil {
		return nil
	}
	return e
}

// after returns the record of the decision that follows d. verdict says how the Job ends;
// nil if it does not end yet. A decision that only repeats a verdict does not explain it,
// so the record keeps the explanation of the first one. A restart loses that.
func (d *Decision) after(at time.Time, verdict *jobpolicyv1.Verdict, explanation []byte) *Decision {
	r := &Decision{Time: at, Explanation: explanation}
	switch {
	case verdict.GetRepeated() && d != nil && d.Verdict != nil:
		r.Verdict = d.Verdict
	case verdict != nil:
		r.Verdict = explanation
	}
	return r
}

// Options returns the options to ask with: those that were read, or the last ones that could be if problems say
// that these cannot. With problems, read are those that the Job's annotation has, which this process may not have
// known. If the last ones were none, they are empty; nil with problems: they are not known.
func (j *Job) Options(read *jobpolicyv1.JobOptions, problems []string) *jobpolicyv1.JobOptions {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(problems) > 0 {
		j.decisions.options = cmp.Or(j.decisions.options, read)
		return j.decisions.options
	}
	j.decisions.options, j.decisions.kept = cmp.Or(read, noOptions), "" // The next status may have others than those kept.
	return read
}

// KeptOptions records the text that the Job's annotation has got because its options cannot be read any more.
func (j *Job) KeptOptions(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.decisions.kept = text
}

// HasKeptOptions reports whether that text was the last one. The annotation may lack it all the same: an admission
// webhook may have taken it out.
func (j *Job) HasKeptOptions(text string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.decisions.kept == text
}

// NewProblems records what is told to be wrong with the Job's options, and reports whether something else, or nothing,
// was told before.
func (j *Job) NewProblems(problems []string) bool {
	text := strings.Join(problems, "\n")
	j.mu.Lock()
	defer j.mu.Unlock()
	before := j.decisions.problems
	j.decisions.problems = text
	return before != text && text != ""
}

// noOptions are those of a Job that has none. They are never changed.
var noOptions = &jobpolicyv1.JobOptions{}

// decisions are what is known of the engine's decisions on a Job.
type decisions struct {
	last *Decision
	// requests is how many requests were made.
	requests uint64
	// rejected is the generation that the engine rejected last, and why the reason; empty if the
	// engine has decided on the Job since.
	rejected int64
	why      string
	// problems are those of the options that were told last, each on a line.
	problems string
	// options are the last ones that could be read; nil: that was never so.
	options *jobpolicyv1.JobOptions
	// kept is the text that the Job's annotation got last because its options could not be read any more.
	kept string
}

// NextRequest returns the number of the next request.
func (j *Job) NextRequest() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.decisions.requests++
	return j.decisions.requests
}

// Rejected records that the engine rejects a generation of the Job, and for which reason. It
// reports whether the rejection was not known before.
func (j *Job) Rejected(generation int64, why string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	known := j.decisions.rejected == generation && generation != 0
	j.decisions.rejected, j.decisions.why = generation, why
	return !known
}

// Rejection is the reason for which the engine makes no decision about the Job; empty if it does.
func (j *Job) Rejection() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.decisions.why
}

// Decided records a decision with its encoded explanation.
func (j *Job) Decided(at time.Time, verdict *jobpolicyv1.Verdict, explanation []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.decisions.why = ""
	if !j.version.gone() {
		j.decisions.last = j.decisions.last.after(at, verdict, explanation)
	}
}

// LastDecision returns the last decision; nil if there is none, or the Job is gone.
func (j *Job) LastDecision() *Decision {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.decisions.last
}
