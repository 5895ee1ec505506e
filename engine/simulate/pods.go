package simulate

import (
	"encoding/binary"
	"fmt"
	"time"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// The kubelet's delay before it restarts a container that failed.
const (
	restartDelay    = 10 * time.Second
	maxRestartDelay = 5 * time.Minute
)

// exitStopped is the exit code of a container that a signal ended.
const exitStopped = 143

// simPod is one pod of the play.
type simPod struct {
	life *Pod
	uid  []byte
	// key is the index, or the number of the pod: what scripts name.
	key   int32
	index *int32
	phase jobpolicyv1.PodPhase

	tracked, ready, deleting, disrupted bool

	readySince, finished time.Duration
	restarts             int32
	failures, ignored    int32
	exitCode             int32
}

func (p *simPod) ended() bool {
	return p.phase == jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED || p.phase == jobpolicyv1.PodPhase_POD_PHASE_FAILED
}

func (p *simPod) active() bool { return !p.ended() && !p.deleting }

func podUID(number int) []byte {
	uid := append(make([]byte, 0, 16), "simulate"...)
	return binary.BigEndian.AppendUint64(uid, uint64(number)+1)
}

// addPod creates a pod; index is nil unless the Job is Indexed.
func (p *player) addPod(index *int32, counts *jobpolicyv1.IndexFailureCount) {
	number := len(p.result.Pods)
	life := &Pod{Number: number, Created: p.now, Name: fmt.Sprintf("%s-%d", p.sc.Job.GetName(), number)}
	pod := &simPod{
		life: life, uid: podUID(number), key: int32(number), index: index, tracked: true,
		phase:    jobpolicyv1.PodPhase_POD_PHASE_PENDING,
		failures: counts.GetFailures(), ignored: counts.GetIgnoredFailures(),
	}
	if index != nil {
		pod.key, life.Index = *index, index
		life.Attempt = p.attempts[*index]
		life.Name = fmt.Sprintf("%s-%d", p.sc.Job.GetName(), *index)
		if life.Attempt > 0 {
			life.Name += fmt.Sprintf(" (attempt %d)", life.Attempt+1)
		}
		p.attempts[*index]++
	}
	p.result.Pods = append(p.result.Pods, life)
	p.pods = append(p.pods, pod)
	p.tracked[string(pod.uid)] = true
	p.say(PodsCreated, pod, "")
	if p.sc.outcome(pod.key, p.runs[pod.key]).Ending == NeverStarts {
		return
	}
	p.in(p.sc.StartDelay, func() { p.start(pod) })
}

func (p *player) start(pod *simPod) {
	if !pod.active() {
		return
	}
	pod.phase, pod.ready, pod.readySince = jobpolicyv1.PodPhase_POD_PHASE_RUNNING, true, p.now
	started := p.now
	pod.life.Started = &started
	p.say(PodsStarted, pod, "")
	p.runContainer(pod)
}

// runContainer starts the pod's container, and plans its end.
func (p *player) runContainer(pod *simPod) {
	o := p.sc.outcome(pod.key, p.runs[pod.key])
	p.runs[pod.key]++
	if o.Ending == Hangs || o.Ending == NeverStarts {
		return
	}
	p.in(o.After, func() {
		if pod.active() {
			p.endContainer(pod, o)
		}
	})
}

func (p *player) endContainer(pod *simPod, o Outcome) {
	switch {
	case o.Ending == Succeeds:
		p.end(pod, jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED, 0)
		p.say(PodsSucceeded, pod, "")
	case o.Ending == Evicted:
		pod.disrupted = true
		p.end(pod, jobpolicyv1.PodPhase_POD_PHASE_FAILED, exitStopped)
		p.say(PodsEvicted, pod, "")
	case p.spec.GetRestartPolicy() == jobpolicyv1.RestartPolicy_RESTART_POLICY_ON_FAILURE:
		p.restart(pod, o.ExitCode)
	default:
		p.end(pod, jobpolicyv1.PodPhase_POD_PHASE_FAILED, o.ExitCode)
		p.say(PodsFailed, pod, fmt.Sprintf("exit code %d", o.ExitCode))
	}
}

// restart starts a failed container again, in its pod, after the kubelet's delay.
func (p *player) restart(pod *simPod, exitCode int32) {
	pod.ready = false
	delay := crashLoopDelay(pod.restarts)
	p.say(ContainersFailed, pod, fmt.Sprintf("exit code %d; restarted in the pod %s", exitCode, soon(delay)))
	pod.exitCode = exitCode
	pod.life.Failures = append(pod.life.Failures, p.now)
	p.in(delay, func() {
		if !pod.active() {
			return
		}
		pod.restarts++
		pod.life.Restarts++
		pod.ready, pod.readySince = true, p.now
		p.say(ContainersRestarted, pod, fmt.Sprintf("restart %d", pod.restarts))
		p.runContainer(pod)
	})
}

func soon(d time.Duration) string {
	if d == 0 {
		return "at once"
	}
	return "after " + Clock(d)
}

func crashLoopDelay(restarts int32) time.Duration {
	if restarts == 0 {
		return 0
	}
	delay := restartDelay
	for range restarts - 1 {
		delay = min(2*delay, maxRestartDelay)
	}
	return delay
}

func (p *player) end(pod *simPod, phase jobpolicyv1.PodPhase, exitCode int32) {
	pod.phase, pod.ready, pod.finished, pod.exitCode = phase, false, p.now, exitCode
	ended := p.now
	pod.life.Ended = &ended
	pod.life.ExitCode = exitCode
	switch {
	case pod.disrupted:
		pod.life.Outcome = "evicted"
	case phase == jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED:
		pod.life.Outcome = "succeeded"
	case pod.deleting:
		pod.life.Outcome = "deleted"
	default:
		pod.life.Outcome = "failed"
	}
	if !pod.tracked {
		return // it counts nowhere
	}
	if at := p.at(p.now); phase == jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED {
		p.retry.LastSuccessTime = at
		p.retry.RecentFailures = nil
	} else {
		p.retry.RecentFailures = append(p.retry.RecentFailures, &jobpolicyv1.PodFailureFact{FinishedTime: at, Failure: p.failure(pod)})
		if n := len(p.retry.RecentFailures); n > maxRecentFailures {
			p.retry.RecentFailures = p.retry.RecentFailures[n-maxRecentFailures:]
		}
	}
}

// maxRecentFailures is how many recent failures the contract allows.
const maxRecentFailures = 64

// remove deletes a pod: it ends a little later, as failed.
func (p *player) remove(pod *simPod, releaseFirst bool, why string) {
	pod.deleting, pod.ready, pod.finished = true, false, p.now
	if releaseFirst {
		p.release(pod)
	}
	p.say(PodsDeleted, pod, why)
	p.in(p.sc.StopDelay, func() {
		if !pod.ended() {
			p.end(pod, jobpolicyv1.PodPhase_POD_PHASE_FAILED, exitStopped)
		}
	})
}

func (p *player) release(pod *simPod) {
	pod.tracked = false
	delete(p.tracked, string(pod.uid))
}

// failure is what the pod failure policy reads.
func (p *player) failure(pod *simPod) *jobpolicyv1.PodFailure {
	f := &jobpolicyv1.PodFailure{PodName: pod.life.Name}
	if pod.exitCode != 0 {
		f.ContainerExits = []*jobpolicyv1.ContainerExit{{ContainerName: p.sc.Container, ExitCode: pod.exitCode}}
	}
	if pod.disrupted {
		f.Conditions = []*jobpolicyv1.PodConditionPattern{{
			Type: "DisruptionTarget", Status: jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE,
		}}
	}
	return f
}
