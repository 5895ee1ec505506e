package hostnode

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// tally counts a pod's containers the way the phase is decided.
type tally struct {
	// initPending: init containers that have not ended yet, and sidecars that have never started.
	initPending int
	// initFailed: init containers that failed for good.
	initFailed int
	// running: main containers and sidecars.
	running int
	// unstarted, ended, spent, succeeded: main containers that have never run; whose last run is over; of those the ones
	// that will not be restarted; and the ones whose last run ended with exit code 0.
	unstarted, ended, spent, succeeded int
}

func count(containers []*container, policy corev1.RestartPolicy) tally {
	var t tally
	initialized := everStarted(containers)
	for _, c := range containers {
		switch c.role {
		case roleInit:
			t.addInit(c, policy)
		case roleSidecar:
			t.addSidecar(c, initialized)
		case roleMain:
			t.addMain(c, policy)
		}
	}
	return t
}

func (t *tally) addInit(c *container, policy corev1.RestartPolicy) {
	if !c.ended() {
		t.initPending++
		return
	}
	if !c.succeeded() && c.spent(policy) {
		t.initFailed++
	}
}

func (t *tally) addSidecar(c *container, initialized bool) {
	if c.alive() {
		t.running++
		return
	}
	if c.current == nil && !initialized {
		t.initPending++
	}
}

func (t *tally) addMain(c *container, policy corev1.RestartPolicy) {
	if c.alive() {
		t.running++
		return
	}
	if c.current == nil {
		t.unstarted++
		return
	}
	t.ended++
	if c.spent(policy) {
		t.spent++
	}
	if c.succeeded() {
		t.succeeded++
	}
}

// everStarted reports whether any main container was ever started: from then on the pod counts as initialized.
func everStarted(containers []*container) bool {
	return slices.ContainsFunc(containers, func(c *container) bool { return c.role == roleMain && c.current != nil })
}

// phase is what the kubelet's getPhase (v1.36) makes of the containers. When over is set nothing runs and nothing will be
// started again, so the phase is terminal whatever the restart policy says; a pod that never got that far has failed.
func (t tally) phase(over bool) corev1.PodPhase {
	if over {
		return t.finalPhase()
	}
	if t.initFailed > 0 {
		return corev1.PodFailed
	}
	if t.initPending > 0 || t.unstarted > 0 {
		return corev1.PodPending
	}
	if t.running > 0 || t.spent < t.ended {
		return corev1.PodRunning
	}
	return t.finalPhase()
}

func (t tally) finalPhase() corev1.PodPhase {
	if t.initFailed == 0 && t.initPending == 0 && t.unstarted == 0 && t.ended > 0 && t.succeeded == t.ended {
		return corev1.PodSucceeded
	}
	return corev1.PodFailed
}
