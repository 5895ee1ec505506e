package explain

import (
	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/proto/jobend"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// An End is how a Job failed, as data.
type End struct {
	// Class is one of Deadline, NeverStarted, OutOfMemory, Infrastructure, Policy, Application
	// and Unknown.
	Class string `json:"class"`
	// Sentence says the same for people.
	Sentence string `json:"sentence"`
	// Rule is the engine's rule by which the Job ended.
	Rule string `json:"rule,omitempty"`
	// PolicyRule is the position of the rule of spec.podFailurePolicy that matched, from 0.
	PolicyRule     *int32 `json:"policyRule,omitempty"`
	PolicyRuleName string `json:"policyRuleName,omitempty"`
	Pod            string `json:"pod,omitempty"`
	Index          *int32 `json:"index,omitempty"`
	Container      string `json:"container,omitempty"`
	ExitCode       int32  `json:"exitCode,omitempty"`
	Signal         int32  `json:"signal,omitempty"`
	Reason         string `json:"reason,omitempty"`
	Tries          int32  `json:"tries,omitempty"`
	// RaisedBy is how many times the resource of the template the pod had, up to the option's max.
	RaisedBy float64 `json:"raisedBy,omitempty"`
	// Failures are the pods that failed last, the newest first, if the option endConditionFailures asks for them.
	Failures []EndFailure `json:"failures,omitempty"`
}

// An EndFailure is how one pod failed.
type EndFailure struct {
	Pod       string `json:"pod,omitempty"`
	Index     *int32 `json:"index,omitempty"`
	Container string `json:"container,omitempty"`
	ExitCode  int32  `json:"exitCode,omitempty"`
	Signal    int32  `json:"signal,omitempty"`
	Reason    string `json:"reason,omitempty"`
	// TerminationMessage is the last line of what the container said at its end.
	TerminationMessage string `json:"terminationMessage,omitempty"`
}

// end says how the Job failed: by its condition, or by the verdict that the status does not show
// yet. It says nothing if neither knows more than the rest of the report.
func (w *work) end() {
	end := w.resp.GetVerdict().GetEnd()
	if c := jobCondition(w.Job, batchv1.JobConditionType(jobend.ConditionType)); c != nil && jobCondition(w.Job, batchv1.JobFailureTarget) != nil {
		end, _ = jobend.Read(c.Reason, c.Message)
	}
	if end == nil || end.GetClass() == jobpolicyv1.EndClass_END_CLASS_UNKNOWN {
		return
	}
	w.End = &End{
		Class: jobend.ClassName(end.GetClass()), Sentence: jobend.Sentence(end), Rule: end.GetRule().Name(),
		PolicyRule: end.PolicyRuleIndex, PolicyRuleName: end.GetPolicyRuleName(),
		Pod: end.GetPodName(), Index: end.Index, Container: end.GetContainerName(),
		ExitCode: end.GetExitCode(), Signal: end.GetSignal(), Reason: end.GetReason(), Tries: end.GetTries(), RaisedBy: end.GetRaisedBy(),
	}
	for _, f := range end.GetFailures() {
		w.End.Failures = append(w.End.Failures, EndFailure{
			f.GetPodName(), f.Index, f.GetContainerName(), f.GetExitCode(), f.GetSignal(), f.GetReason(), f.GetTerminationMessage(),
		})
	}
}
