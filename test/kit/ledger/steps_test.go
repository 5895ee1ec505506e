package ledger

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/executor/wire"
)

// The model of the ledger has the steps that a Book knows, and checks the invariants that a Book holds them to.
func TestTheModelHasTheseSteps(t *testing.T) {
	t.Parallel()
	model, err := os.ReadFile("../../../proof/ledger.pml")
	must.Succeed(t, err)
	var want []string
	for _, step := range Steps {
		want = append(want, string(step))
	}
	if diff := cmp.Diff(sorted(want), namesIn(model, `(?m)(?:->|^\t) ?STEP\((\w+)\)`)); diff != "" {
		t.Errorf("steps (-Book +model):\n%s", diff)
	}
	checked := append(namesIn(model, `\|\| breaks_(I\d+|order)\)`), "I9", "deletion") // The model has no other controllers. It deletes only for a reason.
	for _, r := range slices.Concat(ofStatus, ofPod) {
		if !slices.Contains(Steps, r.step) {
			t.Errorf("step %q is none of the model", r.step)
		}
		for _, g := range r.guards {
			if !slices.Contains(checked, g.rule) {
				t.Errorf("%q is about rule %s; the model checks %v", g.kind, g.rule, checked)
			}
		}
	}
}

// A podWrite is a write of a pod by a controller, and what it is.
type podWrite struct {
	job      []func(*batchv1.Job) // Its versions, one after the other.
	jobGone  bool
	was, is  *corev1.Pod
	step     Step // Empty: none.
	breaks   Kind // Empty: nothing.
	breaksOf Step
}

func podWrites() map[string]podWrite {
	const finalizer = batchv1.JobTrackingFinalizer
	pod := func(phase corev1.PodPhase, changes ...func(*corev1.Pod)) *corev1.Pod {
		p := podAtVersion(5, phase, finalizer)
		for _, change := range changes {
			change(p)
		}
		return p
	}
	unheld := func(p *corev1.Pod) { p.Finalizers = nil }
	loose := func(p *corev1.Pod) { p.OwnerReferences = nil }
	another := func(p *corev1.Pod) { p.OwnerReferences[0].UID = "k" }
	deleted := func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }
	labelled := func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} }
	foreign := func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", UID: "r", Controller: new(true)}}
	}
	suspended := func(j *batchv1.Job) { j.Spec.Suspend = new(true) }
	fewFinished := func(j *batchv1.Job) {
		j.Annotations = map[string]string{wire.Policy: `{job: {keepFinishedPods: {failed: 0}}}`}
	}
	unstarted := func(j *batchv1.Job) {
		j.Annotations = map[string]string{wire.Policy: `{job: {neverStarted: [{problem: Unschedulable, afterSeconds: 60, action: Count}]}}`}
	}
	counted := func(*batchv1.Job) {}
	failing := declared(batchv1.JobFailureTarget)
	record := recorded(batchv1.UncountedTerminatedPods{Failed: []types.UID{"p"}})
	running, failed := corev1.PodRunning, corev1.PodFailed
	return map[string]podWrite{
		"a recorded pod is released":               {job: []func(*batchv1.Job){record}, was: pod(failed), is: pod(failed, unheld), step: Release},
		"the same, and it was deleted before":      {job: []func(*batchv1.Job){record}, was: pod(failed, deleted), step: Release},
		"a pod of a suspended Job is released":     {job: []func(*batchv1.Job){suspended}, was: pod(running), is: pod(running, unheld), step: ReleaseRunning},
		"a recorded pod that runs is released":     {job: []func(*batchv1.Job){record}, was: pod(running, deleted), is: pod(running, deleted, unheld), step: ReleaseRunning},
		"a pod whose Job is gone is released":      {jobGone: true, was: pod(failed), is: pod(failed, unheld), step: ReleaseOrphan},
		"a pod is adopted":                         {was: pod(running, loose, unheld), is: pod(running), step: Adopt},
		"a pod is created":                         {is: pod(corev1.PodPending), step: CreatePod},
		"a pod of a failing Job is deleted":        {job: []func(*batchv1.Job){failing}, was: pod(running), is: pod(running, deleted), step: DeletePod},
		"a pod that does not start is deleted":     {job: []func(*batchv1.Job){unstarted}, was: pod(corev1.PodPending), is: pod(corev1.PodPending, deleted), step: DeletePod},
		"a released pod is deleted at once":        {job: []func(*batchv1.Job){suspended}, was: pod(running, unheld), step: DeletePod},
		"a released pod ends and is deleted":       {job: []func(*batchv1.Job){suspended}, was: pod(failed, unheld), step: DeletePod},
		"a pod of a Job that is gone is deleted":   {jobGone: true, was: pod(running), is: pod(running, deleted), step: DeletePod},
		"a finished pod is not kept":               {job: []func(*batchv1.Job){record, fewFinished, counted}, was: pod(failed, unheld), step: DeletePod},
		"the Job gives a pod up":                   {was: pod(running, unheld), is: pod(running, unheld, loose)},
		"a pod is released before its record":      {was: pod(failed), is: pod(failed, unheld), step: Release, breaks: ReleasedTooSoon, breaksOf: Release},
		"a pod of another controller is adopted":   {was: pod(running, another), is: pod(running), step: Adopt, breaks: AdoptedOwned, breaksOf: Adopt},
		"a pod is adopted without finalizer":       {was: pod(running, loose, unheld), is: pod(running, unheld), step: Adopt, breaks: AdoptedUnheld, breaksOf: Adopt},
		"a pod is created for no Job":              {is: pod(corev1.PodPending, another), step: CreatePod, breaks: NeverAJob, breaksOf: CreatePod},
		"a pod is created without finalizer":       {is: pod(corev1.PodPending, unheld), step: CreatePod, breaks: CreatedUnheld, breaksOf: CreatePod},
		"a pod that is wanted is released":         {was: pod(running), is: pod(running, unheld), step: ReleaseRunning, breaks: ReleasedWanted, breaksOf: ReleaseRunning},
		"a ReplicaSet's pod is released":           {was: pod(failed, foreign), is: pod(failed, foreign, unheld), step: ReleaseOrphan, breaks: ReleasedForeign, breaksOf: ReleaseOrphan},
		"a pod is deleted before the verdict":      {was: pod(running), is: pod(running, deleted), step: DeletePod, breaks: DeletedHeld, breaksOf: DeletePod},
		"a suspended Job's pod is not released":    {job: []func(*batchv1.Job){suspended}, was: pod(running), is: pod(running, deleted), step: DeletePod, breaks: DeletedHeld, breaksOf: DeletePod},
		"an ended pod is deleted before its turn":  {was: pod(failed), is: pod(failed, deleted), step: DeletePod, breaks: DeletedHeld, breaksOf: DeletePod},
		"a released pod that is wanted is deleted": {was: pod(running, unheld), step: DeletePod, breaks: DeletedWanted, breaksOf: DeletePod},
		"a finished pod is deleted":                {job: []func(*batchv1.Job){record, counted}, was: pod(failed, unheld), step: DeletePod, breaks: DeletedEnded, breaksOf: DeletePod},
		"a finished pod is deleted uncounted":      {job: []func(*batchv1.Job){fewFinished, record}, was: pod(failed, unheld), step: DeletePod, breaks: DeletedUncounted, breaksOf: DeletePod},
		"a ReplicaSet's pod is deleted":            {was: pod(running, foreign, unheld), step: DeletePod, breaks: DeletedForeign, breaksOf: DeletePod},
		"a label is changed":                       {was: pod(running), is: pod(running, labelled), breaks: NoStep},
		"a pod is released and gets a label":       {job: []func(*batchv1.Job){suspended}, was: pod(running), is: pod(running, unheld, labelled), step: ReleaseRunning, breaks: NoStep},
		"a finalizer is put back":                  {was: pod(running, unheld), is: pod(running), breaks: NoStep},
		"the phase is changed":                     {was: pod(running), is: pod(failed), breaks: NoStep},
		"a pod whose deletion was asked for runs":  {was: pod(running, deleted), is: pod(running), breaks: NoStep},
	}
}

