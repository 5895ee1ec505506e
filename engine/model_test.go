package engine_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// TestJobLives runs random Jobs in a model of a cluster, with random faults, acts of
// users and ends of pods. It checks every decision against the true state (safety: I1 to
// I7, I10 to I12). When the faults stop, the Job must finish (liveness). Use
// -rapid.checks=10000 for a long run.
func TestJobLives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster(t)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			c.happen()
			if rapid.IntRange(0, 3).Draw(t, "reconcile") > 0 {
				c.reconcile()
			}
		}
		c.settle()
		c.checkEnd()
	})
}

func newCluster(t *rapid.T) *cluster {
	return &cluster{
		t: t, now: epoch, status: &jobpolicyv1.JobStatus{}, faulty: true, intact: true,
		spec: drawSpec(t), settings: drawSettings(t), counted: map[string]string{},
		rowLimit: rapid.IntRange(0, 3).Draw(t, "rowLimit"),
	}
}

func drawSpec(t *rapid.T) *jobpolicyv1.JobSpec {
	small := rapid.Int32Range(0, 6)
	spec := &jobpolicyv1.JobSpec{
		CompletionMode: rapid.SampledFrom([]jobpolicyv1.CompletionMode{0, 1, 2, 2}).Draw(t, "mode"),
		Parallelism:    small.Draw(t, "parallelism"),
		BackoffLimit:   rapid.SampledFrom([]int32{0, 1, 3, 6, 1<<31 - 1}).Draw(t, "backoffLimit"),
		RestartPolicy:  rapid.SampledFrom([]jobpolicyv1.RestartPolicy{1, 1, 2}).Draw(t, "restartPolicy"),
		Suspend:        rapid.IntRange(0, 7).Draw(t, "suspend") == 0,
	}
	spec.PodReplacementPolicy = rapid.SampledFrom([]jobpolicyv1.PodReplacementPolicy{0, 1, 2}).Draw(t, "replacement")
	indexed := spec.CompletionMode == jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED
	if indexed || rapid.Bool().Draw(t, "fixed") {
		spec.Completions = proto.Int32(small.Draw(t, "completions"))
	}
	if indexed && rapid.Bool().Draw(t, "elastic") {
		spec.Parallelism = spec.GetCompletions()
	}
	drawScheduling(t, spec)
	drawOptions(t, spec)
	if rapid.IntRange(0, 5).Draw(t, "deadline") == 0 {
		spec.ActiveDeadlineSeconds = proto.Int64(rapid.Int64Range(0, 300).Draw(t, "seconds"))
	}
	if indexed && rapid.Bool().Draw(t, "perIndex") {
		spec.BackoffLimitPerIndex = proto.Int32(rapid.Int32Range(0, 2).Draw(t, "limitPerIndex"))
		if rapid.Bool().Draw(t, "limited") {
			spec.MaxFailedIndexes = proto.Int32(small.Draw(t, "maxFailedIndexes"))
		}
	}
	if spec.RestartPolicy == jobpolicyv1.RestartPolicy_RESTART_POLICY_NEVER && rapid.IntRange(0, 2).Draw(t, "failurePolicy") == 0 {
		spec.PodFailurePolicy = drawFailurePolicy(t, spec.BackoffLimitPerIndex != nil)
		spec.PodReplacementPolicy = 0
	}
	if rapid.IntRange(0, 2).Draw(t, "end condition") == 0 {
		if spec.Options == nil {
			spec.Options = &jobpolicyv1.JobOptions{}
		}
		spec.Options.EndCondition = true
		spec.Options.EndConditionFailures = rapid.SampledFrom([]*int32{nil, proto.Int32(1), proto.Int32(3), proto.Int32(10)}).Draw(t, "end condition failures")
		for range spec.GetPodFailurePolicy().GetRules() {
			spec.Options.FailureRuleNames = append(spec.Options.FailureRuleNames, rapid.SampledFrom([]string{"", "bad-input", "a b"}).Draw(t, "rule name"))
		}
	}
	if indexed && rapid.IntRange(0, 3).Draw(t, "successPolicy") == 0 {
		spec.SuccessPolicy = &jobpolicyv1.SuccessPolicy{Rules: []*jobpolicyv1.SuccessPolicyRule{{
			SucceededIndexes: ranges(0, 1),
			SucceededCount:   proto.Int32(1),
		}}}
	}
	return spec
}

