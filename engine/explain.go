package engine

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/engine/internal/rules"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// explain says how the decision came about.
func explain(s *snapshot, t tally, answers []asked, p plan) *jobpolicyv1.Explanation {
	e := &jobpolicyv1.Explanation{Facts: jobFacts(s, t, p), Generation: s.req.GetJob().GetGeneration()}
	e.Rules, e.DecidingRule = rules.Explain(answers)
	return e
}

func jobFacts(s *snapshot, t tally, p plan) *jobpolicyv1.JobFacts {
	f := &jobpolicyv1.JobFacts{
		Succeeded:           clamp32(t.succeeded),
		Failed:              clamp32(t.failed),
		RetriesLeft:         clamp32(int64(s.spec.GetBackoffLimit()) - t.failed),
		ConsecutiveFailures: t.retry.consecutive,
		FailedIndexes:       clamp32(t.failedIndexes.Len()),
	}
	if s.indexed {
		f.CompletedIndexes = clamp32(t.succeededIndexes.Len())
	}
	if p.wanted != nil {
		f.WantedActive = proto.Int32(*p.wanted)
	}
	return f
}

// summarize says in one sentence what is decided and why.
func summarize(s *snapshot, v verdict, p plan, resp *jobpolicyv1.DecideJobResponse) string {
	parts := []string{headline(s, v, p, resp)}
	if g := resp.GetGang(); g != nil && resp.GetDisposition() == jobpolicyv1.Disposition_DISPOSITION_APPLY {
		parts = append(parts, gangText(g))
	}
	if n := len(resp.GetDelete()); n > 0 {
		parts = append(parts, fmt.Sprintf("delete pods: %d", n))
	}
	if n := len(resp.GetEnd()); n > 0 {
		parts = append(parts, fmt.Sprintf("end pods: %d", n))
	}
	if n := len(resp.GetRelease()); n > 0 {
		parts = append(parts, fmt.Sprintf("release finished pods: %d", n))
	}
	if n := len(resp.GetDeleteFinished()); n > 0 {
		parts = append(parts, fmt.Sprintf("delete finished pods that the Job need not keep: %d", n))
	}
	if text := overdueText(s, resp); text != "" {
		parts = append(parts, text)
	}
	for _, w := range resp.GetExplanation().GetWaits() {
		parts = append(parts, "wait: "+w.GetDetail())
	}
	return strings.Join(parts, "; ")
}

func gangText(g *jobpolicyv1.Gang) string {
	text := fmt.Sprintf("gang of at least %d", g.GetMinCount())
	switch {
	case g.TemplateName != nil:
		text = fmt.Sprintf("pod group of the template %q of the Job's controller", g.GetTemplateName())
	case g.GetMinCount() == 0:
		text = "pod group without a gang"
	}
	if g.GetMayCreate() {
		return text
	}
	return text + ", if the Job already has one"
}

func headline(s *snapshot, v verdict, p plan, resp *jobpolicyv1.DecideJobResponse) string {
	switch {
	case v.kind == succeeds:
		return fmt.Sprintf("the Job succeeds (%s)", v.reason)
	case v.kind == fails:
		return fmt.Sprintf("the Job fails (%s: %s)", v.reason, v.message)
	case s.spec.GetDeleting():
		return "the Job is being deleted"
	case s.deleting():
		return "the Job's namespace is being deleted"
	case s.spec.GetSuspend():
		return "the Job is suspended"
	case s.held():
		return "the Job does not start"
	case resp.GetCreate() != nil:
		return fmt.Sprintf("create pods: %d%s; then active: %d of %d wanted", resp.GetCreate().GetCount(), raisedText(resp.GetCreate().GetRaised()), p.active, *p.wanted)
	}
	return fmt.Sprintf("active: %d of %d wanted", p.active, *p.wanted)
}

// trimExplanation removes what the caller did not ask for.
func trimExplanation(e *jobpolicyv1.Explanation, explain jobpolicyv1.Explain) *jobpolicyv1.Explanation {
	switch explain {
	case jobpolicyv1.Explain_EXPLAIN_NONE:
		return nil
	case jobpolicyv1.Explain_EXPLAIN_FACTS:
		e.Summary, e.Rules = "", nil
		for _, w := range e.GetWaits() {
			w.Detail = ""
		}
	}
	return e
}
