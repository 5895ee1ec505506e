package world

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/executor/podjob"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/proto/answer"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/test/kit/ledger"
)

// askTimeout is how long a controller made with podjob waits for the engine.
const askTimeout = 10 * time.Second

var jobKind = batchv1.SchemeGroupVersion.WithKind("Job")

// podjobs is a controller made with package podjob. It stands in for an executor: each Job is an
// object of its own kind, with one group, which the Job describes.
type podjobs struct {
	w          *world
	client     *client
	dynamic    dynamic.Interface
	decider    decider
	controller *podjob.Controller
	about      *batchv1.Job // The one whose Step is running.
	atOnce     int          // How many reconciles in a row have changed nothing, and asked for the next one at once.
}

// mostAtOnce is how many reconciles in a row may change nothing and ask for the next one at once.
const mostAtOnce = 20

// podjobs makes the controller of a process.
func (f *fleet) podjobs(p *process) (*podjobs, error) {
	settings := f.w.plan.executor
	c, err := newClient(p.link, clientOptions{qps: settings.qps})
	if err != nil {
		return nil, err
	}
	watches, err := dynamic.NewForConfigAndClient(&rest.Config{Host: "http://api", QPS: -1}, &http.Client{Transport: p.link})
	if err != nil {
		return nil, err
	}
	made := &podjobs{w: f.w, client: c, dynamic: watches, decider: decider{p.link}}
	made.controller = &podjob.Controller{Ask: made.ask, Pods: c.CoreV1(), Now: f.now, Settings: settings.asked()}
	return made, nil
}

// Run reconciles until the context ends.
func (p *podjobs) Run(ctx context.Context) error {
	err := podjob.Run(ctx, p.dynamic, p.reconcile, batchv1.SchemeGroupVersion.WithResource("jobs"))
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// reconcile is one round, and notices when rounds follow each other without a pause.
func (p *podjobs) reconcile(ctx context.Context) (next time.Time, err error) {
	begin := time.Now()
	next, err = p.round(ctx)
	if err != nil || next.IsZero() || next.After(time.Now()) || p.w.judge.wroteSince(p.decider.by, begin) {
		p.atOnce = 0
	} else if p.atOnce++; p.atOnce == mostAtOnce {
		p.decider.broken("I11", fmt.Sprintf("%d reconciles in a row changed nothing, and asked for the next one at once", mostAtOnce))
	}
	return next, err
}

// round brings each Job one step forward, and removes the pods of Jobs that are gone.
func (p *podjobs) round(ctx context.Context) (next time.Time, err error) {
	p.w.judge.began(p.decider.by, time.Now()) // It remembers nothing but failed creations.
	jobs, err := p.client.BatchV1().Jobs("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return next, err
	}
	pods, err := p.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return next, err
	}
	owned := podjob.ByOwner(pods.Items, jobKind)
	for i := range jobs.Items {
		job := &jobs.Items[i]
		mine := owned.Take(job)
		if !p.w.managed(job) {
			continue
		}
		at, stepErr := p.step(ctx, job, mine)
		next, err = answer.Earlier(next, at), errors.Join(err, stepErr)
	}
	for _, left := range owned {
		left = slices.DeleteFunc(left, func(pod corev1.Pod) bool { return pod.Annotations[podjob.GroupAnnotation] == "" || !holds(&pod) })
		err = errors.Join(err, p.controller.Remove(ctx, left))
	}
	return next, err
}

