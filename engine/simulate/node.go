package simulate

import (
	"time"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// lostNodeDelay is how long a pod stays on a node that is not Ready before it is deleted, if its template says nothing
// else (the admission plugin DefaultTolerationSeconds).
const lostNodeDelay = 5 * time.Minute

// loseNode loses the node of all pods that have not ended. Its kubelet tells nothing until the node is back: what its containers
// do meanwhile shows only then. Pods that are created later run on other nodes.
func (p *player) loseNode() {
	for _, pod := range p.pods {
		if pod.ended() {
			continue
		}
		pod.lost, pod.ready = true, false
		p.say(PodsLost, pod, "")
	}
	p.in(lostNodeDelay, func() {
		for _, pod := range p.pods {
			if pod.lost && pod.active() {
				pod.disrupted = true
				p.remove(pod, false, "its node has not been Ready for "+Clock(lostNodeDelay))
			}
		}
	})
}

// nodeBack makes the node Ready again.
func (p *player) nodeBack() {
	for _, pod := range p.pods {
		if !pod.lost {
			continue
		}
		p.say(PodsBack, pod, "")
		missed := pod.missed
		pod.lost, pod.missed = false, nil
		for _, do := range missed {
			do()
		}
		if pod.runs() {
			p.sync(pod)
		}
	}
}

// onNode does what a pod's kubelet does now, or when its node is back.
func (pod *simPod) onNode(do func()) {
	if pod.lost {
		pod.missed = append(pod.missed, do)
		return
	}
	do()
}

// onNodeIn is onNode after a delay.
func (p *player) onNodeIn(pod *simPod, delay time.Duration, do func()) {
	p.in(delay, func() { pod.onNode(do) })
}

// due is when a pod that is being deleted was to be gone.
func (p *player) due(pod *simPod) time.Duration { return pod.finished + p.sc.GracePeriod }

// givenUp reports whether a pod is released now because its termination deadline has passed.
func (p *player) givenUp(pod *simPod) bool {
	deadline := p.spec.GetOptions().GetTerminationDeadlineSeconds()
	return deadline > 0 && pod.deleting && !pod.ended() && p.now >= p.due(pod)+time.Duration(deadline)*time.Second
}

func nodeState(pod *simPod) jobpolicyv1.NodeState {
	if pod.lost {
		return jobpolicyv1.NodeState_NODE_STATE_NOT_READY
	}
	return jobpolicyv1.NodeState_NODE_STATE_READY
}
