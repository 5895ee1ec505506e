package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/services/internal/program"
	"jobpolicy.dev/services/internal/testapi"
	"jobpolicy.dev/services/internal/testenv"
	"jobpolicy.dev/services/internal/testprocess"
)

// jobsThatNeedAPod are n Jobs of one pod each.
func jobsThatNeedAPod(n int) []*batchv1.Job {
	jobs := make([]*batchv1.Job, n)
	for i := range jobs {
		jobs[i] = &batchv1.Job{
			TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: fmt.Sprintf("job-%d", i), UID: types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)),
				ResourceVersion: "1", Generation: 1,
			},
			Spec: batchv1.JobSpec{
				Parallelism: new(int32(1)), Completions: new(int32(1)), BackoffLimit: new(int32(6)),
				ManagedBy: new(executor.ManagedBy), Suspend: new(false),
				CompletionMode: new(batchv1.NonIndexedCompletion), PodReplacementPolicy: new(batchv1.TerminatingOrFailed),
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"job": fmt.Sprint(i)}},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"job": fmt.Sprint(i)}},
					Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
				},
			},
		}
	}
	return jobs
}

// TestAFrozenLeaderWritesNothingOnceAnotherLeads freezes the leader while each of
// its writes has arrived whole and none is answered. Once another replica leads,
// all of them fail: what it would do next is to send an event about each, and to
// try again.
func TestAFrozenLeaderWritesNothingOnceAnotherLeads(t *testing.T) {
	jobs := jobsThatNeedAPod(20)
	api := testapi.Start(t, jobs...)
	frozen, next := api.Door(t), api.Door(t)
	args := []string{
		"--engine=embedded", "--http-address=127.0.0.1:0", "--shutdown-timeout=1s", "--kube-api-qps=1000", "--kube-api-burst=1000",
		"--leader-elect-lease-duration=8s", "--leader-elect-renew-deadline=7s", "--leader-elect-retry-period=200ms",
	}
	first := testprocess.Start(t, nil, append(args, "--kubeconfig", frozen.Kubeconfig)...)
	writes(t, frozen, len(jobs))
	first.Signal(t, syscall.SIGSTOP)
	stopped(t, first)

	second := testprocess.Start(t, nil, append(args, "--kubeconfig", next.Kubeconfig)...)
	writes(t, next, len(jobs)) // so it leads
	before := frozen.Writes()
	frozen.Answer()
	first.Signal(t, syscall.SIGCONT)
	if code := first.ExitCode(t); code != program.ExitFailed {
		t.Errorf("exit code of the replica that was frozen = %d, want %d", code, program.ExitFailed)
	}
	if after := frozen.Writes(); len(after) > len(before) {
		t.Errorf("the replica that was frozen wrote beside the next leader: %q", after[len(before):])
	}

	next.Answer()
	testenv.Eventually(t, func() error { // the next leader may write
		for _, want := range []string{"POST /api/v1/namespaces/ns/pods", "POST /api/v1/namespaces/ns/events"} {
			if !slices.Contains(next.Writes()[len(jobs):], want) {
				return fmt.Errorf("the next leader did not send %s, but %q", want, next.Writes()[len(jobs):])
			}
		}
		return nil
	})
	second.Signal(t, syscall.SIGTERM)
	if code := second.ExitCode(t); code != program.ExitOK {
		t.Errorf("exit code of the next leader = %d, want %d", code, program.ExitOK)
	}
}

// writes waits until so many have come.
func writes(t *testing.T, d *testapi.Door, n int) {
	t.Helper()
	testenv.Eventually(t, func() error {
		if got := d.Writes(); len(got) != n {
			return fmt.Errorf("%d writes, want %d: %q", len(got), n, got)
		}
		return nil
	})
}

// stopped waits until the process does not run any more.
func stopped(t *testing.T, p *testprocess.Process) {
	t.Helper()
	testenv.Eventually(t, func() error {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.ID()))
		if err != nil {
			return err
		}
		// The state follows the name, which is in brackets.
		if _, state, _ := strings.Cut(string(stat), ") "); !strings.HasPrefix(state, "T") {
			return fmt.Errorf("the process is in state %.1s", state)
		}
		return nil
	})
}
