package world

import (
	"bytes"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// annotationAltered is on each pod that the webhook has changed: the UID of its Job.
const annotationAltered = "example.com/altered"

// annotationUnanswered is on those of them whose creation gets no answer.
const annotationUnanswered = "example.com/unanswered"

// An alteration is what the webhook changes.
type alteration string

const (
	alterLabels     alteration = "labels"
	alterOwner      alteration = "no owner"
	alterController alteration = "another controller"
	alterFinalizer  alteration = "no finalizer"
	alterIndex      alteration = "index"
)

var alterations = []alteration{alterLabels, alterOwner, alterController, alterFinalizer, alterIndex}

// alter changes a new pod like an admission webhook, so that it does not count for its Job.
func (r *request) alter(f *fault) {
	coder := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	obj, _, err := coder.Decode(r.body, nil, nil)
	pod, ok := obj.(*corev1.Pod)
	if err != nil || !ok {
		return
	}
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return
	}
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, annotationAltered, string(owner.UID))
	if f.unanswered {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, annotationUnanswered, "true")
	}
	_, indexed := pod.Annotations[batchv1.JobCompletionIndexAnnotation]
	switch {
	case f.alters == alterOwner:
		pod.OwnerReferences = nil
	case f.alters == alterController:
		pod.OwnerReferences[0].UID = "00000000-0000-4000-8000-00000000beef"
	case f.alters == alterFinalizer:
		pod.Finalizers = nil
	case f.alters == alterIndex && indexed:
		delete(pod.Annotations, batchv1.JobCompletionIndexAnnotation)
	default:
		pod.Labels = map[string]string{"app": "mesh"}
	}
	var changed bytes.Buffer
	if coder.Encode(pod, &changed) == nil {
		r.body = changed.Bytes()
	}
}

// alteredPods lets a webhook change the new pods of some simple Jobs for a while. In some worlds the
// answers are lost as well, so that only the watch and lists can tell of it.
func (d *drawer) alteredPods() {
	p := d.p
	p.executor.replicas, p.executor.together = 1, false
	p.jobs, p.steps, p.faults, p.calm = nil, nil, nil, 0
	for i := range d.among(1, 3) {
		j := &jobPlan{namespace: namespace, name: "altered-" + itoa(i), spec: simpleSpec(d.among(1, 6))}
		j.spec.Completions = new(*j.spec.Parallelism)
		if d.chance(40) {
			j.spec.CompletionMode = new(batchv1.IndexedCompletion)
		}
		for range *j.spec.Parallelism {
			j.fates = append(j.fates, d.soon())
		}
		p.jobs = append(p.jobs, j)
		d.add(step{at: d.within(time.Millisecond, 2*time.Minute), who: "user", verb: "create", on: j.on()})
	}
	f := &fault{kind: altering, percent: pick(d, 50, 100, 100), verb: "POST", resource: "pods", alters: pick(d, alterations...)}
	f.from, f.to = d.within(time.Millisecond, time.Minute), 10*time.Minute
	if d.chance(30) {
		f.alters, f.percent, f.unanswered, f.to = alterLabels, 100, true, 90*time.Minute
		p.executor.maxUnseen = d.among(2, 8)
		p.calm = tracker.UnseenPeriod // The last standstill ends.
	}
	p.faults = append(p.faults, f)
	p.calm += f.to + time.Minute
	p.settle = max(p.settle, 3*time.Hour)
	d.situated("pods altered at creation")
}

// altered handles a write of a pod that the webhook has changed. It is nobody's: executors must
// delete it if its creation was answered, and must not create too many of them.
func (j *judge) altered(w apiserver.Write, pod *corev1.Pod) {
	unanswered := pod.Annotations[annotationUnanswered] != ""
	switch {
	case w.New == nil:
		delete(j.strays, w.UID)
		return
	case w.Old != nil:
		return
	case !unanswered:
		j.strays[w.UID] = w.Key
	}
	job := types.UID(pod.Annotations[annotationAltered])
	j.alterations[job] = append(j.alterations[job], w.Time)
	period, most := 10*time.Minute, alteredPerPeriod
	if j.podjob {
		most = int(period/podjobDelay) + 1
	}
	if unanswered {
		period, most = time.Hour, j.maxUnseen+unseenSlack
	}
	n := 0
	for _, at := range j.alterations[job] {
		if w.Time.Sub(at) < period {
			n++
		}
	}
	if n > most {
		j.breach("runaway", w.Key, job, "%d pods were created for the Job in %s, and a webhook changed all of them; there may be %d", n, period, most)
	}
}

const (
	// alteredPerPeriod is how many altered pods a backoff up to a minute allows in ten minutes, also if
	// some pods succeed meanwhile.
	alteredPerPeriod = 40
	// podjobDelay is how long a controller of package podjob waits after a creation that failed.
	podjobDelay = 10 * time.Second
	// unseenSlack is how many more pods than its limit an executor may create: some are in flight when
	// the limit is reached.
	unseenSlack = 4
)

// judgeStrays: pods that a webhook has changed are deleted.
func (j *judge) judgeStrays() {
	for uid, key := range j.strays {
		if j.settled(time.Time{}) {
			j.breach("stray", key, uid, "a pod that a webhook changed when it was created is still there")
		}
	}
}
