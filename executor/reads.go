package executor

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/tracker"
)

// refresh makes good for what is not known: the outcome of own writes, or what
// somebody else has done.
func (e *Executor) refresh(ctx context.Context, s *jobState) error {
	s.mu.Lock()
	read, list, job := s.readDue, s.listDue, s.job
	s.mu.Unlock()
	if job == nil {
		return errJobGone
	}
	if read {
		fresh, err := e.readJob(ctx, s, job)
		if err != nil {
			return err
		}
		job = fresh
	}
	s.mu.Lock()
	list = list || s.listDue
	s.mu.Unlock()
	if list || s.pods.Unsettled() {
		if err := e.listPods(ctx, s, job); err != nil {
			return err
		}
	}
	store := e.podInformer.GetStore()
	more := s.pods.Sweep(tracker.ResourceVersion(store.LastStoreSyncResourceVersion()), func(pod *podcache.Pod) bool {
		stored, ok := e.storedPod(pod.Namespace(), pod.Name)
		return ok && stored.UID == pod.UID
	})
	if more {
		e.queue.AddAfter(s.uid, missedEvent)
	}
	return nil
}

// overdue reports whether something has to be done before the next decision. A Job
// that is being deleted claims no pods.
func (s *jobState) overdue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.readDue || s.listDue || (s.claimDue && s.job != nil && s.job.DeletionTimestamp == nil)
}

// readJob reads the Job from the API server and takes it in. errJobGone: it
// does not exist any more.
func (e *Executor) readJob(ctx context.Context, s *jobState, job *batchv1.Job) (_ *batchv1.Job, err error) {
	ctx, end := e.span(ctx, SpanJobRead)
	defer func() { end(err) }()
	fresh, err := e.liveJob(ctx, job.Namespace, job.Name, job.UID)
	if err != nil {
		return nil, err
	}
	s.observe(fresh, jobRead)
	e.settleUnanswered(ctx, s)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readDue = false
	if s.job == nil {
		return nil, errJobGone
	}
	return s.job, nil
}

// liveJob reads a Job by its UID. A Job of the same name with another UID is
// not it (invariant I8): errJobGone.
func (e *Executor) liveJob(ctx context.Context, namespace, name string, uid types.UID) (*batchv1.Job, error) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	job, err := e.cfg.Client.BatchV1().Jobs(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, errJobGone
	}
	if err != nil {
		return nil, fmt.Errorf("reading job: %w", err)
	}
	if job.UID != uid {
		return nil, errJobGone
	}
	job.ManagedFields = nil
	return job, nil
}

// listPods reads the Job's pods from the API server, past every cache, and
// takes them in. It settles creations of unknown outcome.
func (e *Executor) listPods(ctx context.Context, s *jobState, job *batchv1.Job) (err error) {
	ctx, end := e.span(ctx, SpanPodsListed)
	defer func() { end(err) }()
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
	if err != nil {
		return fmt.Errorf("selector: %w", err)
	}
	// Cleared before the list is sent: what makes another one due meanwhile, this
	// one may not show.
	s.mu.Lock()
	s.listDue = false
	s.mu.Unlock()
	defer func() {
		if err != nil {
			s.due(false, false, true)
		}
	}()
	list := s.pods.BeginList()
	pods, err := e.cfg.Client.CoreV1().Pods(job.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		list.Cancel()
		return fmt.Errorf("listing pods: %w", err)
	}
	var owned []*podcache.Pod
	for i := range pods.Items {
		pod := podcache.From(&pods.Items[i])
		if ref, _ := jobRef(pod); ref != nil && ref.UID == s.uid {
			owned = append(owned, pod)
		}
	}
	list.End(owned, pods.ResourceVersion)
	return nil
}

// livePod reads one of the Job's pods from the API server, and takes it in.
func (e *Executor) livePod(ctx context.Context, s *jobState, pod *podcache.Pod) (*podcache.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	s.pods.BeginCall()
	defer s.pods.EndCall()
	live, err := e.cfg.Client.CoreV1().Pods(pod.Namespace()).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading pod: %w", err)
	}
	return e.absorb(s, live), nil
}

func (e *Executor) storedPod(namespace, name string) (*podcache.Pod, bool) {
	obj, ok, err := e.podInformer.GetStore().GetByKey(namespace + "/" + name)
	if err != nil || !ok {
		return nil, false
	}
	pod, ok := obj.(*podcache.Pod)
	return pod, ok
}

// absorb takes in a pod from the answer to an own call.
func (e *Executor) absorb(s *jobState, answer *corev1.Pod) *podcache.Pod {
	pod := podcache.From(answer)
	ref, _ := jobRef(pod)
	if ref != nil && ref.UID == s.uid {
		// The watch will show nothing new any more.
		if s.pods.Observe(pod, tracker.Response) == tracker.Change {
			e.wake(s, CausePodEvent, false)
		}
		return pod
	}
	s.pods.Left(pod, tracker.Response)
	return pod
}
