package operate

import (
	"context"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/node/cluster/shared"
	"jobpolicy.dev/test/plane/migration"
)

// withoutBuiltIn is the flag that switches the built-in controllers off.
const withoutBuiltIn = "--controllers=-job-controller,-cronjob-controller,-ttl-after-finished-controller"

// switchBuiltIn restarts kube-controller-manager with or without the built-in
// controllers.
func switchBuiltIn(t *testing.T, on bool) {
	t.Helper()
	must.Succeed(t, restartControllerManager(t.Context(), on, shared.Cluster().Kill))
}

func restartControllerManager(ctx context.Context, on bool, end func(string) error) error {
	var args []string
	if !on {
		args = []string{withoutBuiltIn}
	}
	if err := shared.Cluster().SetExtraArgs(cluster.ControllerManager, args...); err != nil {
		return err
	}
	if err := end(cluster.ControllerManager); err != nil {
		return err
	}
	return shared.Cluster().StartComponent(ctx, cluster.ControllerManager)
}

// migrate moves running Jobs from our controller to the built-in one and back. Ours is
// on, in replace mode, at the begin and at the end.
func migrate(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(*switches)*time.Minute+patience)
	defer cancel()
	jobs, err := migration.Migration{
		Client: shared.Client(), Namespace: newNamespace(t), Image: shellImage, Every: 4 * time.Second,
		From: installed(t), To: builtInSide(), Switches: *switches, Tell: t.Logf,
	}.Play(ctx)
	if err != nil {
		t.Errorf("of %d Jobs:\n%v", jobs, err)
		return
	}
	t.Logf("%d Jobs changed their controller, and each count is right", jobs)
}

func builtInSide() migration.Side {
	gently := func(name string) error {
		_, err := shared.Cluster().StopComponent(context.Background(), name)
		return err
	}
	return migration.Side{
		Name:  "the built-in controller",
		Start: func(ctx context.Context) error { return restartControllerManager(ctx, true, shared.Cluster().Kill) },
		Stop:  func(ctx context.Context) error { return restartControllerManager(ctx, false, gently) },
		Kill:  func(ctx context.Context) error { return restartControllerManager(ctx, false, shared.Cluster().Kill) },
	}
}

// installed is the release's executor.
func installed(t *testing.T) migration.Side {
	return migration.Side{
		Name: "jobpolicy",
		Start: func(ctx context.Context) error {
			if err := kubectl(ctx, "-n "+release+" scale deployment/"+executor+" --replicas=2"); err != nil {
				return err
			}
			return kubectl(ctx, "-n "+release+" rollout status deployment/"+executor)
		},
		Stop: scaleToNone,
		Kill: func(ctx context.Context) error { return killAll(ctx, shared.Client()) },
	}
}

func scaleToNone(ctx context.Context) error {
	if err := kubectl(ctx, "-n "+release+" scale deployment/"+executor+" --replicas=0"); err != nil {
		return err
	}
	return executorsGone(ctx)
}

func executorsGone(ctx context.Context) error {
	return kubectl(ctx, "-n "+release+" wait --for=delete pod -l app.kubernetes.io/component=executor --timeout=9m")
}

// killAll stops every executor with SIGKILL: none can prepare for its end, and none is
// started again.
func killAll(ctx context.Context, client kubernetes.Interface) error {
	pods, err := podsOf(ctx, client, "executor")
	if err != nil {
		return err
	}
	for i := range pods {
		if err := signalPod(&pods[i], syscall.SIGSTOP); err != nil {
			return err
		}
	}
	if err := kubectl(ctx, "-n "+release+" scale deployment/"+executor+" --replicas=0"); err != nil {
		return err
	}
	for i := range pods {
		if err := ending(ctx, client, &pods[i]); err != nil {
			return err
		}
		if err := signalPod(&pods[i], syscall.SIGKILL); err != nil {
			return err
		}
	}
	return executorsGone(ctx)
}

// ending waits until a pod is being deleted, so that its program is not started again.
func ending(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) error {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		now, err := client.CoreV1().Pods(release).Get(ctx, pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return err == nil && now.DeletionTimestamp != nil, err
	})
}
