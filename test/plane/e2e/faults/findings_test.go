package faults

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/controlplane"
	"jobpolicy.dev/test/kit/objects"
)

// findings are those of docs/upstream-findings.md. Each brings a defect about, and returns what reports whether it shows.
var findings = map[string]func(*lab) func() bool{
	"deadline-of-centuries": func(l *lab) func() bool {
		s := spec(1, 1)
		s.ActiveDeadlineSeconds = new(int64(10_000_000_000)) // 317 years.
		job := l.create("centuries", s)
		l.wait(job.Name, "it has begun", func(j *batchv1.Job) bool { return j.Status.Active == 1 || isFinished(j) })
		return func() bool { return isTrue(l.job(job.Name), batchv1.JobFailed) }
	},
	"time-to-live-extended": func(l *lab) func() bool {
		release := make(chan struct{})
		deletion := l.proxy.On(Match{Verb: "delete", Resource: "jobs"}, Until(release))
		s := spec(1, 1)
		s.TTLSecondsAfterFinished = new(int32(1))
		job := l.create("extended", s)
		l.succeed(l.active(job, 1)...)
		l.hits(deletion, 1)
		l.patch(job.Name, `{"spec":{"ttlSecondsAfterFinished":600}}`)
		close(release)
		return func() bool {
			_, err := client.BatchV1().Jobs(l.namespace).Get(l.Context(), job.Name, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		}
	},
	"second-pod": func(l *lab) func() bool {
		release := l.proxy.HoldWatch("pods")
		lost := l.proxy.On(Creations, Lose, Times(1))
		job := l.create("twice", spec(1, 1))
		l.hits(lost, 1)
		if l.builtIn {
			l.active(job, 2) // One is deleted as soon as the watch shows both.
		}
		release()
		return func() bool { return l.seen.Pods(job.UID) > 1 }
	},
	"success-thrown-away": func(l *lab) func() bool {
		job := l.create("thrown", spec(3, 2))
		pods := l.active(job, 2)
		l.bind(pods...)
		l.run(pods[0])
		l.wait(job.Name, "one pod is ready", func(j *batchv1.Job) bool { return ready(j) == 1 })
		release, releases := l.proxy.HoldWatch("pods"), l.proxy.On(Releases, pass)
		l.succeed(pods[1])
		l.patch(job.Name, `{"spec":{"parallelism":1}}`)
		l.hits(releases, 1)
		release()
		return func() bool { return l.job(job.Name).Status.Succeeded == 0 }
	},
	"first-seen-when-deleted": func(l *lab) func() bool {
		release := l.proxy.HoldWatch("pods")
		job := l.create("unseen", spec(1, 1))
		pods := l.active(job, 1)
		l.bind(pods...)
		l.deletePod(pods[0])
		// The next list is from now, and the watch before it shows nothing more.
		l.proxy.On(Match{Verb: "watch", Resource: "pods"}, Refuse(http.StatusGone, metav1.StatusReasonExpired), Times(1))
		l.proxy.CutWatches("pods")
		release()
		l.end(pods...)
		return func() bool { return len(l.pods(job)) == 0 }
	},
	"index-failed-and-succeeded": func(l *lab) func() bool {
		job := l.create("both", withPerIndex(indexed(2, 2), 0))
		pods := byIndex(l.active(job, 2))
		l.bind(pods["0"], pods["1"])
		l.run(pods["0"], pods["1"])
		l.wait(job.Name, "all are ready", func(j *batchv1.Job) bool { return ready(j) == 2 })
		releases := l.proxy.On(Releases, Refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable))
		l.deletePod(pods["0"])
		l.wait(job.Name, "its index failed", func(j *batchv1.Job) bool { return j.Status.FailedIndexes != nil && *j.Status.FailedIndexes == "0" })
		l.succeed(pods["0"])
		releases.Off()
		return func() bool { return l.refusals() > 0 }
	},
	"ends-while-suspended": func(l *lab) func() bool {
		job := l.create("suspended", withLimit(spec(1, 1), 0))
		pods := l.active(job, 1)
		l.bind(pods...)
		l.run(pods...)
		l.wait(job.Name, "its pod is ready", func(j *batchv1.Job) bool { return ready(j) == 1 })
		refusal := Refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
		releases, deletions := l.proxy.On(Releases, refusal), l.proxy.On(Match{Verb: "delete", Resource: "pods"}, refusal)
		l.patch(job.Name, `{"spec":{"suspend":true}}`)
		l.eventually("the controller has tried to stop the pod", func() (bool, string) { return releases.Hits()+deletions.Hits() > 0, "" })
		l.fail(pods...)
		releases.Off()
		deletions.Off()
		return func() bool { return l.refusals() > 0 }
	},
	"counted-twice": func(l *lab) func() bool {
		job := l.create("counted", spec(3, 1))
		l.succeed(l.active(job, 1)...)
		l.wait(job.Name, "one counts", func(j *batchv1.Job) bool { return j.Status.Succeeded == 1 })
		off := l.putBack()
		releases := l.proxy.On(Releases, pass)
		l.succeed(l.active(job, 1)...)
		l.eventually("the pod counts, or is released again", func() (bool, string) {
			return releases.Hits() > 1 || l.job(job.Name).Status.Succeeded == 2, ""
		})
		l.executor.kill()
		off()
		l.executor = l.startExecutor(l.proxy)
		l.wait(job.Name, "the next pod, or the end", func(j *batchv1.Job) bool { return j.Status.Active == 1 && len(l.pods(job)) == 3 || isFinished(j) })
		return func() bool { return isTrue(l.job(job.Name), batchv1.JobComplete) }
	},
	"finalizer-never-tried-again": func(l *lab) func() bool {
		off := l.putBack()
		releases := l.proxy.On(Releases, pass)
		s := indexed(2, 2)
		s.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededCount: new(int32(1))}}}
		job := l.create("held", s)
		l.succeed(byIndex(l.active(job, 2))["0"])
		l.hits(releases, 2) // Of the pod that succeeded, and of the other one before it is deleted.
		l.eventually("the other pod is being deleted", func() (bool, string) {
			pods := l.pods(job)
			return pods[0].DeletionTimestamp != nil || pods[len(pods)-1].DeletionTimestamp != nil, describePods(pods)
		})
		off()
		return func() bool { return !isFinished(l.job(job.Name)) }
	},
}

