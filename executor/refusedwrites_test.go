package executor

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"jobpolicy.dev/executor/internal/cronjob"
	"jobpolicy.dev/executor/internal/fakes"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/executor/writes"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A refusedWrite is a kind of write, and a cluster in which the executor makes only writes of this
// kind, again and again until one succeeds.
type refusedWrite struct {
	kind    writes.Kind
	write   string // Its name at the fakes' API server.
	objects []runtime.Object
	// job decides about Jobs, ttl about finished ones, and cron about CronJobs. nil: nothing to do.
	job, ttl reply
	cron     func(*jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error)
	gang     bool
	// on is the kind of the object that gets the event. Default: Job.
	on string
}

func uidBytes(n int) []byte {
	b, err := wire.UIDBytes(testUID(n))
	must(err)
	return b
}

// deletingOne deletes pod 2 as long as it is active.
func deletingOne(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	d := &jobpolicyv1.DecideJobResponse{RequestId: req.GetRequestId(), Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}
	switch {
	case req.GetPods().GetActive() == 0:
	case later(deferredUntil(req, jobpolicyv1.Step_STEP_DELETE_PODS), req.GetNow()):
		d.RequeueTime = deferredUntil(req, jobpolicyv1.Step_STEP_DELETE_PODS)
	default:
		d.Disposition, d.Delete = jobpolicyv1.Disposition_DISPOSITION_APPLY, []*jobpolicyv1.DeletePod{{Uid: uidBytes(2)}}
	}
	return d, nil
}

// endingOne ends pod 2 as long as it may be active for more than three seconds.
func endingOne(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	d, err := deletingOne(req)
	if len(d.GetDelete()) > 0 {
		d.Delete, d.End = nil, []*jobpolicyv1.EndPod{{Uid: uidBytes(2), ActiveDeadlineSeconds: 3}}
	}
	return d, err
}

func statusOnce(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	d := &jobpolicyv1.DecideJobResponse{RequestId: req.GetRequestId(), Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}
	if req.GetStatus().GetActive() == 0 {
		d.Disposition, d.Status = jobpolicyv1.Disposition_DISPOSITION_APPLY, &jobpolicyv1.JobStatus{Active: 1}
	}
	return d, nil
}

func expiring(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	return &jobpolicyv1.DecideJobResponse{
		RequestId: req.GetRequestId(), Disposition: jobpolicyv1.Disposition_DISPOSITION_APPLY,
		DeleteJob: &jobpolicyv1.DeleteJob{Uid: req.GetJob().GetUid(), Name: req.GetJob().GetName()},
	}, nil
}

// expires is a finished Job with a time to live.
// deletingFinished deletes the finished pods that the request lists.
func deletingFinished(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	d := &jobpolicyv1.DecideJobResponse{RequestId: req.GetRequestId(), Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}
	switch until := deferredUntil(req, jobpolicyv1.Step_STEP_DELETE_FINISHED_PODS); {
	case len(req.GetFinishedPods().GetFirst()) == 0:
	case later(until, req.GetNow()):
		d.RequeueTime = until
	default:
		d.Disposition = jobpolicyv1.Disposition_DISPOSITION_APPLY
		for _, pod := range req.GetFinishedPods().GetFirst() {
			d.DeleteFinished = append(d.DeleteFinished, pod.GetUid())
		}
	}
	return d, nil
}

func keepsNone(job *batchv1.Job) {
	metav1.SetMetaDataAnnotation(&job.ObjectMeta, wire.Policy, "{job: {keepFinishedPods: {failed: 0}}}")
}

func expires(job *batchv1.Job) { finished(job); job.Spec.TTLSecondsAfterFinished = new(int32(0)) }

func testCron() *batchv1.CronJob {
	return &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{
			Name: "cron", Namespace: "ns", UID: testUID(9), Generation: 1,
			Annotations: map[string]string{wire.CronJobManagedBy: ManagedBy},
		},
		Spec: batchv1.CronJobSpec{Schedule: "* * * * *", Suspend: new(true)},
	}
}

// theRun is the Job of a run.
func theRun() *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Name: "run", Namespace: "ns", UID: testUID(8),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "CronJob", Name: "cron", UID: testUID(9), Controller: new(true)}},
	}}
}

