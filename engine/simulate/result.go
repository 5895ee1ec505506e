package simulate

import (
	"fmt"
	"strings"
	"time"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/podfacts"
)

// A Result is the result of a play. Times are counted from its beginning.
type Result struct {
	// Timeline is in order of time.
	Timeline []*Entry
	// Pods are in order of creation.
	Pods []*Pod
	// Events are the Kubernetes events on the Job.
	Events []Event
	// Status is the Job's status at the end.
	Status *jobpolicyv1.JobStatus
	// Spec is the Job's spec at the end, after what the user changed.
	Spec *jobpolicyv1.JobSpec
	// Verdict is Complete, Failed, or Unfinished. Reason and Message are those of the
	// condition.
	Verdict, Reason, Message string
	// Makespan is how long it took until the Job was finished, or the play stopped.
	Makespan time.Duration
	// Stopped says why a play ended without a verdict; empty if the user deleted the Job.
	Stopped string
	// Explanation is that of the last decision.
	Explanation *jobpolicyv1.Explanation
	// Deleted is true when the Job was deleted.
	Deleted bool
	// Decisions and StatusWrites are how many the play had.
	Decisions, StatusWrites int
	// Moments are in order of time. Only with Scenario.Moments.
	Moments []*Moment
}

// A Moment is a time at which the engine was asked, and what it said until it had
// nothing more to do.
type Moment struct {
	// At is the virtual time since the play began.
	At time.Duration
	// Status and Spec are the Job's after the last decision of the moment.
	Status *jobpolicyv1.JobStatus
	Spec   *jobpolicyv1.JobSpec
	// Explanations are those of the decisions, in order.
	Explanations []*jobpolicyv1.Explanation
}

// Unfinished is the verdict of a play that ended before the Job did.
const Unfinished = "Unfinished"

// A Pod is the life of one pod.
type Pod struct {
	// Number counts pods in the order of creation, from 0.
	Number int
	Name   string
	// Index is the pod's index in an Indexed Job, and Attempt counts the pods of that
	// index from 0.
	Index   *int32
	Attempt int
	// Created, Started and Ended are virtual times since the play began. Started and Ended are
	// nil when that never happened.
	Created        time.Duration
	Started, Ended *time.Duration
	// Outcome is succeeded, failed, evicted, deleted, or empty if the pod did not end.
	Outcome string
	// ExitCode is the first one other than 0, in the order of the pod's status and without
	// sidecars; 0 if it succeeded, or did not end.
	ExitCode int32
	// Failures are the times at which a container failed and was to be restarted in the
	// pod. Restarts counts the restarts of all containers.
	Failures []time.Duration
	Restarts int
}

// An Event is a Kubernetes event on the Job.
type Event struct {
	At              time.Duration
	Warning         bool
	Reason, Message string
}

// A Kind is the kind of an entry of the timeline.
type Kind string

// The kinds of entries.
const (
	PodsCreated         Kind = "PodsCreated"
	PodsStarted         Kind = "PodsStarted"
	PodsSucceeded       Kind = "PodsSucceeded"
	PodsFailed          Kind = "PodsFailed"
	PodsEvicted         Kind = "PodsEvicted"
	PodsDeleted         Kind = "PodsDeleted"
	PodsOverdue         Kind = "PodsOverdue"
	PodsToldToEnd       Kind = "PodsToldToEnd"
	PodsRefused         Kind = "PodsRefused"
	PodsLost            Kind = "PodsLost"
	PodsBack            Kind = "PodsBack"
	PodsGivenUp         Kind = "PodsGivenUp"
	ContainersEnded     Kind = "ContainersEnded"
	ContainersFailed    Kind = "ContainersFailed"
	ContainersRestarted Kind = "ContainersRestarted"
	Waiting             Kind = "Waiting"
	Condition           Kind = "Condition"
	UserChange          Kind = "UserChange"
	JobDeleted          Kind = "JobDeleted"
)

