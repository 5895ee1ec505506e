package simulate

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"jobpolicy.dev/proto/answer"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/options"
	"jobpolicy.dev/proto/podfacts"
)

// simPod is one pod of the play.
type simPod struct {
	counted podfacts.Counted[*simPod]
	life    *Pod
	uid     []byte
	// key is the index, or the number of the pod: what scripts name.
	key        int32
	index      *int32
	phase      jobpolicyv1.PodPhase
	containers []*simContainer

	tracked, ready, deleting, disrupted bool
	// stopping: its containers are being stopped, but it is not deleted. overdue: its
	// deadline is over.
	stopping, overdue bool
	// deadline is how long it may be active; 0: for ever.
	deadline time.Duration
	// lost: its node is lost. missed is what its kubelet does when the node is back.
	lost   bool
	missed []func()

	readySince, finished time.Duration
	failures, ignored    int32
	// step is how often its resources were raised.
	step int32
}

func (pod *simPod) ended() bool {
	return pod.phase == jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED || pod.phase == jobpolicyv1.PodPhase_POD_PHASE_FAILED
}

func (pod *simPod) active() bool { return !pod.ended() && !pod.deleting }

// runs says whether the kubelet still starts containers of the pod.
func (pod *simPod) runs() bool { return pod.active() && !pod.stopping }

func podUID(number int) []byte {
	uid := append(make([]byte, 0, 16), "simulate"...)
	return binary.BigEndian.AppendUint64(uid, uint64(number)+1)
}

