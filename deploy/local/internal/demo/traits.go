package demo

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// A trait is a condition that a Job has to meet and that its status does not
// show.
type trait struct {
	// text describes it in a few words.
	text string
	// differs returns how the Job differs; nil if it meets the condition.
	differs func(evidence) error
}

// evidence is what traits are checked against.
type evidence struct {
	past history
	// logs are those of the Job's pods that are still there.
	logs []string
	// cron is the CronJob that the Job is a run of.
	cron cronSeen
}

// number is a trait that compares a count.
func number(want int, text string, count func(evidence) int) trait {
	return trait{fmt.Sprintf(text, want), func(e evidence) error {
		if got := count(e); got != want {
			return fmt.Errorf(text, got)
		}
		return nil
	}}
}

func atMost(limit int32, text string, highest func(history) int32) trait {
	return trait{fmt.Sprintf("never more than %d "+text, limit), func(e evidence) error {
		if got := highest(e.past); got > limit {
			return fmt.Errorf("%d "+text, got)
		}
		return nil
	}}
}

func mostActive(n int32) trait {
	return atMost(n, "active", func(p history) int32 { return p.highest.active })
}

// mostAlive bounds the pods that had not ended, those being deleted included.
func mostAlive(n int32) trait {
	return atMost(n, "pods alive", func(p history) int32 { return p.highest.alive })
}

// mostTerminating wants status.terminating to have been that high, and no higher.
func mostTerminating(n int) trait {
	return number(n, "seen terminating: %d", func(e evidence) int { return int(e.past.highest.terminating) })
}

func podsInAll(n int) trait {
	return number(n, "pods in all: %d", func(e evidence) int { return len(e.past.pods) })
}

func containerRuns(n int) trait {
	return number(n, "container runs: %d", func(e evidence) int {
		runs := 0
		for _, pod := range e.past.pods {
			runs += 1 + int(pod.restarts)
		}
		return runs
	})
}

// noPods wants the Job to control no pod at the end.
func noPods() trait {
	return trait{"no pod of its own", func(e evidence) error {
		if n := len(e.logs); n > 0 {
			return fmt.Errorf("%d pods of its own", n)
		}
		return nil
	}}
}

// podsByIndex wants these numbers of pods for the indexes 0, 1, 2 and so on.
func podsByIndex(want ...int) trait {
	return trait{"pods by index " + list(want), func(e evidence) error {
		got := make([]int, len(want))
		for _, pod := range e.past.pods {
			if pod.index < 0 || pod.index >= len(got) {
				return fmt.Errorf("a pod with index %d", pod.index)
			}
			got[pod.index]++
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("pods by index %s", list(got))
		}
		return nil
	}}
}

func list(numbers []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers), " ", ","), "[]")
}

// stoppedIndexes wants the pods of these indexes, and of no other, to have been
// stopped before their end.
func stoppedIndexes(want string) trait {
	return trait{"the pod of index " + want + " stopped", func(e evidence) error {
		var stopped []int
		for _, pod := range e.past.pods {
			if pod.stopped {
				stopped = append(stopped, pod.index)
			}
		}
		slices.Sort(stopped)
		if got := list(stopped); got != want {
			return fmt.Errorf("the pods of indexes %q stopped", got)
		}
		return nil
	}}
}

// selectNode wants every pod to have a node selector.
func selectNode(key, value string) trait {
	return trait{fmt.Sprintf("all with nodeSelector %s=%s", key, value), func(e evidence) error {
		for _, pod := range e.past.pods {
			if pod.nodeSelector[key] != value {
				return fmt.Errorf("a pod with nodeSelector %v", pod.nodeSelector)
			}
		}
		return nil
	}}
}

func startsAnew() trait {
	return number(2, "start times: %d", func(e evidence) int { return len(e.past.startTimes) })
}