func drawOptions(t *rapid.T, spec *jobpolicyv1.JobSpec) {
	retry := rapid.SampledFrom([]*jobpolicyv1.RetryDelay{
		nil, nil, nil,
		{InitialSeconds: proto.Int32(3)},
		{MaxSeconds: proto.Int32(1), JitterPercent: proto.Int32(50)},
		{InitialSeconds: proto.Int32(1), MaxSeconds: proto.Int32(4), Factor: proto.Float64(1.5)},
		{DelaysSeconds: []int32{1, 7, 2}, JitterPercent: proto.Int32(100)},
	}).Draw(t, "retryDelay")
	start := rapid.SampledFrom([]*int64{nil, nil, nil, proto.Int64(1), proto.Int64(30)}).Draw(t, "startDeadline")
	try := rapid.SampledFrom([]*int64{nil, nil, proto.Int64(5)}).Draw(t, "tryDeadline")
	next := rapid.SampledFrom([]*jobpolicyv1.NextTryResources{
		nil, nil, nil,
		{Resource: jobpolicyv1.RaisedResource_RAISED_RESOURCE_MEMORY, Max: "8Gi", OnExitCodes: []int32{42}},
		{Resource: jobpolicyv1.RaisedResource_RAISED_RESOURCE_CPU, Max: "2", Factor: proto.Float64(1.5), OnExitCodes: []int32{1, 43}},
	}).Draw(t, "nextTryResources")
	keep := rapid.SampledFrom([]*jobpolicyv1.KeepFinishedPods{
		nil, nil, {Succeeded: proto.Int32(0), Failed: proto.Int32(0)}, {Succeeded: proto.Int32(1)}, {Failed: proto.Int32(2)},
	}).Draw(t, "keepFinishedPods")
	fails := rapid.SampledFrom([]jobpolicyv1.WhenJobFails{0, 0, 1, 2}).Draw(t, "whenJobFails")
	lost := rapid.SampledFrom([]*int64{nil, nil, proto.Int64(1), proto.Int64(60)}).Draw(t, "terminationDeadline")
	node := jobpolicyv1.TerminationDeadlineNode(0)
	if lost != nil {
		node = rapid.SampledFrom([]jobpolicyv1.TerminationDeadlineNode{0, 1, 2, 2}).Draw(t, "terminationDeadlineNode")
	}
	if retry != nil || start != nil || try != nil || next != nil || lost != nil || keep != nil || fails != 0 {
		spec.Options = &jobpolicyv1.JobOptions{
			RetryDelay: proto.CloneOf(retry), StartDeadlineSeconds: start, TryDeadlineSeconds: try, NextTryResources: proto.CloneOf(next),
			TerminationDeadlineSeconds: lost, TerminationDeadlineNode: node, KeepFinishedPods: proto.CloneOf(keep), WhenJobFails: fails,
		}
	}
}

func drawScheduling(t *rapid.T, spec *jobpolicyv1.JobSpec) {
	spec.HasSchedulingGroup = rapid.IntRange(0, 7).Draw(t, "grouped") == 0
	spec.Controlled = rapid.IntRange(0, 3).Draw(t, "controlled") == 0
	if rapid.IntRange(0, 3).Draw(t, "delegated") == 0 {
		spec.GroupTemplateName = proto.String("workers")
	}
	if rapid.Bool().Draw(t, "declared") {
		spec.Scheduling = &jobpolicyv1.JobScheduling{Policy: rapid.SampledFrom([]jobpolicyv1.SchedulingPolicy{0, 1, 2, 2, 2}).Draw(t, "policy")}
	}
	if spec.Scheduling != nil && rapid.Bool().Draw(t, "has minCount") {
		spec.Scheduling.MinCount = proto.Int32(rapid.Int32Range(1, 7).Draw(t, "minCount"))
	}
}

