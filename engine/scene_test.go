package engine_test

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/annotation"
	"jobpolicy.dev/engine/indexset"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A scene is the snapshot that a scenario file builds line by line.
type scene struct {
	req *jobpolicyv1.DecideJobRequest
	// cases are the requests and their answers.
	cases caseFile
}

// ask decides, and records the request and the answer.
func (s *scene) ask() (*jobpolicyv1.DecideJobResponse, error) {
	resp, err := engine.DecideJob(s.req)
	s.cases.add(s.req, resp, err)
	return resp, err
}

func newScene() *scene {
	return &scene{req: &jobpolicyv1.DecideJobRequest{
		Now:  at(0),
		Job:  &jobpolicyv1.JobRef{Uid: uid("job"), Namespace: "ns", Name: "job"},
		Spec: &jobpolicyv1.JobSpec{Parallelism: 1, BackoffLimit: 6, RestartPolicy: jobpolicyv1.RestartPolicy_RESTART_POLICY_NEVER},
		Pods: &jobpolicyv1.PodSummary{},
	}}
}

// tell adds one line to what is seen. Lines are
//
//	job k=v…         a new Job, at second 0; spec k=v… changes its spec
//	ttl k=v…         annotations about its time to live
//	failureRule, successRule   one more rule of a policy
//	now 20s          the time
//	status k=v…      fields of the status; condition Type [status=] [reason=] [at=]
//	pods k=v…        the summary of the pods
//	finished a k=v…  a row of an unaccounted pod; gone a… takes rows away
//	confirm a…       rows go, and their releases are confirmed; unconfirm forgets
//	row a k=v…       a row of an active pod; rows: none at all; norows: not asked
//	defercreations 30s  no pods are to be created before that time
//	deferdeletions 30s  none are to be deleted before that time
//	quiet 30s        no routine status is to be written before that time
//	records 10s      none that records pods before that time
//	unlisted, inflight, retry, settings k=v…
func (s *scene) tell(line string) error {
	name, args, err := datadriven.ParseLine(line)
	if err != nil || name == "" || strings.HasPrefix(name, "#") {
		return err
	}
	if name == "job" {
		*s = scene{req: newScene().req, cases: s.cases}
		name = "spec"
	}
	lines := map[string]func([]datadriven.CmdArg) error{
		"spec": s.spec, "ttl": s.ttl, "failureRule": s.failureRule, "successRule": s.successRule, "now": s.now,
		"status": s.status, "condition": s.condition, "pods": s.pods, "finished": s.finished, "gone": s.gone,
		"confirm": s.confirm, "unconfirm": s.unconfirm, "row": s.row, "rows": s.rows, "norows": s.norows,
		"defercreations": s.leave(createPods), "deferdeletions": s.leave(deletePods),
		"quiet": s.leave(writeRoutineStatus), "records": s.leave(recordPods),
		"unlisted": s.unlisted, "inflight": s.inflight, "retry": s.retry, "settings": s.settings,
	}
	tell, ok := lines[name]
	if !ok {
		return fmt.Errorf("unknown line %q", name)
	}
	return tell(args)
}