// An Entry is a line of the timeline: what happened at one time to any number of
// pods.
type Entry struct {
	At   time.Duration
	Kind Kind
	// Pods are indexes of an Indexed Job, otherwise numbers of pods.
	Pods   []int32
	Detail string
	// Text is the line for people.
	Text string
	// indexed: Pods are indexes, not numbers.
	indexed bool
	// container is the container, if pods have more than one.
	container string
}

// say records what happened to a pod.
func (p *player) say(kind Kind, pod *simPod, detail string) { p.add(kind, pod, "", detail) }

// sayOf records what happened to a container.
func (p *player) sayOf(kind Kind, pod *simPod, c *simContainer, detail string) {
	name := ""
	if len(pod.containers) > 1 {
		name = c.Name
	}
	p.add(kind, pod, name, detail)
}

// sayEnd records that a container ended, and what comes then.
func (p *player) sayEnd(pod *simPod, c *simContainer, then string) {
	if c.exitCode == 0 {
		p.sayOf(ContainersEnded, pod, c, "exit code 0"+then)
		return
	}
	p.sayOf(ContainersFailed, pod, c, fmt.Sprintf("exit code %d%s", c.exitCode, then))
}

// sayOutcome records how a pod ended by itself.
func (p *player) sayOutcome(pod *simPod) {
	if pod.phase == jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED {
		p.say(PodsSucceeded, pod, "")
		return
	}
	var reasons []string
	if pod.overdue {
		reasons = append(reasons, podOverdue)
	}
	for _, e := range pod.exits(false) {
		text := fmt.Sprintf("exit code %d", e.GetExitCode())
		if e.GetReason() != "" {
			text += " (" + e.GetReason() + ")"
		}
		if len(pod.containers) > 1 {
			text = fmt.Sprintf("container %s ended with %s", e.GetContainerName(), text)
		}
		reasons = append(reasons, text)
	}
	p.say(PodsFailed, pod, strings.Join(reasons, ", "))
}

// add adds to the timeline. Pods to which the same happens at the same time share one entry.
func (p *player) add(kind Kind, pod *simPod, container, detail string) {
	for _, e := range p.current {
		if e.Kind == kind && e.Detail == detail && e.container == container {
			e.Pods = append(e.Pods, pod.key)
			return
		}
	}
	p.current = append(p.current, &Entry{
		At: p.now, Kind: kind, Pods: []int32{pod.key}, Detail: detail, indexed: p.sc.indexed(), container: container,
	})
}

func (p *player) sayText(kind Kind, text string) {
	p.current = append(p.current, &Entry{At: p.now, Kind: kind, Detail: text})
}

// flush closes the entries of this moment.
func (p *player) flush() {
	for _, e := range p.current {
		e.Text = e.text()
	}
	p.result.Timeline = append(p.result.Timeline, p.current...)
	p.current = nil
}

var verbs = map[Kind]string{
	PodsCreated:         "created",
	PodsStarted:         "running",
	PodsSucceeded:       "succeeded",
	PodsFailed:          "failed",
	PodsEvicted:         "evicted (condition DisruptionTarget)",
	PodsDeleted:         "deleted",
	PodsOverdue:         "past its deadline",
	PodsToldToEnd:       "told to end",
	PodsLost:            "lost: the node is not Ready",
	PodsBack:            "back: the node is Ready again",
	PodsGivenUp:         "given up",
	ContainersEnded:     "container ended",
	ContainersFailed:    "container failed",
	ContainersRestarted: "container restarted",
}