// ended wants the Job to have had a condition when it was last seen.
func ended(want batchv1.JobConditionType) trait {
	return trait{string(want) + " before", func(e evidence) error {
		if !conditionTrue(e.past.job, want) {
			return fmt.Errorf("not %s before", want)
		}
		return nil
	}}
}

// outlivedEnd wants the Job to have been deleted no earlier than this time after its
// completion.
func outlivedEnd(least time.Duration) trait {
	return trait{fmt.Sprintf("deleted %v after, not sooner", least), func(e evidence) error {
		deleted, completed := e.past.job.DeletionTimestamp, e.past.job.Status.CompletionTime
		if deleted == nil || completed == nil {
			return fmt.Errorf("deleted at %v, complete at %v", deleted, completed)
		}
		if after := deleted.Sub(completed.Time); after < least {
			return fmt.Errorf("deleted %v after", after)
		}
		return nil
	}}
}

// logs checks the output of the Job's pods.
func logs(text string, check func([]string) error) trait {
	return trait{text, func(e evidence) error {
		if err := check(e.logs); err != nil {
			return fmt.Errorf("logs: %w", err)
		}
		return nil
	}}
}

func hello(logs []string) error {
	if len(logs) != 1 || logs[0] != "Hello world!\n" {
		return fmt.Errorf("%q", logs)
	}
	return nil
}

// timeAndHello wants a line with the time, and one that says hello.
func timeAndHello(logs []string) error {
	if len(logs) != 1 || strings.Count(logs[0], "\n") != 2 || !strings.HasSuffix(logs[0], "\nHello from the Kubernetes cluster\n") {
		return fmt.Errorf("%q", logs)
	}
	return nil
}

// digitsOfPi wants 2000 digits, of which it knows the first.
func digitsOfPi(logs []string) error {
	if len(logs) != 1 {
		return fmt.Errorf("of %d pods, not 1", len(logs))
	}
	digits := strings.TrimSpace(logs[0])
	if len(digits) != 2001 || !strings.HasPrefix(digits, "3.14159265358979323846") {
		return fmt.Errorf("%d characters that begin with %.22q", len(digits), digits)
	}
	return nil
}

var itemLine = regexp.MustCompile(`(?m)^item (\d)$`)

// eachItemOnce wants the items 1 to 9 among the workers' lines, each once.
func eachItemOnce(logs []string) error {
	var items []string
	for _, match := range itemLine.FindAllStringSubmatch(strings.Join(logs, "\n"), -1) {
		items = append(items, match[1])
	}
	slices.Sort(items)
	if got := strings.Join(items, ""); got != "123456789" {
		return fmt.Errorf("items taken: %s", got)
	}
	return nil
}

// eachIndexOnce wants one pod for each index to print it.
func eachIndexOnce(logs []string) error {
	sorted := slices.Sorted(slices.Values(logs))
	for i, log := range sorted {
		if strings.TrimSpace(log) != fmt.Sprintf("My index is %d", i) {
			return fmt.Errorf("a pod printed %q", log)
		}
	}
	if len(sorted) != 5 {
		return fmt.Errorf("of %d pods, not 5", len(sorted))
	}
	return nil
}

// fourFullRuns wants four pods that each ran to the end.
func fourFullRuns(logs []string) error {
	full := 0
	for _, log := range logs {
		if strings.Contains(log, "completed") {
			full++
		}
	}
	if full != 4 || len(logs) != 4 {
		return fmt.Errorf("%d of %d pods ran to the end", full, len(logs))
	}
	return nil
}

// twoOfEach wants two pods of the old template and two of the new one.
func twoOfEach(logs []string) error {
	want := []string{"template of new\n", "template of new\n", "template of old\n", "template of old\n"}
	if got := slices.Sorted(slices.Values(logs)); !slices.Equal(got, want) {
		return fmt.Errorf("%q", got)
	}
	return nil
}

// podEnded reports whether no container of a pod runs any more.
func podEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