// mustTell tells lines of text.
func (s *scene) mustTell(t testing.TB, text string) {
	t.Helper()
	for _, line := range strings.Split(text, "\n") {
		if err := s.tell(line); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
}

func (s *scene) spec(args []datadriven.CmdArg) error {
	spec := s.req.Spec
	return each(args, map[string]func(value){
		"uid":                     func(v value) { s.req.Job.Uid = uid(v.text) },
		"completions":             func(v value) { spec.Completions = proto.Int32(v.int32()) },
		"parallelism":             func(v value) { spec.Parallelism = v.int32() },
		"backoffLimit":            func(v value) { spec.BackoffLimit = v.int32() },
		"backoffLimitPerIndex":    func(v value) { spec.BackoffLimitPerIndex = proto.Int32(v.int32()) },
		"maxFailedIndexes":        func(v value) { spec.MaxFailedIndexes = proto.Int32(v.int32()) },
		"activeDeadlineSeconds":   func(v value) { spec.ActiveDeadlineSeconds = proto.Int64(int64(v.int32())) },
		"ttlSecondsAfterFinished": func(v value) { spec.TtlSecondsAfterFinished = proto.Int32(v.int32()) },
		"suspend":                 func(v value) { spec.Suspend = v.bool() },
		"deleting":                func(v value) { spec.Deleting = v.bool() },
		"namespaceDeleting":       func(v value) { s.req.NamespaceDeleting = v.bool() },
		"seenSuspended":           func(v value) { s.req.SeenSuspended = v.bool() },
		"mode":                    func(v value) { spec.CompletionMode = jobpolicyv1.CompletionMode(v.enum(spec.CompletionMode)) },
		"restartPolicy":           func(v value) { spec.RestartPolicy = jobpolicyv1.RestartPolicy(v.enum(spec.RestartPolicy)) },
		"hasSchedulingGroup":      func(v value) { spec.HasSchedulingGroup = v.bool() },
		"controlled":              func(v value) { spec.Controlled = v.bool() },
		"groupTemplate":           func(v value) { spec.GroupTemplateName = proto.String(v.text) },
		"policy": func(v value) {
			spec.Scheduling = &jobpolicyv1.JobScheduling{}
			spec.Scheduling.Policy = jobpolicyv1.SchedulingPolicy(v.enum(spec.Scheduling.Policy))
		},
		"minCount": func(v value) { spec.Scheduling.MinCount = proto.Int32(v.int32()) },
		"podReplacementPolicy": func(v value) {
			spec.PodReplacementPolicy = jobpolicyv1.PodReplacementPolicy(v.enum(spec.PodReplacementPolicy))
		},
	})
}

func (s *scene) ttl(args []datadriven.CmdArg) error {
	job, namespace := map[string]string{}, map[string]string{}
	s.req.Spec.Annotations, s.req.NamespaceAnnotations = job, namespace
	return each(args, map[string]func(value){
		"complete": func(v value) { job[annotation.TTLAfterComplete] = v.text },
		"failed":   func(v value) { job[annotation.TTLAfterFailed] = v.text },
		"default":  func(v value) { namespace[annotation.DefaultTTL] = v.text },
	})
}

func (s *scene) failureRule(args []datadriven.CmdArg) error {
	r := &jobpolicyv1.PodFailurePolicyRule{}
	exits := func(op jobpolicyv1.ExitCodeOperator) func(value) {
		return func(v value) {
			r.OnExitCodes = &jobpolicyv1.ExitCodesRequirement{Operator: op}
			for _, code := range v.list() {
				r.OnExitCodes.Values = append(r.OnExitCodes.Values, value{code}.int32())
			}
		}
	}
	err := each(args, map[string]func(value){
		"action":    func(v value) { r.Action = jobpolicyv1.PodFailurePolicyAction(v.enum(r.Action)) },
		"in":        exits(jobpolicyv1.ExitCodeOperator_EXIT_CODE_OPERATOR_IN),
		"notIn":     exits(jobpolicyv1.ExitCodeOperator_EXIT_CODE_OPERATOR_NOT_IN),
		"container": func(v value) { r.OnExitCodes.ContainerName = proto.String(v.text) },
		"condition": func(v value) { r.OnPodConditions = append(r.OnPodConditions, pattern(v.text)) },
	})
	if s.req.Spec.PodFailurePolicy == nil {
		s.req.Spec.PodFailurePolicy = &jobpolicyv1.PodFailurePolicy{}
	}
	s.req.Spec.PodFailurePolicy.Rules = append(s.req.Spec.PodFailurePolicy.Rules, r)
	return err
}

func (s *scene) successRule(args []datadriven.CmdArg) error {
	r := &jobpolicyv1.SuccessPolicyRule{}
	err := each(args, map[string]func(value){
		"indexes": func(v value) { r.SucceededIndexes = v.set() },
		"count":   func(v value) { r.SucceededCount = proto.Int32(v.int32()) },
	})
	if s.req.Spec.SuccessPolicy == nil {
		s.req.Spec.SuccessPolicy = &jobpolicyv1.SuccessPolicy{}
	}
	s.req.Spec.SuccessPolicy.Rules = append(s.req.Spec.SuccessPolicy.Rules, r)
	return err
}

func (s *scene) now(args []datadriven.CmdArg) error {
	d, err := time.ParseDuration(args[0].Key)
	s.req.Now = at(d)
	return err
}

// leave reads the time before which a step is not to be done.
func (s *scene) leave(step jobpolicyv1.Step) func([]datadriven.CmdArg) error {
	return func(args []datadriven.CmdArg) error {
		d, err := time.ParseDuration(args[0].Key)
		deferUntil(s.req, step, at(d))
		return err
	}
}

func (s *scene) status(args []datadriven.CmdArg) error {
	if s.req.Status == nil {
		s.req.Status = &jobpolicyv1.JobStatus{}
	}
	st := s.req.Status
	if st.Uncounted == nil {
		st.Uncounted = &jobpolicyv1.UncountedTerminatedPods{}
	}
	return each(args, map[string]func(value){
		"active":             func(v value) { st.Active = v.int32() },
		"ready":              func(v value) { st.Ready = proto.Int32(v.int32()) },
		"terminating":        func(v value) { st.Terminating = proto.Int32(v.int32()) },
		"succeeded":          func(v value) { st.Succeeded = v.int32() },
		"failed":             func(v value) { st.Failed = v.int32() },
		"start":              func(v value) { st.StartTime = at(v.duration()) },
		"completion":         func(v value) { st.CompletionTime = at(v.duration()) },
		"completed":          func(v value) { st.CompletedIndexes = v.set() },
		"failedIndexes":      func(v value) { st.FailedIndexes = v.set() },
		"uncountedSucceeded": func(v value) { st.Uncounted.Succeeded = v.uids() },
		"uncountedFailed":    func(v value) { st.Uncounted.Failed = v.uids() },
	})
}

func (s *scene) condition(args []datadriven.CmdArg) error {
	c := &jobpolicyv1.JobCondition{Type: args[0].Key, Status: jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE}
	c.LastTransitionTime, c.LastProbeTime = at(0), at(0)
	err := each(args[1:], map[string]func(value){
		"status":  func(v value) { c.Status = jobpolicyv1.ConditionStatus(v.enum(c.Status)) },
		"reason":  func(v value) { c.Reason = v.text },
		"message": func(v value) { c.Message = v.text },
		"at":      func(v value) { c.LastTransitionTime, c.LastProbeTime = at(v.duration()), at(v.duration()) },
	})
	if s.req.Status == nil {
		s.req.Status = &jobpolicyv1.JobStatus{}
	}
	s.req.Status.Conditions = append(s.req.Status.Conditions, c)
	return err
}

func (s *scene) pods(args []datadriven.CmdArg) error {
	p, tracked := s.req.Pods, false
	err := each(args, map[string]func(value){
		"active":             func(v value) { p.Active = v.int32() },
		"ready":              func(v value) { p.Ready = v.int32() },
		"terminating":        func(v value) { p.Terminating = v.int32() },
		"tracked":            func(v value) { p.TrackedActive, tracked = v.int32(), true },
		"restarts":           func(v value) { p.Restarts = int64(v.int32()) },
		"indexes":            func(v value) { p.ActiveIndexes = v.set() },
		"terminatingIndexes": func(v value) { p.TerminatingIndexes = v.set() },
	})
	if !tracked {
		p.TrackedActive = p.Active
	}
	p.Ready = min(p.Ready, p.Active)
	return err
}

func (s *scene) finished(args []datadriven.CmdArg) error {
	pod := &jobpolicyv1.UnaccountedPod{Uid: uid(args[0].Key), FinishedTime: proto.CloneOf(s.req.Now)}
	why := &jobpolicyv1.PodFailure{}
	err := each(args[1:], map[string]func(value){
		"phase":    func(v value) { pod.Phase = jobpolicyv1.PodPhase(v.enum(pod.Phase)) },
		"deleting": func(v value) { pod.Deleting = v.bool() },
		"index":    func(v value) { pod.Index = proto.Int32(v.int32()) },
		"at":       func(v value) { pod.FinishedTime = at(v.duration()) },
		"failures": func(v value) { pod.IndexFailureCount = v.int32() },
		"ignored":  func(v value) { pod.IndexIgnoredFailureCount = v.int32() },
		"exit": func(v value) {
			container, code, _ := strings.Cut(v.text, ":")
			why.ContainerExits = append(why.ContainerExits, &jobpolicyv1.ContainerExit{ContainerName: container, ExitCode: value{code}.int32()})
		},
		"condition": func(v value) { why.Conditions = append(why.Conditions, pattern(v.text)) },
	})
	if proto.Size(why) > 0 {
		why.PodName = args[0].Key
		pod.Failure = why
	}
	s.req.UnaccountedPods = append(s.req.UnaccountedPods, pod)
	return err
}

func (s *scene) gone(args []datadriven.CmdArg) error {
	for _, arg := range args {
		s.req.UnaccountedPods = slices.DeleteFunc(s.req.UnaccountedPods, func(pod *jobpolicyv1.UnaccountedPod) bool {
			return bytes.Equal(pod.GetUid(), uid(arg.Key))
		})
	}
	return nil
}

func (s *scene) confirm(args []datadriven.CmdArg) error {
	for _, arg := range args {
		s.req.ConfirmedReleases = append(s.req.ConfirmedReleases, uid(arg.Key))
	}
	return s.gone(args)
}

func (s *scene) unconfirm([]datadriven.CmdArg) error {
	s.req.ConfirmedReleases = nil
	return nil
}

func (s *scene) row(args []datadriven.CmdArg) error {
	pod := &jobpolicyv1.ActivePod{Uid: uid(args[0].Key), Phase: jobpolicyv1.PodPhase_POD_PHASE_RUNNING, Scheduled: true, Tracked: true}
	err := each(args[1:], map[string]func(value){
		"phase":       func(v value) { pod.Phase = jobpolicyv1.PodPhase(v.enum(pod.Phase)) },
		"index":       func(v value) { pod.Index = proto.Int32(v.int32()) },
		"unscheduled": func(v value) { pod.Scheduled = !v.bool() },
		"ready":       func(v value) { pod.Ready = v.bool() },
		"since":       func(v value) { pod.ReadySince = at(v.duration()) },
		"restarts":    func(v value) { pod.MaxRestarts = v.int32() },
		"sidecars":    func(v value) { pod.MaxSidecarRestarts = v.int32() },
		"created":     func(v value) { pod.CreatedTime = at(v.duration()) },
		"untracked":   func(v value) { pod.Tracked = !v.bool() },
	})
	if s.req.ActivePods == nil {
		s.req.ActivePods = &jobpolicyv1.ActivePods{}
	}
	s.req.ActivePods.Pods = append(s.req.ActivePods.Pods, pod)
	return err
}

func (s *scene) rows(args []datadriven.CmdArg) error {
	s.req.ActivePods = &jobpolicyv1.ActivePods{}
	return each(args, map[string]func(value){
		"truncated": func(v value) { s.req.ActivePods.Truncated = v.bool() },
	})
}

func (s *scene) norows([]datadriven.CmdArg) error {
	s.req.ActivePods = nil
	return nil
}

func (s *scene) unlisted(args []datadriven.CmdArg) error {
	u := &jobpolicyv1.UnlistedPods{}
	s.req.UnlistedPods = u
	return each(args, map[string]func(value){
		"succeeded":   func(v value) { u.Succeeded = v.int32() },
		"failed":      func(v value) { u.Failed = v.int32() },
		"terminating": func(v value) { u.Terminating = v.int32() },
		"indexes":     func(v value) { u.SucceededIndexes = v.set() },
		"failing":     func(v value) { u.FailedIndexes = v.set() },
	})
}

func (s *scene) inflight(args []datadriven.CmdArg) error {
	f := &jobpolicyv1.InFlight{}
	s.req.InFlight = f
	return each(args, map[string]func(value){
		"creates": func(v value) { f.Creates = v.int32() },
		"indexes": func(v value) { f.CreateIndexes = v.set() },
	})
}

func (s *scene) retry(args []datadriven.CmdArg) error {
	r := &jobpolicyv1.RetryFacts{}
	s.req.Retry = r
	fail := func(v value, why *jobpolicyv1.PodFailure) {
		for _, offset := range v.list() {
			r.RecentFailures = append(r.RecentFailures, &jobpolicyv1.PodFailureFact{FinishedTime: at(value{offset}.duration()), Failure: why})
		}
	}
	return each(args, map[string]func(value){
		"success":  func(v value) { r.LastSuccessTime = at(v.duration()) },
		"failures": func(v value) { fail(v, nil) },
		"disrupted": func(v value) {
			fail(v, &jobpolicyv1.PodFailure{Conditions: []*jobpolicyv1.PodConditionPattern{pattern("DisruptionTarget")}})
		},
		"exits": func(v value) {
			fail(v, &jobpolicyv1.PodFailure{ContainerExits: []*jobpolicyv1.ContainerExit{{ContainerName: "main", ExitCode: 1}}})
		},
	})
}

func (s *scene) settings(args []datadriven.CmdArg) error {
	if s.req.Settings == nil {
		s.req.Settings = &jobpolicyv1.Settings{}
	}
	set := s.req.Settings
	return each(args, map[string]func(value){
		"backoff":       func(v value) { set.PodFailureBackoff = durationpb.New(v.duration()) },
		"maxBackoff":    func(v value) { set.MaxPodFailureBackoff = durationpb.New(v.duration()) },
		"maxUncounted":  func(v value) { set.MaxUncountedPods = v.int32() },
		"maxChanges":    func(v value) { set.MaxPodChanges = v.int32() },
		"keepStartTime": func(v value) { set.KeepStartTimeOnSuspend = v.bool() },
		"groups":        func(v value) { set.PodGroups = jobpolicyv1.PodGroups(v.enum(set.PodGroups)) },
	})
}

// each hands every argument to the function of its key. A value that cannot be
// read panics, and each turns that into an error.
func each(args []datadriven.CmdArg, keys map[string]func(value)) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	for _, arg := range args {
		set, ok := keys[arg.Key]
		if !ok {
			return fmt.Errorf("unknown key %q", arg.Key)
		}
		set(value{strings.Join(arg.Vals, ",")})
	}
	return nil
}

