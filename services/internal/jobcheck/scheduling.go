package jobcheck

import (
	"fmt"
	"reflect"

	"k8s.io/utils/ptr"
)

// scheduling finds what the API server (v1.37, with the gate WorkloadWithJob) refuses in spec.scheduling.
func scheduling(s *subject) {
	declared := s.spec.Scheduling
	if declared == nil {
		return
	}
	s.fields("scheduling", reflect.ValueOf(declared))
	policy, mode := declared.SchedulingPolicy, declared.DisruptionMode
	if basic := policy == nil || policy.Basic != nil; basic && mode != nil && mode.All != nil {
		s.find(Error, "scheduling.disruptionMode", "must not be all with the policy basic, which is also the default: pods that are scheduled one by one are disrupted one by one")
	}
	if policy == nil || policy.Gang == nil {
		return
	}
	if n, most := ptr.Deref(policy.Gang.MinCount, 0), ptr.Deref(s.spec.Parallelism, 1); n > most {
		s.find(Error, "scheduling.schedulingPolicy.gang.minCount", fmt.Sprintf("must not be more than parallelism, which is %d; is %d", most, n))
	}
}