// addPod creates a pod of a decision.
func (p *player) addPod(c *jobpolicyv1.CreatePods, n answer.NewPod) {
	number, index := len(p.result.Pods), n.Index
	life := &Pod{Number: number, Created: p.now, Name: fmt.Sprintf("%s-%d", p.sc.Job.GetName(), number)}
	pod := &simPod{
		life: life, uid: podUID(number), key: int32(number), index: index, tracked: true,
		phase:    jobpolicyv1.PodPhase_POD_PHASE_PENDING,
		failures: n.Failures, ignored: n.IgnoredFailures, step: n.Raised.GetStep(), deadline: p.deadline(c),
	}
	for i := range p.sc.Containers {
		pod.containers = append(pod.containers, &simContainer{Container: &p.sc.Containers[i]})
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
	pod.counted.Pod = pod
	p.counter.Add(&pod.counted, true)
	p.tracked[string(pod.uid)] = true
	p.say(PodsCreated, pod, more(n.Raised))
	p.onNodeIn(pod, p.sc.StartDelay, func() { p.sync(pod) })
	if pod.deadline > 0 {
		p.onNodeIn(pod, pod.deadline, func() { p.overdue(pod) })
	}
}

// more says what a pod gets more of than the template says.
func more(raised *jobpolicyv1.RaisedPods) string {
	if raised == nil {
		return ""
	}
	enum := raised.GetResource().Descriptor()
	return fmt.Sprintf("%.4g times the template's %s, at most %s", raised.GetMultiplier(),
		strings.ToLower(options.EnumName(enum, enum.Values().ByNumber(raised.GetResource().Number()))), raised.GetMax())
}

// deadline is how long a new pod may be active: as the template says, or the decision if that is
// shorter; 0: for ever.
func (p *player) deadline(c *jobpolicyv1.CreatePods) time.Duration {
	try := time.Duration(c.GetActiveDeadlineSeconds()) * time.Second
	if try == 0 || p.sc.PodDeadline > 0 && p.sc.PodDeadline < try {
		return p.sc.PodDeadline
	}
	return try
}

// sync does what the kubelet does next with a pod.
func (p *player) sync(pod *simPod) {
	if !pod.runs() {
		return
	}
	start, over := pod.next()
	if over {
		p.stop(pod)
		return
	}
	for _, c := range start {
		p.runContainer(pod, c)
	}
	if len(start) > 0 {
		p.sync(pod) // After a sidecar, the next one starts, too.
		return
	}
	if pod.life.Started == nil && pod.began() {
		started := p.now
		pod.phase, pod.life.Started = jobpolicyv1.PodPhase_POD_PHASE_RUNNING, &started
		p.say(PodsStarted, pod, "")
	}
	if ready := pod.allRun(); ready != pod.ready {
		pod.ready, pod.readySince = ready, p.now
	}
}

// runContainer starts a container, and plans its end.
func (p *player) runContainer(pod *simPod, c *simContainer) {
	key := runKey{pod.key, c.Name}
	o, last := p.sc.outcome(pod.key, c.Container, p.runs[key])
	p.runs[key]++
	if o.Ending == NeverStarts && c.state == notStarted {
		c.state = unstartable
		return
	}
	c.state, c.reason = running, ""
	if o.Ending == Hangs || o.Ending == NeverStarts {
		return
	}
	c.loops = c.restarts >= shownRestarts && p.endless(c, o, last)
	p.inLoop(pod, c, o.After, func() {
		if pod.runs() {
			p.endContainer(pod, c, o)
		}
	})
}

func (p *player) endContainer(pod *simPod, c *simContainer, o Outcome) {
	if o.Ending == Evicted {
		pod.disrupted = true
		pod.halt(exitTerminated)
		p.end(pod)
		p.say(PodsEvicted, pod, "")
		return
	}
	c.state, c.exitCode, pod.ready = done, o.ExitCode, false
	if o.OutOfMemory {
		c.reason = outOfMemory
	}
	if c.Restarted(o.ExitCode, p.spec.GetRestartPolicy()) {
		p.restart(pod, c)
		return
	}
	// If the pod ends now, it is the pod of which this is said.
	if _, over := pod.next(); (!over || pod.anyRuns()) && (!c.Init || o.ExitCode != 0) {
		p.sayEnd(pod, c, "")
	}
	p.sync(pod)
}

// restart starts a container again, in its pod, after the kubelet's delay.
func (p *player) restart(pod *simPod, c *simContainer) {
	delay := c.nextDelay(p.now)
	c.state = restarting
	p.sayEnd(pod, c, "; restarted in the pod "+soon(delay))
	if c.exitCode != 0 {
		pod.life.Failures = append(pod.life.Failures, p.now)
	}
	p.inLoop(pod, c, delay, func() {
		if !pod.runs() {
			return
		}
		c.restarts++
		c.delay, c.restartedAt = delay, p.now
		pod.life.Restarts++
		p.restarts++
		p.sayOf(ContainersRestarted, pod, c, fmt.Sprintf("restart %d", c.restarts))
		p.runContainer(pod, c)
		p.sync(pod)
	})
}

func soon(d time.Duration) string {
	if d == 0 {
		return "at once"
	}
	return "after " + Clock(d)
}

// shownRestarts is how many restarts of a container are shown before a play ends in which
// nothing else happens.
const shownRestarts = 3

// endless says whether a container is restarted for ever, and the Job does not count it.
func (p *player) endless(c *simContainer, o Outcome, last bool) bool {
	policy := p.spec.GetRestartPolicy()
	return policy == jobpolicyv1.RestartPolicy_RESTART_POLICY_NEVER &&
		(c.RestartPolicy == restartAlways || last && o.Ending != Evicted && c.Restarted(o.ExitCode, policy))
}

// podOverdue is the reason in the status of a pod whose own deadline is over, as the kubelet writes it.
const podOverdue = "DeadlineExceeded"

// overdue stops a pod whose own deadline is over.
func (p *player) overdue(pod *simPod) {
	if !pod.active() || pod.overdue {
		return
	}
	pod.overdue = true
	p.say(PodsOverdue, pod, fmt.Sprintf("activeDeadlineSeconds of the pod is %.0f", pod.deadline.Seconds()))
	p.stop(pod)
}

// tellToEnd sets the deadline of a pod to a time that is over.
func (p *player) tellToEnd(pod *simPod, e *jobpolicyv1.EndPod) {
	pod.deadline, pod.overdue = time.Duration(e.GetActiveDeadlineSeconds())*time.Second, true
	p.say(PodsToldToEnd, pod, "the Job is over, and the logs stay")
	pod.onNode(func() { p.stop(pod) })
}

// stop ends a pod: its containers have ended, but for the sidecars, or must end. The
// kubelet writes the last phase when nothing runs any more.
func (p *player) stop(pod *simPod) {
	if pod.stopping {
		return
	}
	pod.stopping, pod.ready = true, false
	end := func() {
		if !pod.active() {
			return
		}
		pod.halt(p.stopCode())
		p.end(pod)
		p.sayOutcome(pod)
	}
	if pod.anyRuns() {
		p.onNodeIn(pod, p.stopTime(), end)
		return
	}
	end()
}

// stopTime is how long containers need to end, and stopCode their exit code: what does not
// end in the pod's grace period is killed.
func (p *player) stopTime() time.Duration { return min(p.sc.StopDelay, p.grace()) }

func (p *player) grace() time.Duration { return max(p.sc.GracePeriod, minGracePeriod) }

func (p *player) stopCode() int32 {
	if p.sc.StopDelay > p.grace() {
		return exitKilled
	}
	return exitTerminated
}

func (p *player) end(pod *simPod) {
	pod.phase = jobpolicyv1.PodPhase_POD_PHASE_FAILED
	if !pod.disrupted && !pod.overdue && pod.succeeded() {
		pod.phase = jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED
	}
	ended := p.now
	pod.ready, pod.finished = false, ended
	pod.life.Ended = &ended
	pod.life.Outcome = pod.outcome()
	if exits := pod.exits(false); len(exits) > 0 {
		pod.life.ExitCode = exits[0].GetExitCode()
	}
}

func (pod *simPod) outcome() string {
	switch {
	case pod.disrupted:
		return "evicted"
	case pod.phase == jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED:
		return "succeeded"
	case pod.deleting:
		return "deleted"
	}
	return "failed"
}

// remove deletes a pod: it ends a little later.
func (p *player) remove(pod *simPod, releaseFirst bool, why string) {
	pod.deleting, pod.ready, pod.finished = true, false, p.now
	if releaseFirst {
		p.release(pod)
	}
	p.say(PodsDeleted, pod, why)
	pod.onNode(func() {
		p.onNodeIn(pod, p.stopTime(), func() {
			if !pod.ended() {
				pod.halt(p.stopCode())
				p.end(pod)
			}
		})
	})
}

func (p *player) release(pod *simPod) {
	if pod.tracked && p.givenUp(pod) {
		p.say(PodsGivenUp, pod, "it has not ended by its termination deadline")
	}
	pod.tracked = false
	delete(p.tracked, string(pod.uid))
}

// exits are the exit codes other than 0, in the order in which a pod's status has them, with
// or without those of sidecars.
func (pod *simPod) exits(sidecars bool) []*jobpolicyv1.ContainerExit {
	var main, init []*jobpolicyv1.ContainerExit
	for _, c := range pod.containers {
		if c.state != done || c.exitCode == 0 || c.sidecar() && !sidecars {
			continue
		}
		list := &main
		if c.Init {
			list = &init
		}
		*list = append(*list, &jobpolicyv1.ContainerExit{ContainerName: c.Name, ExitCode: c.exitCode, Reason: c.reason})
	}
	slices.SortFunc(main, func(a, b *jobpolicyv1.ContainerExit) int {
		return cmp.Compare(a.GetContainerName(), b.GetContainerName())
	})
	return append(main, init...)
}
