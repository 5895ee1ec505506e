package engine_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/indexset"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/options"
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
//	options {…}      the Job's options, as people write them; options {} takes them away
//	problem text     one more reason why its options cannot be read; without text, none is left
//	failureRule, successRule   one more rule of a policy
//	now 20s          the time
//	status k=v…      fields of the status; condition Type [status=] [reason=] [at=]
//	pods k=v…        the summary of the pods
//	finished a k=v…  a row of an unaccounted pod; gone a… takes rows away
//	confirm a…       rows go, and their releases are confirmed; unconfirm forgets
//	terminating a k=v…  a pod that is being deleted and has not ended; without a pod: none
//	over a k=v…      a finished pod without finalizer; without a pod: none
//	row a k=v…       a row of an active pod; rows: none at all; norows: not asked
//	unstarted a k=v… a row of an active pod that does not start; started: there are none any more
//	defercreations 30s  no pods are to be created before that time
//	deferdeletions 30s  none are to be deleted before that time
//	deferfinished 30s   no finished pods are to be deleted before that time
//	quiet 30s        no routine status is to be written before that time
//	records 10s      none that records pods before that time
//	unlisted, inflight, retry, settings k=v…
//	past NAME k=v…   one more recent failure in retry
//	tried k=v…       one more of its failed tries; tried alone takes them away
func (s *scene) tell(line string) error {
	if document, ok := strings.CutPrefix(line, "options "); ok {
		return s.options(document)
	}
	if problem, is := strings.CutPrefix(line, "problem"); is {
		return s.problem(strings.TrimSpace(problem))
	}
	name, args, err := datadriven.ParseLine(line)
	if err != nil || name == "" || strings.HasPrefix(name, "#") {
		return err
	}
	if name == "job" {
		*s = scene{req: newScene().req, cases: s.cases}
		name = "spec"
	}
	lines := map[string]func([]datadriven.CmdArg) error{
		"spec": s.spec, "failureRule": s.failureRule, "successRule": s.successRule, "now": s.now,
		"status": s.status, "condition": s.condition, "pods": s.pods, "finished": s.finished, "gone": s.gone,
		"terminating": s.terminating, "over": s.over, "confirm": s.confirm, "unconfirm": s.unconfirm, "row": s.row, "unstarted": s.unstarted, "started": s.started,
		"rows": s.rows, "norows": s.norows,
		"defercreations": s.leave(createPods), "deferdeletions": s.leave(deletePods), "deferfinished": s.leave(jobpolicyv1.Step_STEP_DELETE_FINISHED_PODS),
		"quiet": s.leave(writeRoutineStatus), "records": s.leave(recordPods),
		"unlisted": s.unlisted, "inflight": s.inflight, "retry": s.retry, "past": s.past, "tried": s.tried, "settings": s.settings,
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
	scheduling := func(field string) func(value) {
		return func(v value) {
			if spec.Scheduling == nil || field == "policy" {
				spec.Scheduling = &jobpolicyv1.JobScheduling{}
			}
			v.setField(spec.Scheduling, field)
		}
	}
	return tellFields(spec, args, names{"mode": "completionMode", "groupTemplate": "groupTemplateName"}, map[string]func(value){
		"uid":               func(v value) { s.req.Job.Uid = uid(v.text) },
		"namespaceDeleting": func(v value) { v.setField(s.req, "namespaceDeleting") },
		"seenSuspended":     func(v value) { v.setField(s.req, "seenSuspended") },
		"policy":            scheduling("policy"),
		"minCount":          scheduling("minCount"),
	})
}

func (s *scene) options(document string) error {
	policy, problems := options.Parse([]byte(`{"job": ` + document + `}`))
	for _, problem := range problems {
		return errors.New(problem.String())
	}
	s.req.Spec.Options = policy.GetJob()
	return nil
}

func (s *scene) problem(text string) error {
	if text == "" {
		s.req.Spec.OptionProblems = nil
		return nil
	}
	s.req.Spec.OptionProblems = append(s.req.Spec.OptionProblems, text)
	return nil
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
	err := tellFields(nil, args, nil, map[string]func(value){
		"action":    func(v value) { r.Action = jobpolicyv1.PodFailurePolicyAction(v.enum(r.Action.Descriptor())) },
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
	err := tellFields(nil, args, nil, map[string]func(value){
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
	fields := names{"start": "startTime", "completion": "completionTime", "completed": "completedIndexes"}
	return tellFields(st, args, fields, map[string]func(value){
		"uncountedSucceeded": func(v value) { st.Uncounted.Succeeded = v.uids() },
		"uncountedFailed":    func(v value) { st.Uncounted.Failed = v.uids() },
	})
}

func (s *scene) condition(args []datadriven.CmdArg) error {
	c := &jobpolicyv1.JobCondition{Type: args[0].Key, Status: jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE}
	c.LastTransitionTime, c.LastProbeTime = at(0), at(0)
	err := tellFields(c, args[1:], nil, map[string]func(value){
		"at": func(v value) { c.LastTransitionTime, c.LastProbeTime = at(v.duration()), at(v.duration()) },
	})
	if s.req.Status == nil {
		s.req.Status = &jobpolicyv1.JobStatus{}
	}
	s.req.Status.Conditions = append(s.req.Status.Conditions, c)
	return err
}

func (s *scene) pods(args []datadriven.CmdArg) error {
	p, tracked := s.req.Pods, false
	err := tellFields(p, args, names{"indexes": "activeIndexes"}, map[string]func(value){
		"tracked": func(v value) { p.TrackedActive, tracked = v.int32(), true },
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
	fields := names{"at": "finishedTime", "failures": "indexFailureCount", "ignored": "indexIgnoredFailureCount"}
	err := tellFields(pod, args[1:], fields, failureKeys(why))
	if proto.Size(why) > 0 {
		why.PodName = args[0].Key
		pod.Failure = why
	}
	s.req.UnaccountedPods = append(s.req.UnaccountedPods, pod)
	return err
}

// failureKeys are the keys of lines about a failed pod.
func failureKeys(why *jobpolicyv1.PodFailure) map[string]func(value) {
	return map[string]func(value){
		"exit":             func(v value) { why.ContainerExits = append(why.ContainerExits, v.exit()) },
		"says":             func(v value) { v.saidBy(why.ContainerExits[len(why.ContainerExits)-1]) },
		"condition":        func(v value) { why.Conditions = append(why.Conditions, pattern(v.text)) },
		"reason":           func(v value) { why.Reason = v.text },
		"deletedBeforeEnd": func(v value) { why.DeletedBeforeEnd = v.bool() },
		"neverRan":         func(v value) { why.NeverRan = v.bool() },
		"start":            func(v value) { why.Start = v.start() },
		"step":             func(v value) { why.ResourceStep = v.int32() },
	}
}

func (s *scene) past(args []datadriven.CmdArg) error {
	why := &jobpolicyv1.PodFailure{PodName: args[0].Key}
	fact := &jobpolicyv1.PodFailureFact{FinishedTime: proto.CloneOf(s.req.Now), Failure: why}
	err := tellFields(fact, args[1:], names{"at": "finishedTime"}, failureKeys(why))
	if s.req.Retry == nil {
		s.req.Retry = &jobpolicyv1.RetryFacts{}
	}
	s.req.Retry.RecentFailures = append(s.req.Retry.RecentFailures, fact)
	return err
}

func (s *scene) tried(args []datadriven.CmdArg) error {
	if s.req.Retry == nil {
		s.req.Retry = &jobpolicyv1.RetryFacts{}
	}
	if len(args) == 0 {
		s.req.Retry.FailedTries = nil
		return nil
	}
	try := &jobpolicyv1.FailedTry{}
	s.req.Retry.FailedTries = append(s.req.Retry.FailedTries, try)
	return tellFields(try, args, names{"step": "resourceStep"}, map[string]func(value){
		"exit": func(v value) { try.ContainerExits = append(try.ContainerExits, v.exit()) },
	})
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
	fields := names{
		"since": "readySince", "restarts": "maxRestarts", "sidecars": "maxSidecarRestarts", "created": "createdTime",
		"lastExitAt": "lastExitTime",
	}
	err := tellFields(pod, args[1:], fields, map[string]func(value){
		"lastExit":    func(v value) { pod.PodName, pod.LastExit = args[0].Key, v.exit() },
		"says":        func(v value) { v.saidBy(pod.LastExit) },
		"unscheduled": func(v value) { pod.Scheduled = !v.bool() },
		"untracked":   func(v value) { pod.Tracked = !v.bool() },
	})
	if s.req.ActivePods == nil {
		s.req.ActivePods = &jobpolicyv1.ActivePods{}
	}
	s.req.ActivePods.Pods = append(s.req.ActivePods.Pods, pod)
	return err
}

func (s *scene) unstarted(args []datadriven.CmdArg) error {
	pod := &jobpolicyv1.ActivePod{
		Uid: uid(args[0].Key), Phase: jobpolicyv1.PodPhase_POD_PHASE_PENDING, PodName: args[0].Key, Scheduled: true, Tracked: true,
	}
	s.req.UnstartedPods = append(s.req.UnstartedPods, pod)
	return tellFields(pod, args[1:], nil, map[string]func(value){
		"start":       func(v value) { pod.Start = v.start() },
		"since":       func(v value) { pod.Start.Since = at(v.duration()) },
		"unscheduled": func(v value) { pod.Scheduled = !v.bool() },
	})
}

func (s *scene) started([]datadriven.CmdArg) error {
	s.req.UnstartedPods = nil
	return nil
}

func (s *scene) rows(args []datadriven.CmdArg) error {
	s.req.ActivePods = &jobpolicyv1.ActivePods{}
	return tellFields(s.req.ActivePods, args, nil, nil)
}

func (s *scene) norows([]datadriven.CmdArg) error {
	s.req.ActivePods = nil
	return nil
}

func (s *scene) unlisted(args []datadriven.CmdArg) error {
	s.req.UnlistedPods = &jobpolicyv1.UnlistedPods{}
	return tellFields(s.req.UnlistedPods, args, names{"indexes": "succeededIndexes", "failing": "failedIndexes"}, nil)
}

func (s *scene) inflight(args []datadriven.CmdArg) error {
	s.req.InFlight = &jobpolicyv1.InFlight{}
	return tellFields(s.req.InFlight, args, names{"indexes": "createIndexes"}, nil)
}

func (s *scene) retry(args []datadriven.CmdArg) error {
	r := &jobpolicyv1.RetryFacts{}
	s.req.Retry = r
	fail := func(v value, why *jobpolicyv1.PodFailure) {
		for _, offset := range v.list() {
			r.RecentFailures = append(r.RecentFailures, &jobpolicyv1.PodFailureFact{FinishedTime: at(value{offset}.duration()), Failure: why})
		}
	}
	return tellFields(nil, args, nil, map[string]func(value){
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
	return tellFields(s.req.Settings, args, names{
		"backoff": "podFailureBackoff", "maxBackoff": "maxPodFailureBackoff", "maxUncounted": "maxUncountedPods",
		"maxChanges": "maxPodChanges", "keepStartTime": "keepStartTimeOnSuspend", "groups": "podGroups",
	}, nil)
}

// names are shorter names of fields.
type names map[string]string

// tellFields sets fields of a message, if there is one. A key is the field's name in JSON, a
// shorter one, or one with a function of its own. A value that cannot be read panics, and
// tellFields turns that into an error.
func tellFields(m proto.Message, args []datadriven.CmdArg, short names, own map[string]func(value)) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	for _, arg := range args {
		v := value{strings.Join(arg.Vals, ",")}
		switch set, ok := own[arg.Key]; {
		case ok:
			set(v)
		case m != nil:
			v.setField(m, cmp.Or(short[arg.Key], arg.Key))
		default:
			return fmt.Errorf("unknown key %q", arg.Key)
		}
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

// setField sets the field with a name in JSON.
func (v value) setField(m proto.Message, name string) {
	fd := m.ProtoReflect().Descriptor().Fields().ByJSONName(name)
	if fd == nil {
		panic(fmt.Sprintf("unknown key %q", name))
	}
	m.ProtoReflect().Set(fd, v.of(fd))
}

// of reads a value of a field's type. Times are offsets from second 0.
func (v value) of(fd protoreflect.FieldDescriptor) protoreflect.Value {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(v.bool())
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(v.int32())
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(int64(v.int32()))
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(v.text)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(v.enum(fd.Enum())))
	case protoreflect.MessageKind:
		return protoreflect.ValueOfMessage(v.message(fd.Message().FullName()).ProtoReflect())
	}
	panic("no value for " + string(fd.Name()))
}

func (v value) message(name protoreflect.FullName) proto.Message {
	switch name {
	case "google.protobuf.Timestamp":
		return at(v.duration())
	case "google.protobuf.Duration":
		return durationpb.New(v.duration())
	case "jobpolicy.v1.IndexSet":
		return v.set()
	}
	panic("no value for a " + string(name))
}

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

// exit reads the end of a container: name, exit code and, if it is known, reason.
func (v value) exit() *jobpolicyv1.ContainerExit {
	container, rest, _ := strings.Cut(v.text, ":")
	code, reason, _ := strings.Cut(rest, ":")
	return &jobpolicyv1.ContainerExit{ContainerName: container, ExitCode: value{code}.int32(), Reason: reason}
}

// saidBy reads the last line of the termination message of a container, with _ for spaces.
func (v value) saidBy(exit *jobpolicyv1.ContainerExit) {
	exit.TerminationMessage = strings.ReplaceAll(v.text, "_", " ")
}

// start reads what keeps a pod from starting: a problem and, if there is one, the reason.
func (v value) start() *jobpolicyv1.PodStart {
	problem, reason, _ := strings.Cut(v.text, ":")
	start := &jobpolicyv1.PodStart{Reason: reason}
	if problem != "" {
		start.Problem = jobpolicyv1.PodStartProblem(value{problem}.enum(start.Problem.Descriptor()))
	}
	return start
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
func (v value) enum(of protoreflect.EnumDescriptor) int32 {
	values := of.Values()
	for i := range values.Len() {
		name := enumName(of, values.Get(i).Number())
		if strings.EqualFold(strings.ReplaceAll(name, "_", ""), v.text) {
			return int32(values.Get(i).Number())
		}
	}
	panic(fmt.Sprintf("%s has no value %q", of.Name(), v.text))
}

func pattern(text string) *jobpolicyv1.PodConditionPattern {
	conditionType, status, ok := strings.Cut(text, "=")
	p := &jobpolicyv1.PodConditionPattern{Type: conditionType, Status: jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE}
	if ok {
		p.Status = jobpolicyv1.ConditionStatus(value{status}.enum(p.Status.Descriptor()))
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