// A controller's write of a pod is one step, or breaks a guard.
func TestAControllersWriteOfAPodIsAStep(t *testing.T) {
	t.Parallel()
	cases := podWrites()
	planted := map[Kind]bool{}
	for _, tc := range cases {
		planted[tc.breaks] = true
	}
	for _, r := range ofPod {
		for _, g := range r.guards {
			if !planted[g.kind] {
				t.Errorf("no case breaks this guard of %s: %s", r.step, g.kind)
			}
		}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := NewBook()
			b.Job(jobAt(1))
			for n, change := range tc.job {
				b.Job(jobAt(2+n, change))
			}
			if tc.jobGone {
				b.JobGone("j")
			}
			if tc.was != nil {
				b.Pod(tc.was)
			}
			before := b.Taken()
			problems := b.ControllerPod("p", tc.is)
			for step, n := range b.Taken() {
				if took := n > before[step]; took != (step == tc.step) {
					t.Errorf("it is %q (%t), want %q", step, took, tc.step)
				}
			}
			if tc.breaks == "" && len(problems) > 0 || tc.breaks != "" && (len(problems) != 1 || problems[0].Kind != tc.breaks || problems[0].Step() != tc.breaksOf) {
				t.Errorf("found %v, want %q of %q", problems, tc.breaks, tc.breaksOf)
			}
		})
	}
}

// namesIn returns what the pattern's group matches, sorted, each once.
func namesIn(text []byte, pattern string) (names []string) {
	for _, match := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
		names = append(names, string(match[1]))
	}
	return sorted(names)
}

func sorted(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