func drawFailurePolicy(t *rapid.T, perIndex bool) *jobpolicyv1.PodFailurePolicy {
	actions := []jobpolicyv1.PodFailurePolicyAction{1, 3, 4}
	if perIndex {
		actions = append(actions, 2)
	}
	policy := &jobpolicyv1.PodFailurePolicy{Rules: []*jobpolicyv1.PodFailurePolicyRule{{
		Action:          jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_IGNORE,
		OnPodConditions: []*jobpolicyv1.PodConditionPattern{pattern("DisruptionTarget")},
	}}}
	for _, code := range []int32{42, 43} {
		policy.Rules = append(policy.Rules, &jobpolicyv1.PodFailurePolicyRule{
			Action: rapid.SampledFrom(actions).Draw(t, "action"),
			OnExitCodes: &jobpolicyv1.ExitCodesRequirement{
				Operator: jobpolicyv1.ExitCodeOperator_EXIT_CODE_OPERATOR_IN, Values: []int32{code},
			},
		})
	}
	return policy
}

// happen draws an event that the executor does not cause.
func (c *cluster) happen() {
	events := map[string]func(){
		"time passes":        func() { c.advance(time.Duration(rapid.IntRange(1, 60_000).Draw(c.t, "ms")) * time.Millisecond) },
		"long time passes":   func() { c.advance(time.Duration(rapid.IntRange(1, 20).Draw(c.t, "minutes")) * time.Minute) },
		"pods start":         func() { c.each((*modelPod).active, "start", c.start) },
		"pods end":           func() { c.each((*modelPod).active, "end", c.endSomehow) },
		"deleted pods end":   func() { c.each((*modelPod).terminating, "end", c.endSomehow) },
		"containers restart": func() { c.each((*modelPod).active, "restart", c.restart) },
		"pods disappear":     func() { c.each(c.leftover, "disappear", func(p *modelPod) { p.gone = true }) },
		"pods are deleted": func() {
			c.each((*modelPod).active, "delete", c.beginDeletion)
		},
		"nodes change": func() { c.each((*modelPod).terminating, "change", c.changeNode) },
		"pods are disrupted": func() {
			c.each((*modelPod).active, "disrupt", func(p *modelPod) { c.beginDeletion(p); p.disrupted = true })
		},
		"phases flip": func() {
			c.each(c.flippable, "flip", func(p *modelPod) { p.phase, p.flipped = jobpolicyv1.PodPhase_POD_PHASE_FAILED, true })
		},
		"a stray pod":         c.stray,
		"the view catches up": c.catchUp,
		"a user":              c.user,
	}
	names := []string{
		"time passes", "time passes", "long time passes", "pods start", "pods start", "pods end", "pods end", "pods end", "deleted pods end",
		"containers restart", "pods disappear", "pods are deleted", "pods are disrupted", "nodes change", "phases flip", "a stray pod",
		"the view catches up", "the view catches up", "a user",
	}
	name := rapid.SampledFrom(names).Draw(c.t, "event")
	c.logf("%s", name)
	events[name]()
}

// each does something to some of the pods.
func (c *cluster) each(which func(*modelPod) bool, what string, do func(*modelPod)) {
	for _, p := range c.podsThat(which) {
		if rapid.Bool().Draw(c.t, what) {
			do(p)
		}
	}
}

func (c *cluster) start(p *modelPod) {
	p.scheduled, p.ready, p.phase = true, true, jobpolicyv1.PodPhase_POD_PHASE_RUNNING
	if p.ran.IsZero() {
		p.ran = c.now
	}
}

func (c *cluster) restart(p *modelPod) {
	if c.spec.GetRestartPolicy() == jobpolicyv1.RestartPolicy_RESTART_POLICY_ON_FAILURE {
		p.restarts++
	}
}

func (c *cluster) endSomehow(p *modelPod) {
	p.lateEnd = p.lateEnd || !p.tracked || isFinished(c.status)
	if !c.toldToEnd(p) && rapid.IntRange(0, 2).Draw(c.t, "luck") > 0 {
		p.end(c.now, jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED)
		return
	}
	c.failSomehow(p)
}

func (c *cluster) failSomehow(p *modelPod) {
	p.exitCode = rapid.SampledFrom([]int32{1, 42, 43}).Draw(c.t, "exit")
	p.end(c.now, jobpolicyv1.PodPhase_POD_PHASE_FAILED)
}

