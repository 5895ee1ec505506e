package engine_test

import (
	"time"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// ends expects that only pods of Jobs that ask for it are ended, after the status says that the Job fails, and each once. A
// pod of such a Job is deleted only if no node can end it, or if its end is overdue.
func (p *promises) ends() {
	asks := p.req.GetSpec().GetOptions().GetWhenJobFails() == jobpolicyv1.WhenJobFails_WHEN_JOB_FAILS_END_PODS &&
		is(p.req.GetStatus(), failureTarget) && !is(p.req.GetStatus(), criteriaMet) && !p.req.GetSpec().GetSuspend()
	ends := p.resp.GetEnd()
	p.expect(len(ends) == 0 || asks && !p.deleting(), "ends pods although nobody asks for it, or too early")
	p.expect(len(ends) == 0 || !deferred(p.req, deletePods), "ends before it may")
	deleted := map[string]bool{}
	for _, d := range p.resp.GetDelete() {
		deleted[string(d.GetUid())] = true
	}
	rows := map[string]*jobpolicyv1.ActivePod{}
	for _, row := range p.req.GetActivePods().GetPods() {
		rows[string(row.GetUid())] = row
		p.expect(!asks || !deleted[string(row.GetUid())] || row.GetStartTime() == nil || p.endOverdue(row), "deletes %x, which its node can end", row.GetUid())
	}
	for _, e := range ends {
		row, n := rows[string(e.GetUid())], e.GetActiveDeadlineSeconds()
		p.expect(row.GetStartTime() != nil && !deleted[string(e.GetUid())], "ends %x: no node has taken it, or it is deleted", e.GetUid())
		delete(rows, string(e.GetUid()))
		p.expect(row.ActiveDeadlineSeconds == nil || row.GetActiveDeadlineSeconds() > n, "ends %x, which may be active for %ds anyway", e.GetUid(), row.GetActiveDeadlineSeconds())
		active := p.req.GetNow().GetSeconds() - row.GetStartTime().GetSeconds()
		p.expect(n == 1 && active <= 1 || n == min(active, 1<<31-1), "a pod that has been active for %ds may be for %ds", active, n)
	}
}

// endOverdue reports whether the pod has had a minute and its grace period, after the time for which it may be active; or nobody has
// managed to limit that for an hour.
func (p *promises) endOverdue(row *jobpolicyv1.ActivePod) bool {
	now := p.req.GetNow().AsTime()
	for _, c := range p.req.GetStatus().GetConditions() {
		if c.GetType() == failureTarget && c.GetLastTransitionTime() != nil && !c.GetLastTransitionTime().AsTime().Add(time.Hour).After(now) {
			return true
		}
	}
	active := p.req.GetNow().GetSeconds() - row.GetStartTime().GetSeconds()
	told := row.ActiveDeadlineSeconds != nil && row.GetActiveDeadlineSeconds() <= active
	return active > 1<<31-1 || told && row.GetActiveDeadlineSeconds()+min(row.GetGracePeriodSeconds(), 1<<31)+60 <= active
}
