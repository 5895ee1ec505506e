package demo

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// A result compares how a Job ended with what is expected.
type result struct {
	name, shows string
	// expected and seen are the same line if all is well.
	expected, seen string
	// why is the engine's explanation; empty if the engine has not decided on the Job.
	why string
	// problems are all other differences.
	problems []string
}

func (r result) good() bool { return r.expected == r.seen && len(r.problems) == 0 }

// check checks the Job as the API server has it now.
func check(ctx context.Context, client kubernetes.Interface, obs *observer, ex *example) result {
	past := obs.past(ex.job.Name)
	r := result{name: ex.name, shows: ex.shows, why: obs.why(ex.job.Name)}
	if past.job == nil {
		r.expected, r.seen = strings.Join(ex.wants, "; "), "never created"
		return r
	}
	job, err := client.BatchV1().Jobs(ex.job.Namespace).Get(ctx, ex.job.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		job, err = nil, nil
	}
	r.problem(err)
	logs, err := jobLogs(ctx, client, past.job.UID)
	r.problem(err)
	life := lifeSentences(past, logs)
	if ex.cron != nil {
		seen, err := checkCron(ctx, client, obs, ex)
		r.problem(err)
		r.why = seen.row[columnWhy]
		life = append(life, seen.sentences()...)
	}
	r.expected, r.seen = compare(ex.wants, statusSentences(job), life)
	if job != nil {
		r.problem(checkFinalizers(ctx, client, job))
		r.problem(checkAnnounced(past))
		r.problem(missingEvents(ctx, client, job.UID, ex.events))
	}
	return r
}

func (r *result) problem(err error) {
	if err != nil {
		r.problems = append(r.problems, err.Error())
	}
}

// compare writes what is expected and what is seen as two lines, which are the same if each
// wanted sentence was said, and the status says nothing else. A wanted sentence is said as it
// is written, or, if it has a tilde, in a form that matches the pattern after that.
func compare(wants, status, life []string) (expected, seen string) {
	var expects, sees []string
	rest := slices.Clone(status)
	for _, want := range wants {
		text, form := formOf(want)
		expects = append(expects, text)
		if i := slices.IndexFunc(rest, form.MatchString); i >= 0 {
			rest = slices.Delete(rest, i, i+1)
		} else if !slices.ContainsFunc(life, form.MatchString) {
			text = "not: " + text
		}
		sees = append(sees, text)
	}
	expected, seen = strings.Join(expects, "; "), strings.Join(append(sees, rest...), "; ")
	if expected != seen {
		seen += " (its life: " + strings.Join(life, "; ") + ")"
	}
	return expected, seen
}

// formOf is a wanted sentence as it is shown, and the form in which it is said.
func formOf(want string) (text string, form *regexp.Regexp) {
	text, pattern, ok := strings.Cut(want, " ~ ")
	if !ok {
		pattern = regexp.QuoteMeta(text)
	}
	return text, regexp.MustCompile(`^(?:` + pattern + `)$`)
}

// checkAnnounced wants the interim condition to have been in the status before the
// terminal one.
func checkAnnounced(past history) error {
	if finished(past.job) && !past.announced {
		return fmt.Errorf("the terminal condition of Job %s came without an interim one before it", past.job.Name)
	}
	return nil
}

// checkFinalizers finds pods of a finished Job that still have the tracking finalizer.
func checkFinalizers(ctx context.Context, client kubernetes.Interface, job *batchv1.Job) error {
	pods, err := podsOf(ctx, client, job.UID)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer) {
			return fmt.Errorf("pod %s still holds the finalizer", pod.Name)
		}
	}
	return nil
}

// missingEvents returns the reasons for which an object has no event. Events come late,
// so it looks more than once.
func missingEvents(ctx context.Context, client kubernetes.Interface, object types.UID, want []string) error {
	var missing []string
	for range 20 {
		events, err := client.CoreV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("involvedObject.uid", string(object)).String(),
		})
		if err != nil {
			return fmt.Errorf("list events: %w", err)
		}
		missing = slices.DeleteFunc(slices.Clone(want), func(reason string) bool {
			return slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.Reason == reason })
		})
		if len(missing) == 0 {
			return nil
		}
		if ctx.Err() != nil {
			break
		}
		time.Sleep(250 * time.Millisecond)
	}
	return fmt.Errorf("events are missing: %s", strings.Join(missing, ", "))
}