// A value is the text behind a key; lists are separated by commas.
type value struct{ text string }

func (v value) list() []string {
	if v.text == "" {
		return nil
	}
	return strings.Split(v.text, ",")
}

func (v value) bool() bool { return v.text != "false" }

func (v value) int32() int32 {
	n, err := strconv.ParseInt(v.text, 10, 32)
	if err != nil {
		panic(err)
	}
	return int32(n)
}

func (v value) duration() time.Duration {
	d, err := time.ParseDuration(v.text)
	if err != nil {
		panic(err)
	}
	return d
}

func (v value) uids() [][]byte {
	var uids [][]byte
	for _, name := range v.list() {
		uids = append(uids, uid(name))
	}
	return uids
}

func (v value) set() *jobpolicyv1.IndexSet {
	m := &jobpolicyv1.IndexSet{}
	for _, part := range v.list() {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		m.Ranges = append(m.Ranges, &jobpolicyv1.IndexRange{First: value{first}.int32(), Last: value{last}.int32()})
	}
	return m
}

// enum finds a value by its Kubernetes spelling: OnFailure is RESTART_POLICY_ON_FAILURE.
func (v value) enum(of protoEnum) int32 {
	values := of.Descriptor().Values()
	for i := range values.Len() {
		name := enumName(of.Descriptor(), values.Get(i).Number())
		if strings.EqualFold(strings.ReplaceAll(name, "_", ""), v.text) {
			return int32(values.Get(i).Number())
		}
	}
	panic(fmt.Sprintf("%s has no value %q", of.Descriptor().Name(), v.text))
}

func pattern(text string) *jobpolicyv1.PodConditionPattern {
	conditionType, status, ok := strings.Cut(text, "=")
	p := &jobpolicyv1.PodConditionPattern{Type: conditionType, Status: jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE}
	if ok {
		p.Status = jobpolicyv1.ConditionStatus(value{status}.enum(p.Status))
	}
	return p
}

// indexes returns the set as numbers.
func indexes(m *jobpolicyv1.IndexSet) indexset.Set {
	set, ok := indexset.Read(m)
	if !ok {
		panic("malformed index set " + indexText(m))
	}
	return set
}
