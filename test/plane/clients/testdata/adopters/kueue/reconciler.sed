# The one place of Kueue's reconciler that has to change: while it is not known how many pods are reclaimable, as many are as
# before, and the rest of the reconcile goes on.
/reclPods, err := jobRecl.ReclaimablePods(ctx, r.client)$/a\
		if wait := notKnownYet(ctx, err); wait > 0 {\
			reclPods, err = wl.Status.ReclaimablePods, nil\
			defer askAgain(&result, wait)\
		}