// cronDecision answers with a decision about the CronJob until it is done. While a creation is deferred
// nothing is to be done.
func cronDecision(decision *jobpolicyv1.DecideCronJobResponse, done func(*jobpolicyv1.DecideCronJobRequest) bool) func(*jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
	return func(req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
		d := &jobpolicyv1.DecideCronJobResponse{RequestId: req.GetRequestId(), Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}
		for _, deferral := range req.GetDeferrals() {
			if later(deferral.GetUntil(), req.GetNow()) {
				d.RequeueTime = deferral.GetUntil()
				return d, nil
			}
		}
		if !done(req) {
			d.Disposition, d.Create, d.Delete, d.Edits, d.Status = jobpolicyv1.Disposition_DISPOSITION_APPLY, decision.GetCreate(), decision.GetDelete(), decision.GetEdits(), decision.GetStatus()
			d.Events = decision.GetEvents()
		}
		return d, nil
	}
}

// refusedWrites has at least one row for each kind of write.
func refusedWrites() map[string]refusedWrite {
	anEvent := []*jobpolicyv1.JobEvent{{Type: jobpolicyv1.EventType_EVENT_TYPE_NORMAL, Reason: "SuccessfulDelete", Message: "Deleted job run"}}
	run := &jobpolicyv1.CreateJob{Name: "run", ScheduledTime: timestamppb.New(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))}
	rows := []struct {
		name string
		refusedWrite
	}{
		{"a pod is created", refusedWrite{kind: writes.CreatePod, write: "create pods", objects: []runtime.Object{testJob()}, job: creatingOnce}},
		{"a pod is deleted", refusedWrite{kind: writes.DeletePod, write: "delete pods", objects: []runtime.Object{testJob(), testPod(2)}, job: deletingOne}},
		{"a pod is ended", refusedWrite{kind: writes.EndPod, write: "patch pods", objects: []runtime.Object{testJob(), testPod(2)}, job: endingOne}},
		{"a pod is deleted that was released before", refusedWrite{
			kind: writes.DeletePod, write: "delete pods", job: deletingOne,
			objects: []runtime.Object{testJob(), testPod(2, func(p *corev1.Pod) { p.Finalizers = nil })},
		}},
		{"a finished pod is deleted that the Job does not keep", refusedWrite{
			kind: writes.DeletePod, write: "delete pods", job: deletingFinished,
			objects: []runtime.Object{testJob(keepsNone), testPod(2, failedPhase, func(p *corev1.Pod) { p.Finalizers = nil })},
		}},
		{"a pod is released", refusedWrite{kind: writes.ReleasePod, write: "patch pods", objects: []runtime.Object{testJob(), testPod(2, failedPhase)}, job: releasing(false)}},
		{"a pod is released before it is deleted", refusedWrite{kind: writes.ReleasePod, write: "patch pods", objects: []runtime.Object{testJob(), testPod(2)}, job: releasing(true)}},
		{"a pod of a finished Job is released", refusedWrite{kind: writes.ReleasePod, write: "patch pods", objects: []runtime.Object{testJob(finished), testPod(2, failedPhase)}}},
		{"a pod is released whose Job is gone", refusedWrite{kind: writes.ReleasePod, write: "patch pods", on: "Pod", objects: []runtime.Object{testPod(2, failedPhase)}}},
		{"a pod is adopted", refusedWrite{kind: writes.AdoptPod, write: "patch pods", objects: []runtime.Object{testJob(), testPod(2, unclaimed)}}},
		{"a pod is disowned", refusedWrite{kind: writes.DisownPod, write: "patch pods", objects: []runtime.Object{testJob(), testPod(2, stray)}}},
		{"a Workload is created", refusedWrite{
			kind: writes.CreateWorkload, write: "create workloads", objects: []runtime.Object{testJob(gangJob)}, gang: true, job: gangOnce,
		}},
		{"a PodGroup is created", refusedWrite{
			kind: writes.CreatePodGroup, write: "create podgroups", objects: []runtime.Object{testJob(gangJob), aWorkload("theirs")}, gang: true, job: gangOnce,
		}},
		{"the minimum of a gang is changed", refusedWrite{
			kind: writes.ChangeGang, write: "patch workloads", objects: []runtime.Object{testJob(gangJob), aWorkload("theirs", ofThree), aPodGroup("group")}, gang: true, job: gangOfTwo,
		}},
		{"a Job's status is written", refusedWrite{kind: writes.UpdateStatus, write: "update jobs/status", objects: []runtime.Object{testJob()}, job: statusOnce}},
		{"a finished Job is deleted", refusedWrite{kind: writes.DeleteJob, write: "delete jobs", objects: []runtime.Object{testJob(expires)}, ttl: expiring}},
		{"the Job of a run is created", refusedWrite{
			kind: writes.CreateRun, write: "create jobs", on: "CronJob", objects: []runtime.Object{testCron()},
			cron: cronDecision(&jobpolicyv1.DecideCronJobResponse{Create: run}, func(req *jobpolicyv1.DecideCronJobRequest) bool { return len(req.GetJobs()) > 0 }),
		}},
		{"the Job of a run is deleted", refusedWrite{
			kind: writes.DeleteRun, write: "delete jobs", on: "CronJob", objects: []runtime.Object{testCron(), theRun()},
			cron: cronDecision(&jobpolicyv1.DecideCronJobResponse{Delete: []*jobpolicyv1.DeleteJob{{Uid: uidBytes(8), Name: "run"}}, Events: anEvent},
				func(req *jobpolicyv1.DecideCronJobRequest) bool { return len(req.GetJobs()) == 0 }),
		}},
		{"a CronJob is edited", refusedWrite{
			kind: writes.UpdateCronJob, write: "patch cronjobs", on: "CronJob", objects: []runtime.Object{testCron()},
			cron: cronDecision(&jobpolicyv1.DecideCronJobResponse{Edits: &jobpolicyv1.CronJobEdits{ObservedSchedule: &jobpolicyv1.ObservedSchedule{Since: run.GetScheduledTime(), Schedule: "x"}}},
				func(req *jobpolicyv1.DecideCronJobRequest) bool {
					return req.GetSpec().GetObservedSchedule().GetSchedule() == "x"
				}),
		}},
		{"a CronJob's status is written", refusedWrite{
			kind: writes.UpdateCronJobStatus, write: "update cronjobs/status", on: "CronJob", objects: []runtime.Object{testCron()},
			cron: cronDecision(&jobpolicyv1.DecideCronJobResponse{Status: &jobpolicyv1.CronJobStatus{LastScheduleTime: run.GetScheduledTime()}},
				func(req *jobpolicyv1.DecideCronJobRequest) bool { return req.GetStatus().GetLastScheduleTime() != nil }),
		}},
	}
	all := map[string]refusedWrite{}
	for _, row := range rows {
		all[row.name] = row.refusedWrite
	}
	return all
}

