package exhaustive

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/tracker"
)

// An op is one thing that a tracker is told.
type op struct {
	kind   opKind
	job    *jobVersion
	pod    *podVersion
	pods   [maxPods]*podVersion // listEnds: the list; sweep: the pod cache.
	rv     uint64
	marks  tracker.Marks
	source tracker.Source
	status *batchv1.JobStatus
}

type opKind int8

const (
	seeJob opKind = iota
	seePod
	losePod
	jobGone
	createBegins
	created
	creationUnknown
	callBegins
	callEnds
	listBegins
	listEnds
	podDeleted
	expect
	mark
	clearMark
	sweep
)

// A replay is a tracker that is told again what an executor was told.
type replay struct {
	*tracker.Job
	creation *tracker.Creation
	list     *tracker.List
	end      func()
	plant    Plant
}

func (r *replay) tell(o op) {
	switch o.kind {
	case seeJob:
		r.Observe(o.job.job, o.source)
		if r.plant == NoFence && o.source == tracker.Watch {
			r.Clear(tracker.StalePods)
		}
	case seePod:
		r.ObservePod(o.pod.seen, o.source)
	case losePod:
		r.PodGone(o.pod.seen.UID, o.source)
	case jobGone:
		r.Gone(nil, true)
	case expect:
		r.Expect(o.status)
	case mark:
		r.Mark(o.marks)
	case clearMark:
		r.Clear(o.marks)
	case podDeleted:
		r.PodDeleted(o.pod.seen.UID)
	case sweep:
		r.SweepPods(o.rv, func(pod *podcache.Pod) *podcache.Pod { return stored(&o.pods, pod) })
	default:
		r.tellCall(o)
	}
}

func (r *replay) tellCall(o op) {
	switch o.kind {
	case createBegins:
		r.creation = r.BeginCreate(int32(o.rv) - 1)
	case created:
		r.creation.Created(o.pod.seen)
	case creationUnknown:
		if r.plant == LostCreationForgotten {
			r.creation.Refused()
			return
		}
		r.creation.Unknown(false)
	case callBegins:
		r.end = r.BeginCall()
	case callEnds:
		r.end()
	case listBegins:
		r.list = r.BeginList()
	case listEnds:
		var pods []*podcache.Pod
		for _, v := range o.pods {
			if v != nil {
				pods = append(pods, v.seen)
			}
		}
		r.list.End(pods, fmt.Sprint(o.rv))
	}
}

// stored is a pod as the pod cache has it; nil: it has none.
func stored(cached *[maxPods]*podVersion, pod *podcache.Pod) *podcache.Pod {
	if v := cached[podNumber(pod.UID)]; v != nil {
		return v.seen
	}
	return nil
}
