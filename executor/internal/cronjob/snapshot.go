package cronjob

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/internal/clock"
	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// snapshot is a request, and the objects that it was made from.
type snapshot struct {
	cron *batchv1.CronJob
	jobs []*batchv1.Job
	req  *jobpolicyv1.DecideCronJobRequest
	// asks: the CronJob asks for options.
	asks bool
	// group is the CronJob's; without a name it has none. begun is how many of its runs had begun before the
	// facts of the group were looked up, and room how many could begin then.
	group groupKey
	begun uint64
	room  int
}

func (c *Controller) snapshot(s *cronState) (snapshot, error) {
	jobs := s.runs.list(ownerKey(s.namespace, s.uid), c.cfg.Jobs.In(s.namespace))
	s.mu.Lock()
	s.sequence++
	cron, sequence, taken := s.cron, s.sequence, s.takenNames()
	createAfter, askedAfter := s.creation.Until(), s.asked.Until()
	s.mu.Unlock()
	if cron == nil {
		return snapshot{}, api.ErrGone
	}
	uid, err := wire.UIDBytes(cron.UID)
	if err != nil {
		return snapshot{}, fmt.Errorf("uid: %w", err)
	}
	now := c.cfg.Now()
	req := &jobpolicyv1.DecideCronJobRequest{
		RequestId: string(cron.UID) + "-" + strconv.FormatUint(sequence, 10),
		Now:       timestamppb.New(now),
		CronJob: &jobpolicyv1.CronJobRef{
			Uid: uid, Namespace: cron.Namespace, Name: cron.Name, Generation: cron.Generation,
		},
		Spec:       wire.CronJobSpec(cron, c.scope.Suspended(cron), c.cfg.TimeZone),
		Status:     wire.CronJobStatus(cron),
		NamesTaken: taken,
	}
	spec, problems := c.cfg.Policies.Of(cron.Namespace, cron.Annotations)
	read := spec.GetCronJob()
	if len(problems) > 0 {
		read = c.cfg.Policies.LastOfCronJob(cron)
	}
	req.Spec.Options, req.Spec.OptionProblems = s.lastOptions(read, problems), problems
	postpone := func(step jobpolicyv1.Step, until time.Time) {
		if !until.IsZero() {
			req.Deferrals = append(req.Deferrals, &jobpolicyv1.Deferral{Step: step, Until: timestamppb.New(clock.WallOf(until, now))})
		}
	}
	postpone(jobpolicyv1.Step_STEP_CREATE_JOB, createAfter)
	postpone(jobpolicyv1.Step_STEP_CREATE_MANUAL_JOB, askedAfter)
	for _, job := range withinLimit(jobs, cron) {
		m, err := wire.OwnedJob(job)
		if err != nil {
			return snapshot{}, fmt.Errorf("job %s: %w", job.Name, err)
		}
		req.Jobs = append(req.Jobs, m)
	}
	snap := snapshot{cron: cron, jobs: jobs, req: req, asks: c.cfg.Policies.Asked(cron.Namespace, cron.Annotations)}
	group := req.GetSpec().GetOptions().GetGroup()
	c.joinGroup(s, group.GetName())
	if group != nil {
		snap.group = c.groupKey(s, group.GetName())
		snap.begun = c.starts.count(snap.group)
		req.Group, snap.room = c.groupFacts(s, snap.group)
		if snap.group.ofCluster() {
			req.Group.RunNowSince = s.askedSince(req.GetSpec().GetRunNow(), now)
		}
	}
	return snap, nil
}

// maxJobs is how many Jobs a request may have.
const maxJobs = 10_000

// withinLimit returns the Jobs that a request may have: first those that run or that the status
// lists, then the newest. The history limits keep the newest Jobs, so the engine needs these to
// decide which Jobs to delete. Later requests contain the older ones.
func withinLimit(jobs []*batchv1.Job, cron *batchv1.CronJob) []*batchv1.Job {
	if len(jobs) <= maxJobs {
		return jobs
	}
	needed := map[types.UID]bool{}
	for _, ref := range cron.Status.Active {
		needed[ref.UID] = true
	}
	for _, job := range jobs {
		if wire.FinishedCondition(job) == nil {
			needed[job.UID] = true
		}
	}
	sorted := slices.SortedStableFunc(slices.Values(jobs), func(a, b *batchv1.Job) int {
		if needed[a.UID] != needed[b.UID] {
			if needed[a.UID] {
				return -1
			}
			return 1
		}
		return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
	})
	return sorted[:maxJobs]
}

// withStatus is the CronJob with another status, and with the annotations that belong to it.
func (snap *snapshot) withStatus(m *jobpolicyv1.CronJobStatus) (*batchv1.CronJob, error) {
	status, err := snap.apiStatus(m)
	if err != nil {
		return nil, err
	}
	cron := snap.cron.DeepCopy()
	cron.Status = *status
	switch next := m.GetNextScheduleTime(); {
	case next == nil:
		delete(cron.Annotations, wire.NextScheduleTime)
	case next.IsValid():
		metav1.SetMetaDataAnnotation(&cron.ObjectMeta, wire.NextScheduleTime, next.AsTime().Format(time.RFC3339))
	default:
		return nil, fmt.Errorf("next schedule time: %w: %w", next.CheckValid(), controller.ErrBadAnswer)
	}
	wire.WithLastValid(&cron.ObjectMeta, snap.lastValid()) // If there is room beside the others.
	return cron, nil
}

// apiStatus converts a status to the API's type. For an active Job, the message has only UID and
// name. The rest of the reference comes from the present status, or from the Job.
func (snap *snapshot) apiStatus(m *jobpolicyv1.CronJobStatus) (*batchv1.CronJobStatus, error) {
	out := &batchv1.CronJobStatus{
		LastScheduleTime:   wire.APITime(m.GetLastScheduleTime()),
		LastSuccessfulTime: wire.APITime(m.GetLastSuccessfulTime()),
	}
	for _, active := range m.GetActive() {
		uid, err := wire.UIDString(active.GetUid())
		if err != nil {
			return nil, fmt.Errorf("active job %s: %w", active.GetName(), err)
		}
		out.Active = append(out.Active, snap.reference(uid, active.GetName()))
	}
	return out, nil
}

func (snap *snapshot) reference(uid types.UID, name string) corev1.ObjectReference {
	for _, ref := range snap.cron.Status.Active {
		if ref.UID == uid && ref.Name == name {
			return ref
		}
	}
	ref := corev1.ObjectReference{
		APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job", Namespace: snap.cron.Namespace, Name: name, UID: uid,
	}
	for _, job := range snap.jobs {
		if job.UID == uid {
			ref.ResourceVersion = job.ResourceVersion
		}
	}
	return ref
}