// gangOnce asks for a gang, and for its pods until there are some.
func gangOnce(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	d, err := creatingOnce(req)
	if d.GetCreate() != nil {
		d.Gang, d.Create = gangDecision(true).GetGang(), gangDecision(true).GetCreate()
	}
	return d, err
}

// gangOfTwo asks for nothing but a gang of two.
func gangOfTwo(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	return &jobpolicyv1.DecideJobResponse{
		RequestId: req.GetRequestId(), Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED, Gang: gangDecision(false).GetGang(),
	}, nil
}

// refusalsOf are the reasons of refusals by kind.
func refusalsOf(all []writes.Refusal) map[writes.Kind]string {
	why := map[writes.Kind]string{}
	for _, r := range all {
		why[r.Kind] = r.Why
	}
	return why
}

// refusing are ways in which an API server refuses a write of an object.
var refusing = map[string]func(object, text string) error{
	"a policy": func(object, text string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, object, errors.New("ValidatingAdmissionPolicy 'p' denied request: "+text))
	},
	"validation": func(object, text string) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Thing"}, object+" "+text, nil)
	},
	"a webhook that is away": func(_, text string) error {
		return apierrors.NewInternalError(errors.New("failed calling webhook: " + text))
	},
	"a webhook that says conflict": func(object, text string) error {
		return apierrors.NewConflict(schema.GroupResource{Resource: "things"}, object, errors.New(text))
	},
}

// A write that stays refused is told of: by one Warning event on the Job or CronJob for each text, by a
// metric, and in observations. The tries become rarer. Once the write is allowed, it is made, and the
// refusal is forgotten.
func TestARefusedWriteIsToldOf(t *testing.T) {
	for name, row := range refusedWrites() {
		for how, refuse := range refusing {
			t.Run(name+", refused by "+how, func(t *testing.T) { row.test(t, refuse) })
		}
	}
}

func TestEveryKindOfWriteIsTested(t *testing.T) {
	var tested []writes.Kind
	for _, row := range refusedWrites() {
		tested = append(tested, row.kind)
	}
	for _, kind := range writes.Kinds() {
		if !slices.Contains(tested, kind) && kind != writes.UseWorkload { // That is no write.
			t.Errorf("refusedWrites has no row for %s", kind)
		}
	}
}

