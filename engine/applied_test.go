package engine_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/engine/indexset"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// apply carries a decision out without faults, and returns what it did. Created pods are
// visible at once, releases are confirmed at once, and deleted pods are terminating until
// the scenario changes that.
func (s *scene) apply(resp *jobpolicyv1.DecideJobResponse) string {
	var did []string
	if resp.GetDisposition() != jobpolicyv1.Disposition_DISPOSITION_APPLY {
		return "applied: nothing\n"
	}
	if c := resp.GetCreate(); c != nil {
		s.created(c)
		did = append(did, fmt.Sprintf("%d pods created", c.GetCount()))
	}
	for _, d := range resp.GetDelete() {
		s.deleted(d)
		did = append(did, uidName(d.GetUid())+" deleted")
	}
	if resp.GetStatus() != nil {
		s.req.Status = proto.CloneOf(resp.GetStatus())
		did = append(did, "status written")
	}
	s.req.ConfirmedReleases = nil
	for _, released := range resp.GetRelease() {
		s.req.UnaccountedPods = slices.DeleteFunc(s.req.UnaccountedPods, func(pod *jobpolicyv1.UnaccountedPod) bool {
			return bytes.Equal(pod.GetUid(), released)
		})
		s.req.ConfirmedReleases = append(s.req.ConfirmedReleases, released)
		did = append(did, uidName(released)+" released")
	}
	for _, uid := range resp.GetDeleteFinished() {
		did = append(did, uidName(uid)+" deleted")
	}
	s.deleteFinished(resp)
	s.req.ActivePods = nil
	return "applied: " + strings.Join(did, ", ") + "\n"
}

func (s *scene) created(c *jobpolicyv1.CreatePods) {
	p := s.req.Pods
	p.Active += c.GetCount()
	p.TrackedActive += c.GetCount()
	if c.GetIndexes() != nil {
		p.ActiveIndexes = indexes(p.GetActiveIndexes()).Union(indexes(c.GetIndexes())).Message()
	}
}

// deleted makes an active pod a terminating one. It keeps its row as long as it
// keeps its finalizer.
func (s *scene) deleted(d *jobpolicyv1.DeletePod) {
	i := slices.IndexFunc(s.req.ActivePods.GetPods(), func(pod *jobpolicyv1.ActivePod) bool {
		return bytes.Equal(pod.GetUid(), d.GetUid())
	})
	pod, p := s.req.ActivePods.GetPods()[i], s.req.Pods
	p.Active--
	p.Terminating++
	if pod.GetReady() {
		p.Ready = max(0, p.Ready-1)
	}
	if pod.GetTracked() {
		p.TrackedActive--
	}
	if pod.Index != nil {
		s.forgetIndex(d, pod.GetIndex())
	}
	if d.GetReleaseFirst() || !pod.GetTracked() {
		return
	}
	s.req.UnaccountedPods = append(s.req.UnaccountedPods, &jobpolicyv1.UnaccountedPod{
		Uid: pod.GetUid(), Phase: pod.GetPhase(), Deleting: true, Index: pod.Index, FinishedTime: s.req.GetNow(),
	})
}

// forgetIndex takes the index out of the active ones, unless another active pod
// has it too.
func (s *scene) forgetIndex(d *jobpolicyv1.DeletePod, ix int32) {
	for _, pod := range s.req.ActivePods.GetPods() {
		if !bytes.Equal(pod.GetUid(), d.GetUid()) && pod.Index != nil && pod.GetIndex() == ix {
			return
		}
	}
	p := s.req.Pods
	p.ActiveIndexes = indexes(p.GetActiveIndexes()).Minus(indexset.Of(ix)).Message()
	p.TerminatingIndexes = indexes(p.GetTerminatingIndexes()).Union(indexset.Of(ix)).Message()
}