func (p *podjobs) step(ctx context.Context, job *batchv1.Job, pods []corev1.Pod) (time.Time, error) {
	p.about = job
	return p.controller.Step(ctx, podjob.Group{
		Owner: *metav1.NewControllerRef(job, jobKind), Job: job, Pods: pods,
		WriteStatus: func(ctx context.Context, status batchv1.JobStatus) error {
			next := job.DeepCopy()
			next.Status = status
			_, err := p.client.BatchV1().Jobs(job.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
			return err
		},
	})
}

// ask asks the engine. The question has the UID of the Job and not that of its group, because judges
// and faults go by Jobs.
func (p *podjobs) ask(ctx context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	ctx, stop := context.WithTimeout(ctx, askTimeout)
	defer stop()
	uid, err := wire.UIDBytes(p.about.UID)
	if err != nil {
		return nil, err
	}
	req = proto.CloneOf(req)
	req.Job.Uid = uid
	return p.decider.DecideJob(ctx, req)
}

// foreignToPodjob are the steps to which a controller made with podjob need not react as an executor
// does: it knows pods by their owner alone, so it adopts none and labels mean nothing to it, and it has
// no lease, no CronJobs and no times to live.
var foreignToPodjob = []string{
	"relabel a pod", "relabel and label back", "disown a pod", "create a loose pod", "delete the lease", "hang for it",
	"set the policy", "set time to live", "take finalizers off",
	"switch the built-in controller on", "switch the built-in controller off",
}

// mostOfPodjob is how many Jobs a world of podjob has at most: each reconcile reads all of them.
const mostOfPodjob = 8

// forPodjob changes the plan so that a controller made with podjob can play it.
func (d *drawer) forPodjob() {
	d.begin(99)
	p, e := d.p, &d.p.executor
	e.podjob, e.replace, e.replicas, e.together, e.warmStandby, e.noticing, e.standDown = true, false, 1, false, false, false, false
	for len(p.crons) > 0 {
		p.dropCron(0)
	}
	for len(p.jobs) > mostOfPodjob {
		p.dropJob(mostOfPodjob)
	}
	p.steps = slices.DeleteFunc(p.steps, func(s *step) bool { return s.expires || slices.Contains(foreignToPodjob, s.verb) })
	for _, j := range p.jobs {
		j.finalizers, j.spec.TTLSecondsAfterFinished = nil, nil
		delete(j.annotations, wire.Policy)
		if !j.foreign() {
			j.spec.ManagedBy = new(executor.ManagedBy)
		}
		for range pick(d, 0, 0, 1, 3) {
			d.add(step{at: d.moment(), who: "stranger", verb: "take the name of a pod", on: j.on(), n: d.IntN(4), text: pick(d, strangersOwners...)})
		}
	}
	for _, s := range p.steps {
		if s.verb == "delete" {
			s.text = string(metav1.DeletePropagationBackground) // An owner that is being deleted has no groups.
		}
	}
	p.faults = slices.DeleteFunc(p.faults, func(f *fault) bool {
		return f.unanswered // Only labels say that such a pod is nobody's.
	})
	if d.chance(40) && !d.faultless {
		f := pick(d, lateWrites...)
		f.kind, f.percent, f.delay = lateEffect, pick(d, 20, 50), span{100 * time.Millisecond, 20 * time.Second}
		f.from, f.to = d.window()
		p.faults = append([]*fault{&f}, p.faults...)
	}
	if d.chance(50) && !d.faultless {
		d.strange(pick(d, throttled, engineAway, putBack))
	}
}

// lateWrites are the writes that may take effect after their sender has given up on them.
var lateWrites = []fault{
	{verb: http.MethodPost, resource: "pods"},
	{verb: http.MethodPatch, resource: "pods"},
	{verb: http.MethodDelete, resource: "pods"},
	{verb: http.MethodPut, resource: "jobs"},
}

// The owners that strangers give to pods that have a name which podjob wants.
const (
	ofNobody  = "no owner"
	ofAnother = "another owner"
	notItsOwn = "an owner that does not control it"
)

var strangersOwners = []string{ofNobody, ofAnother, notItsOwn}

// takeName creates a pod of a stranger with a name that the Job's controller wants next.
func (w *world) takeName(s *step) error {
	c, key := w.actor(s.who), s.key()
	job, err := c.BatchV1().Jobs(key.Namespace).Get(background, key.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	name := key.Name + "-" + itoa(s.n)
	if ledger.IsIndexed(job) {
		name += "-0"
	}
	owner := *metav1.NewControllerRef(job, jobKind)
	switch s.text {
	case ofAnother:
		owner.UID = "22222222-2222-4222-8222-222222222222"
	case notItsOwn:
		owner.Controller, owner.BlockOwnerDeletion = nil, nil
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{podjob.GroupAnnotation: key.Name}, Finalizers: []string{heldByStranger}},
		Spec:       simpleSpec(1).Template.Spec,
	}
	if s.text != ofNobody {
		pod.OwnerReferences = []metav1.OwnerReference{owner}
	}
	_, err = c.CoreV1().Pods(key.Namespace).Create(background, pod, metav1.CreateOptions{})
	return err
}