// pass lets a call through, for a rule that counts calls.
func pass(x *Exchange) { x.forward(x.w) }

// TestFindings plays each finding on a real API server: with the built-in controllers its defect shows, and with the
// executor it does not.
func TestFindings(t *testing.T) {
	t.Parallel()
	if controlplane.Minor() != 0 {
		t.Skip("the findings are about the newest version")
	}
	page, err := os.ReadFile("../../../../docs/upstream-findings.md")
	must.Succeed(t, err)
	told := regexp.MustCompile(`(?m)^## ([a-z]+-[a-z-]+)$`).FindAllStringSubmatch(string(page), -1)
	if len(told) != len(findings) {
		t.Errorf("the page tells of %d findings, and %d are played here", len(told), len(findings))
	}
	for _, heading := range told {
		for side, builtIn := range map[string]bool{"built-in": true, "executor": false} {
			t.Run(heading[1]+"/"+side, func(t *testing.T) {
				t.Parallel()
				finding := findings[heading[1]]
				if finding == nil {
					t.Fatal("it is not played here")
				}
				l, shows := play(t, finding, builtIn)
				for try := 1; builtIn && try < tries && !soon(shows); try++ {
					l, shows = play(t, finding, builtIn)
				}
				l.eventually("the defect shows only with the built-in controllers", func() (bool, string) { return shows() == builtIn, "" })
			})
		}
	}
}

// tries is how often a defect of the built-in controllers is brought about, if it does not show: it may need a step of theirs
// to come before or after another one, which chance decides on a busy machine. The executor gets one try.
const tries = 3

func play(t *testing.T, finding func(*lab) func() bool, builtIn bool) (*lab, func() bool) {
	t.Helper()
	l := (&lab{T: t, builtIn: builtIn}).open()
	l.progress("before") // Then the controllers' watches are open.
	shows := finding(l)
	l.progress("after")
	return l, shows
}

// soon reports whether a defect shows within ten seconds.
func soon(shows func() bool) bool {
	for range 50 {
		if shows() {
			return true
		}
		time.Sleep(200 * time.Millisecond)
	}
	return false
}

// progress waits until another Job has gone through its life: the controllers have seen all that happened before.
func (l *lab) progress(name string) {
	l.Helper()
	other := l.create(name, spec(1, 1))
	l.succeed(l.active(other, 1)...)
	l.finished(other.Name)
}

// putBack installs an admission webhook that undoes each removal of a finalizer from a pod of the namespace, as one
// does that writes back a copy, and waits until it acts. It acts until off is called.
func (l *lab) putBack() (off func()) {
	l.Helper()
	var idle atomic.Bool
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		var before, after corev1.Pod
		if err := errors.Join(json.NewDecoder(r.Body).Decode(&review), json.Unmarshal(review.Request.OldObject.Raw, &before), json.Unmarshal(review.Request.Object.Raw, &after)); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		if len(after.Finalizers) < len(before.Finalizers) && !idle.Load() {
			list, _ := json.Marshal(before.Finalizers) // strings
			review.Response.PatchType = new(admissionv1.PatchTypeJSONPatch)
			review.Response.Patch = fmt.Appendf(nil, `[{"op":"add","path":"/metadata/finalizers","value":%s}]`, list)
		}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review) // the API server may have gone
	}))
	l.Cleanup(server.Close)
	webhooks := client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	objects.Create(l, webhooks, &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: l.namespace},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "puts-back.jobpolicy.dev", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      &server.URL,
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: l.namespace}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
		}},
	})
	l.Cleanup(func() { _ = webhooks.Delete(context.Background(), l.namespace, metav1.DeleteOptions{}) }) // the plane goes, too
	probe := l.untilPutBack()
	return func() {
		idle.Store(true)
		l.patchFinalizers(probe, "null")
		l.remove(*probe)
	}
}

// untilPutBack waits until a finalizer that is taken from a pod stays.
func (l *lab) untilPutBack() *corev1.Pod {
	l.Helper()
	probe := objects.Create(l, client.CoreV1().Pods(l.namespace), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Spec: spec(1, 1).Template.Spec})
	l.eventually("the webhook acts", func() (bool, string) {
		l.patchFinalizers(probe, `["jobpolicy.dev/probe"]`)
		return len(l.patchFinalizers(probe, "null").Finalizers) > 0, ""
	})
	return probe
}

func (l *lab) patchFinalizers(pod *corev1.Pod, list string) *corev1.Pod {
	l.Helper()
	return objects.Patch(l, client.CoreV1().Pods(l.namespace), pod.Name, `{"metadata":{"finalizers":`+list+`}}`)
}

// deletePod deletes a pod as a user does.
func (l *lab) deletePod(pod corev1.Pod) {
	l.Helper()
	objects.Delete(l, client.CoreV1().Pods(l.namespace), pod.Name, metav1.DeleteOptions{})
}
