package engine_test

import (
	"google.golang.org/protobuf/proto"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// nextCreation expects that a decision which creates pods says when it leaves others to
// create: the same request with the new pods is asked again at once, or creates none.
func (p *promises) nextCreation() {
	c := p.resp.GetCreate()
	if c == nil || p.resp.GetFollowUp() == jobpolicyv1.FollowUp_FOLLOW_UP_AT_ONCE {
		return
	}
	s := &scene{req: proto.CloneOf(p.req)}
	s.created(c)
	s.req.ActivePods = nil
	next := p.ask(s.req)
	p.expect(next.GetCreate() == nil, "creates %d pods, says %s, and would create %d more", c.GetCount(), p.resp.GetFollowUp(), next.GetCreate().GetCount())
}

// nextStep expects that a decision which says NONE leaves nothing to do: the same request after the decision
// was carried out, without an event since, is answered by doing nothing.
func (p *promises) nextStep() {
	if p.resp.GetFollowUp() != jobpolicyv1.FollowUp_FOLLOW_UP_NONE {
		return
	}
	s := &scene{req: proto.CloneOf(p.req)}
	s.apply(p.resp)
	if p.resp.GetCreate() == nil {
		s.req.ActivePods = p.rowsOnceTold()
	}
	if p.resp.GetStatus() == nil {
		s.req.ConfirmedReleases = p.req.GetConfirmedReleases()
	}
	next := p.ask(s.req)
	p.expect(next.GetDisposition() == jobpolicyv1.Disposition_DISPOSITION_SETTLED, "says NONE, and would then do more: %s", render(next))
}

// rowsOnceTold are the active pods after those to end have been told so.
func (p *promises) rowsOnceTold() *jobpolicyv1.ActivePods {
	seconds := map[string]int64{}
	for _, e := range p.resp.GetEnd() {
		seconds[string(e.GetUid())] = e.GetActiveDeadlineSeconds()
	}
	rows := proto.CloneOf(p.req.GetActivePods())
	for _, pod := range rows.GetPods() {
		if told, ok := seconds[string(pod.GetUid())]; ok {
			pod.ActiveDeadlineSeconds = proto.Int64(told)
		}
	}
	return rows
}
