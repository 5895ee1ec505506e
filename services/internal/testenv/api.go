package testenv

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// API is the part of a Kubernetes API server that a program needs to start: Jobs that never
// change, no CronJobs, only those pods that a test gives it, no namespaces, and Leases that
// can be held. It ends with the test.
type API struct {
	// Kubeconfig names a file. Every Door has one of its own.
	Kubeconfig string
	// HoldLists, while true, prevents lists of objects.
	HoldLists atomic.Bool
	// RefuseRenewals, while true, prevents writes of Leases.
	RefuseRenewals atomic.Bool

	// Pods and Events are listed in every namespace.
	Pods   []corev1.Pod
	Events []corev1.Event

	handler http.Handler

	jobsMu sync.Mutex
	jobs   []*batchv1.Job
	// next replaces the Jobs that are read by name, after one has been read.
	next *[]*batchv1.Job

	mu    sync.Mutex
	lease *coordinationv1.Lease
}

// StartAPI starts an API with these Jobs.
func StartAPI(t testing.TB, jobs ...*batchv1.Job) *API {
	t.Helper()
	s := &API{jobs: jobs}
	items := make([]any, len(jobs))
	for i, job := range jobs {
		items[i] = job
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /apis/batch/v1/jobs", s.list("batch/v1", "Job", items...))
	mux.HandleFunc("GET /apis/batch/v1/namespaces/{namespace}/jobs", s.list("batch/v1", "Job", items...))
	mux.HandleFunc("GET /apis/batch/v1/namespaces/{namespace}/cronjobs", s.list("batch/v1", "CronJob"))
	mux.HandleFunc("GET /apis/batch/v1/namespaces/{namespace}/jobs/{name}", s.readJob)
	mux.HandleFunc("GET /apis/batch/v1/cronjobs", s.list("batch/v1", "CronJob"))
	mux.HandleFunc("GET /api/v1/pods", s.list("v1", "Pod"))
	mux.HandleFunc("GET /api/v1/namespaces/{namespace}/pods", s.listPods(s.list("v1", "Pod")))
	mux.HandleFunc("GET /api/v1/namespaces/{namespace}/events", s.listEvents)
	mux.HandleFunc("GET /api/v1/namespaces", s.list("v1", "Namespace"))
	mux.HandleFunc("GET /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{name}", s.readLease)
	mux.HandleFunc("POST /apis/coordination.k8s.io/v1/namespaces/kube-system/leases", s.writeLease)
	mux.HandleFunc("PUT /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{name}", s.writeLease)
	s.handler = mux
	s.Kubeconfig = s.Door(t).Kubeconfig
	return s
}

// Holder is who holds the lease; empty if nobody does.
func (s *API) Holder() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease == nil || s.lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *s.lease.Spec.HolderIdentity
}

// DeleteLease deletes the lease, as a person may.
func (s *API) DeleteLease() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lease = nil
}

// list answers lists and watches of objects that never change.
func (s *API) list(version, kind string, items ...any) http.HandlerFunc {
	meta := map[string]any{"resourceVersion": "1"}
	list := map[string]any{"apiVersion": version, "kind": kind + "List", "metadata": meta, "items": append([]any{}, items...)}
	bookmark := map[string]any{"type": "BOOKMARK", "object": map[string]any{
		"apiVersion": version, "kind": kind,
		"metadata": map[string]any{
			"resourceVersion": "1", "creationTimestamp": nil,
			"annotations": map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		},
	}}
	return func(w http.ResponseWriter, r *http.Request) {
		switch query := r.URL.Query(); {
		case s.HoldLists.Load():
			fail(w, http.StatusServiceUnavailable, "ServiceUnavailable")
		case query.Get("watch") == "":
			answer(w, http.StatusOK, list)
		default:
			w.Header().Set("Content-Type", "application/json")
			if query.Get("sendInitialEvents") == "true" {
				for _, item := range items {
					_ = json.NewEncoder(w).Encode(map[string]any{"type": "ADDED", "object": item})
				}
				_ = json.NewEncoder(w).Encode(bookmark)
			}
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}
}

// listPods lists the pods once; a watch shows none.
func (s *API) listPods(none http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if len(s.Pods) == 0 || r.URL.Query().Get("watch") != "" {
			none(w, r)
			return
		}
		answer(w, http.StatusOK, &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: s.Pods})
	}
}

// listEvents lists the events on the object that the field selector names.
func (s *API) listEvents(w http.ResponseWriter, r *http.Request) {
	list := &corev1.EventList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"}}
	for _, e := range s.Events {
		if r.URL.Query().Get("fieldSelector") == "involvedObject.uid="+string(e.InvolvedObject.UID) {
			list.Items = append(list.Items, e)
		}
	}
	answer(w, http.StatusOK, list)
}

// AfterRead replaces the Jobs that are read by name, after one has been read.
func (s *API) AfterRead(jobs ...*batchv1.Job) {
	s.jobsMu.Lock()
	defer s.jobsMu.Unlock()
	s.next = &jobs
}

func (s *API) readJob(w http.ResponseWriter, r *http.Request) {
	s.jobsMu.Lock()
	defer s.jobsMu.Unlock()
	defer func() {
		if s.next != nil {
			s.jobs, s.next = *s.next, nil
		}
	}()
	for _, job := range s.jobs {
		if job.Namespace == r.PathValue("namespace") && job.Name == r.PathValue("name") {
			answer(w, http.StatusOK, job)
			return
		}
	}
	fail(w, http.StatusNotFound, metav1.StatusReasonNotFound)
}

func (s *API) readLease(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease == nil {
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	}
	answer(w, http.StatusOK, s.lease)
}

func (s *API) writeLease(w http.ResponseWriter, r *http.Request) {
	if s.RefuseRenewals.Load() {
		fail(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
		return
	}
	obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	lease, ok := obj.(*coordinationv1.Lease)
	if err != nil || !ok {
		fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	version := 0
	if s.lease == nil && lease.ResourceVersion != "" {
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	}
	if s.lease != nil {
		if s.lease.ResourceVersion != lease.ResourceVersion {
			fail(w, http.StatusConflict, metav1.StatusReasonConflict)
			return
		}
		version, _ = strconv.Atoi(lease.ResourceVersion) // it was written here, so it is a number
	}
	lease.APIVersion, lease.Kind, lease.ResourceVersion = "coordination.k8s.io/v1", "Lease", strconv.Itoa(version+1)
	s.lease = lease
	answer(w, http.StatusOK, lease)
}

func fail(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	answer(w, code, &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Reason: reason, Message: "the test wants it so", Code: int32(code),
	})
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // fails only if the client went away
}