func (e *Entry) text() string {
	verb, ofPods := verbs[e.Kind]
	if !ofPods {
		return e.Detail
	}
	if e.container != "" {
		verb = strings.Replace(verb, "container", "container "+e.container, 1)
	}
	set := FormatIndexes(podfacts.IndexSet(e.Pods))
	noun := "pod"
	if e.indexed {
		noun = "index"
	}
	text := fmt.Sprintf("%s %s %s", noun, set, verb)
	if n := len(e.Pods); n > 1 {
		text = fmt.Sprintf("%d pods %s (%s %s)", n, verb, noun, set)
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// FormatIndexes writes a set as Kubernetes does: 1,3-5.
func FormatIndexes(set *jobpolicyv1.IndexSet) string {
	text := ""
	for _, r := range set.GetRanges() {
		if text != "" {
			text += ","
		}
		switch r.GetLast() - r.GetFirst() {
		case 0:
			text += fmt.Sprint(r.GetFirst())
		case 1:
			text += fmt.Sprintf("%d,%d", r.GetFirst(), r.GetLast())
		default:
			text += fmt.Sprintf("%d-%d", r.GetFirst(), r.GetLast())
		}
	}
	return text
}

// sayConditions records the conditions that a status makes true or false.
func (p *player) sayConditions(next *jobpolicyv1.JobStatus) {
	before := map[string]jobpolicyv1.ConditionStatus{}
	for _, c := range p.status.GetConditions() {
		before[c.GetType()] = c.GetStatus()
	}
	for _, c := range next.GetConditions() {
		if before[c.GetType()] == c.GetStatus() {
			continue
		}
		text := "condition " + c.GetType()
		if c.GetStatus() != jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE {
			text += "=False"
		}
		if c.GetReason() != "" {
			text += " (" + c.GetReason() + ")"
		}
		if c.GetMessage() != "" {
			text += ": " + c.GetMessage()
		}
		p.sayText(Condition, text)
		p.ended = p.now
	}
}

// bookkeeping are the waits that the timeline does not show: they end at once, or
// only say when the next decision is due.
var bookkeeping = map[jobpolicyv1.WaitReason]bool{
	jobpolicyv1.WaitReason_WAIT_REASON_INTERIM_CONDITION: true,
	jobpolicyv1.WaitReason_WAIT_REASON_UNCOUNTED_PODS:    true,
	jobpolicyv1.WaitReason_WAIT_REASON_FINALIZERS:        true,
	jobpolicyv1.WaitReason_WAIT_REASON_CHANGE_LIMIT:      true,
	jobpolicyv1.WaitReason_WAIT_REASON_LEDGER_FULL:       true,
	jobpolicyv1.WaitReason_WAIT_REASON_DEFERRED:          true,
	jobpolicyv1.WaitReason_WAIT_REASON_DEADLINE:          true,
}

// sayWaits records what the Job waits for, if that is new.
func (p *player) sayWaits(waits []*jobpolicyv1.Wait) {
	told := ""
	var lines []string
	for _, w := range waits {
		if bookkeeping[w.GetReason()] {
			continue
		}
		line := "waits: " + w.GetDetail()
		if w.GetReason() == jobpolicyv1.WaitReason_WAIT_REASON_PODS_REMAINING {
			line = "waits for pods to end: " + w.GetDetail()
		}
		if until := w.GetUntil(); until != nil {
			line = fmt.Sprintf("waits until %s: %s", Clock(until.AsTime().Sub(p.sc.Start)), w.GetDetail())
		}
		lines = append(lines, line)
		told += line + "\n"
	}
	if told == p.waits {
		return
	}
	p.waits = told
	for _, line := range lines {
		p.sayText(Waiting, line)
	}
}

// finish builds the result.
func (p *player) finish() *Result {
	p.flush()
	r := p.result
	r.Status, r.Spec, r.Deleted = p.status, p.spec, p.gone
	r.Verdict, r.Makespan = Unfinished, p.now
	if c := terminalCondition(p.status); c != nil {
		r.Verdict, r.Reason, r.Message, r.Stopped = c.GetType(), c.GetReason(), c.GetMessage(), ""
		r.Makespan = p.ended
	}
	return r
}