// leftover reports whether a pod may disappear: it ended and nothing holds it. If the Job keeps few, those that are
// left tell how long the next one waits.
func (c *cluster) leftover(p *modelPod) bool {
	return !p.gone && p.terminal() && !p.tracked && c.spec.GetOptions().GetKeepFinishedPods() == nil
}

// flippable reports whether the pod is one whose recorded success the kubelet
// may turn into a failure (kubernetes#125410).
func (c *cluster) flippable(p *modelPod) bool {
	return !p.gone && p.tracked && contains(c.status.GetUncounted().GetSucceeded(), p.uid)
}

// stray adds a pod that the executor did not ask for: adopted, or created by
// hand.
func (c *cluster) stray() {
	if !c.indexed() {
		return
	}
	ix := proto.Int32(rapid.Int32Range(0, 8).Draw(c.t, "strayIndex"))
	if *ix == 8 {
		ix = nil
	}
	c.addPod(ix)
	c.intact = false
}

func (c *cluster) user() {
	if c.spec.GetDeleting() {
		return
	}
	// A view that contains the change also contains every status written before it.
	c.stale = false
	switch rapid.SampledFrom([]string{"suspend", "resume", "scale", "resize", "delete"}).Draw(c.t, "wish") {
	case "suspend":
		c.spec.Suspend = true
	case "resume":
		c.spec.Suspend = false
	case "scale":
		c.spec.Parallelism = rapid.Int32Range(0, 6).Draw(c.t, "parallelism")
	case "resize":
		if c.indexed() && c.spec.GetCompletions() == c.spec.GetParallelism() && c.spec.SuccessPolicy == nil {
			n := rapid.Int32Range(0, 8).Draw(c.t, "size")
			c.intact = false
			c.forgetOutOfRange()
			c.spec.Parallelism, c.spec.Completions = n, proto.Int32(n)
			c.forgetOutOfRange()
		}
	case "delete":
		c.spec.Deleting = rapid.IntRange(0, 3).Draw(c.t, "really") == 0
	}
}

func (c *cluster) forgetOutOfRange() {
	for _, p := range c.pods {
		p.forgotten = p.forgotten || !c.inRange(p)
	}
}

// settle ends the faults and lets every pod succeed. The Job must finish, or have nothing to
// do if it is paused, within a bounded number of reconciles.
func (c *cluster) settle() {
	c.faulty = false
	c.catchUp()
	for range 600 {
		before := wireBytes(c.t, c.observe())
		resp := c.reconcile()
		c.catchUp()
		moved := c.wind()
		if moved || string(before) != string(wireBytes(c.t, c.observe())) {
			continue
		}
		if at := resp.GetRequeueTime(); at != nil {
			c.now = at.AsTime()
			continue
		}
		if resp.GetDisposition() == jobpolicyv1.Disposition_DISPOSITION_APPLY {
			c.t.Fatalf("hot loop: the decision changes nothing and is made again:\n%s", render(resp))
		}
		if !isFinished(c.status) && !c.paused() {
			c.t.Fatalf("the Job is stuck:\n%s\nrequest:\n%s", render(resp), render(c.observe()))
		}
		c.checkKept()
		return
	}
	c.t.Fatalf("no end after 600 reconciles; status:\n%s", render(c.status))
}

// paused reports whether the Job has nothing to do before it is finished.
func (c *cluster) paused() bool {
	return c.spec.GetSuspend() || c.spec.GetParallelism() == 0 || c.spec.GetDeleting()
}

// wind advances every pod, and reports whether one changed.
func (c *cluster) wind() bool {
	moved := false
	for _, p := range c.podsThat(func(p *modelPod) bool { return !p.gone && !p.terminal() }) {
		p.lateEnd = p.lateEnd || !p.tracked || isFinished(c.status)
		c.advance(time.Second)
		phase := jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED
		if c.toldToEnd(p) {
			phase = jobpolicyv1.PodPhase_POD_PHASE_FAILED
		}
		p.end(c.now, phase)
		moved = true
	}
	return moved
}
