package jobframework

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"sigs.k8s.io/kueue/pkg/policyengine"
)

// notKnownYet returns when to ask the engine again; 0 if err is none that waiting heals.
func notKnownYet(ctx context.Context, err error) time.Duration {
	if err == nil {
		return 0
	}
	wait, _ := policyengine.Later(ctx, err)
	return wait
}

// askAgain makes sure that the next reconcile comes within wait.
func askAgain(result *ctrl.Result, wait time.Duration) {
	if result.RequeueAfter == 0 || result.RequeueAfter > wait {
		result.RequeueAfter = wait
	}
}
