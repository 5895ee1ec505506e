package podjob

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// A drawer draws from a seed.
type drawer struct{ *rand.Rand }

func newDrawer(seed, stream uint64) drawer { return drawer{rand.New(rand.NewPCG(seed, stream))} }

// chance is true in so many percent of all cases.
func (d drawer) chance(percent int) bool { return d.IntN(100) < percent }

// among draws a number from least to most.
func (d drawer) among(least, most int) int { return least + d.IntN(most-least+1) }

// within draws a time; short ones are as likely as long ones.
func (d drawer) within(least, most time.Duration) time.Duration {
	low, high := math.Log(float64(least)), math.Log(float64(most))
	return time.Duration(math.Exp(low + d.Float64()*(high-low)))
}

func pick[T any](d drawer, from ...T) T { return from[d.IntN(len(from))] }

// A plan is what is known of a world before it begins.
type plan struct {
	seed    uint64
	groups  []groupPlan
	trouble time.Duration // How long faults go on.
	latency time.Duration // The longest time of a request or answer.
	// In percent of the requests of the controller: how many fail, and before how many somebody
	// else does something to the pod.
	failing, raced int
	webhooks       []window // When a webhook puts finalizers back.
	quotas         []window // When no pod may be created.
	strangers      int      // How many strangers create pods.
	ownerGoes      bool     // The owner is deleted meanwhile.
}

type window struct{ from, to time.Duration }

func (w window) contains(t time.Duration) bool { return w.from <= t && t < w.to }

type groupPlan struct {
	name  string
	spec  batchv1.JobSpec
	fates []fate
	edits []edit
}

// names are chosen so that groups want names of pods in common: the Indexed group train and the
// NonIndexed group train-0 both want train-0-0.
var names = []string{"train", "train-0", "train-0-0"}

// longestTrouble is how long faults go on at most.
const longestTrouble = 5 * time.Minute

func draw(seed uint64) *plan {
	d := newDrawer(seed, 1)
	p := &plan{
		seed: seed, trouble: d.within(5*time.Second, longestTrouble), latency: d.within(2*time.Millisecond, 100*time.Millisecond),
		failing: pick(d, 0, 0, 3, 10, 25), raced: pick(d, 0, 2, 5, 15), ownerGoes: d.chance(10),
	}
	for i := range d.among(1, len(names)) {
		p.groups = append(p.groups, d.group(names[i], p.trouble))
	}
	for range pick(d, 0, 0, 1, 2) {
		p.webhooks = append(p.webhooks, d.window(p.trouble))
	}
	for range pick(d, 0, 0, 0, 1) {
		p.quotas = append(p.quotas, d.window(p.trouble))
	}
	p.strangers = pick(d, 0, 0, 1, 3, 6)
	return p
}

func (d drawer) window(trouble time.Duration) window {
	from := time.Duration(d.Int64N(int64(trouble)))
	return window{from, min(trouble, from+d.within(100*time.Millisecond, trouble))}
}

func (d drawer) group(name string, trouble time.Duration) groupPlan {
	g := groupPlan{name: name, spec: d.spec()}
	unlucky := pick(d, 0, 20, 50, 80)
	for range d.among(1, 16) {
		g.fates = append(g.fates, d.fate(unlucky))
	}
	for range pick(d, 0, 0, 1, 2, 4) {
		g.edits = append(g.edits, d.edit(trouble))
	}
	return g
}

// spec draws a spec. Half of the groups are Indexed.
func (d drawer) spec() batchv1.JobSpec {
	n := int32(d.among(1, 5))
	spec := batchv1.JobSpec{
		Parallelism: new(int32(d.among(1, 5))), Completions: new(n), BackoffLimit: new(int32(d.among(0, 6))),
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "none"}},
		}},
	}
	switch {
	case d.chance(50):
		spec.CompletionMode = new(batchv1.IndexedCompletion)
		if d.chance(40) {
			spec.BackoffLimit, spec.BackoffLimitPerIndex = nil, new(int32(d.among(0, 2)))
			if d.chance(50) {
				spec.MaxFailedIndexes = new(int32(d.among(0, int(min(n, 2)))))
			}
		}
		if d.chance(30) {
			spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{d.successRule(int(n))}}
		}
		if d.chance(30) {
			spec.Parallelism = new(n) // So it may be scaled.
		}
	case d.chance(15):
		spec.Completions = nil
	}
	switch {
	case d.chance(35):
		spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: d.failureRules(spec.BackoffLimitPerIndex != nil)}
		spec.PodReplacementPolicy = new(batchv1.Failed)
	case d.chance(40):
		spec.PodReplacementPolicy = new(pick(d, batchv1.Failed, batchv1.TerminatingOrFailed))
	}
	if d.chance(8) {
		spec.Suspend = new(true)
	}
	if d.chance(8) {
		spec.ActiveDeadlineSeconds = new(int64(d.among(5, 300)))
	}
	return spec
}

func (d drawer) successRule(n int) batchv1.SuccessPolicyRule {
	if d.chance(50) {
		return batchv1.SuccessPolicyRule{SucceededCount: new(int32(d.among(1, n)))}
	}
	return batchv1.SuccessPolicyRule{SucceededIndexes: new(fmt.Sprint(d.IntN(n)))}
}

// exits are the exit codes of containers and of rules.
var exits = []int32{1, 3, 42}

func (d drawer) failureRules(perIndex bool) (rules []batchv1.PodFailurePolicyRule) {
	for range d.among(1, 3) {
		rule := batchv1.PodFailurePolicyRule{Action: pick(d, batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyActionIgnore,
			batchv1.PodFailurePolicyActionIgnore, batchv1.PodFailurePolicyActionCount)}
		if perIndex && d.chance(30) {
			rule.Action = batchv1.PodFailurePolicyActionFailIndex
		}
		if d.chance(40) {
			rule.OnPodConditions = []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
		} else {
			rule.OnExitCodes = &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{pick(d, exits...)}}
		}
		rules = append(rules, rule)
	}
	return rules
}

// An edit is a change of a group's spec by a user.
type edit struct {
	at     time.Duration
	change string // suspend, resume or scale
	to     int32
}

func (d drawer) edit(trouble time.Duration) edit {
	return edit{time.Duration(d.Int64N(int64(trouble))), pick(d, "suspend", "resume", "scale", "scale"), int32(d.among(0, 5))}
}

// apply changes the spec as far as the rules of Jobs allow it.
func (e edit) apply(spec *batchv1.JobSpec) {
	switch e.change {
	case "suspend", "resume":
		spec.Suspend = new(e.change == "suspend")
	case "scale":
		if isIndexed(spec) && e.to > 0 && spec.SuccessPolicy == nil && spec.MaxFailedIndexes == nil && *spec.Completions == *spec.Parallelism {
			spec.Completions = new(e.to) // An elastic Indexed Job: both together.
		}
		spec.Parallelism = new(e.to)
	}
}

func isIndexed(spec *batchv1.JobSpec) bool {
	return spec.CompletionMode != nil && *spec.CompletionMode == batchv1.IndexedCompletion
}