func (w *refusedWrite) test(t *testing.T, refuse func(object, text string) error) {
	server := newServer(w.objects...)
	var text atomic.Value
	text.Store("not on Mondays")
	server.Failures[w.write] = func(n int) error {
		if says := text.Load().(string); says != "" {
			return refuse("pod-2", says+" (request "+string(testUID(n))+")")
		}
		return nil
	}
	registry := prometheus.NewRegistry()
	synctest.Test(t, func(t *testing.T) {
		e := w.start(t, server, registry)
		pass := func(long time.Duration) { time.Sleep(long); synctest.Wait() }
		pass(5 * time.Minute)
		w.wantTold(t, server, e, "not on Mondays", 1)
		tries := server.Tries(w.write)
		if counted := samples(t, registry, "jobpolicy_refused_writes_total")["{write="+string(w.kind)+"}"]; counted < 5 || int(counted) > tries || tries > 15*5 {
			t.Errorf("%d tries in 5 minutes, of which the metric counts %v; want some 10", tries, counted)
		}
		text.Store("nor on Sundays")
		pass(5 * time.Minute)
		w.wantTold(t, server, e, "nor on Sundays", 2)
		text.Store("")
		pass(2 * time.Minute)
		if n := server.Tries(w.write); n == tries {
			t.Errorf("it was not tried again once it was allowed: %d tries", n)
		}
		if now := observed(e); len(now) != 0 {
			t.Errorf("once it is allowed, it is observed that these are refused: %v", now)
		}
		tries = server.Tries(w.write)
		if pass(5 * time.Minute); server.Tries(w.write) != tries {
			t.Errorf("tried %d times after it had succeeded", server.Tries(w.write)-tries)
		}
	})
}

// start starts all controllers.
func (w *refusedWrite) start(t *testing.T, server *server, registry *prometheus.Registry) *Executor {
	decider := &deciders{jobs: &script{Otherwise: w.job}, finished: &script{Otherwise: w.ttl}, crons: &cronScript{Otherwise: w.cron}}
	cfg := testConfig(server, decider)
	if w.gang {
		cfg = gangConfig(server, decider)
	}
	cfg.APIBackoff, cfg.MaxAPIBackoff, cfg.Registerer = time.Second, time.Minute, registry
	cfg.ReplaceBuiltin = w.on == "Pod"
	cfg.CronJobs, cfg.FinishedJobs = &CronJobs{}, &FinishedJobs{}
	return start(t, cfg)
}

type cronScript = fakes.Script[*jobpolicyv1.DecideCronJobRequest, *jobpolicyv1.DecideCronJobResponse]

// deciders answers each controller with a script of its own.
type deciders struct {
	jobs, finished *script
	crons          *cronScript
}

func (d *deciders) DecideJob(ctx context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	if strings.Contains(req.GetRequestId(), "-ttl-") {
		return d.finished.DecideJob(ctx, req)
	}
	return d.jobs.DecideJob(ctx, req)
}

func (d *deciders) DecideCronJob(ctx context.Context, req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
	return d.crons.DecideCronJob(ctx, req)
}

func observed(e *Executor) map[writes.Kind]string {
	all := map[writes.Kind]string{}
	e.EachJob(func(o Observation) { maps.Copy(all, refusalsOf(o.Refusals)) })
	e.EachCronJob(func(o cronjob.Observation) { maps.Copy(all, refusalsOf(o.Refusals)) })
	return all
}

// wantTold checks the Warning events so far, and what is observed.
func (w *refusedWrite) wantTold(t *testing.T, server *server, e *Executor, text string, texts int) {
	t.Helper()
	on := w.on
	if on == "" {
		on = "Job"
	}
	reason, _ := w.kind.Event("")
	list, err := server.CoreV1().Events("ns").List(t.Context(), metav1.ListOptions{})
	must(err)
	told, last := 0, ""
	for _, event := range list.Items {
		if event.Type == corev1.EventTypeWarning && event.InvolvedObject.Kind == on && event.Reason == reason {
			told++
			if strings.Contains(event.Message, text) {
				last = event.Message
			}
			if kind, why, ok := writes.OfEvent(on == "CronJob", event.Reason, event.Message); !ok || kind != w.kind || why == "" {
				t.Errorf("event %q reads as %q: %q", event.Message, kind, why)
			}
			continue
		}
		if event.Type == corev1.EventTypeWarning {
			t.Errorf("event %s on a %s: %s", event.Reason, event.InvolvedObject.Kind, event.Message)
		}
	}
	if last == "" || told < texts || !w.kind.EveryTry() && told != texts {
		t.Errorf("%d events %s on the %s, the last one with %q is %q; want %d", told, reason, on, text, last, texts)
	}
	if now := observed(e); on != "Pod" && (len(now) != 1 || !strings.Contains(now[w.kind], text)) {
		t.Errorf("observed: %v, want %s: %s", now, w.kind, text)
	}
}
