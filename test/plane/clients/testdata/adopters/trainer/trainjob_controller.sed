# The deadline of a TrainJob goes to a file of its own, and may fail.
/^func (r \*TrainJobReconciler) reconcileDeadline(/,/^}$/d
/^	"time"$/d
/^	jobsetv1alpha2 /d
/deadlineResult := r.reconcileDeadline(/{
	s/deadlineResult :=/deadlineResult, deadlineErr :=/
	a\
	err = errors.Join(err, deadlineErr)
}
