package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A store is an API server of one Job and its pods.
type store struct {
	mu      sync.Mutex
	job     keeper
	pods    map[string]*corev1.Pod
	created int
	// What changes a pod waits for written, if there is one, after it has closed begun.
	begun, written chan struct{}
}

func newStore() *store {
	s := &store{pods: map[string]*corev1.Pod{}}
	s.job.Status = json.RawMessage("{}")
	s.job.Name, s.job.Namespace, s.job.UID = "job", "default", "00000000-0000-0000-0000-00000000000a"
	return s
}

func (s *store) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if written := s.written; (r.Method == http.MethodPost || r.Method == http.MethodDelete) && written != nil {
		close(s.begun)
		s.mu.Unlock()
		<-written
		s.mu.Lock()
	}
	var out any
	name := r.URL.Path[min(len(r.URL.Path), len(podsPath)+1):]
	switch {
	case r.Method == http.MethodGet && r.URL.Path == podsPath:
		list := &corev1.PodList{}
		for _, pod := range s.pods {
			list.Items = append(list.Items, *pod)
		}
		out = list
	case r.Method == http.MethodDelete && name == "":
		list := &corev1.PodList{}
		for _, pod := range s.pods { // With a selector: the pods that have succeeded.
			if pod.Status.Phase == corev1.PodSucceeded {
				list.Items = append(list.Items, *s.delete(pod))
			}
		}
		out = list
	case r.Method == http.MethodDelete:
		out = s.delete(s.pods[name])
	case r.Method == http.MethodPost:
		pod := &corev1.Pod{}
		_ = json.NewDecoder(r.Body).Decode(pod)
		n := s.created
		s.created++
		pod.Name, pod.UID = fmt.Sprint("job-", n), types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", n+100))
		pod.CreationTimestamp, pod.Status.Phase = metav1.NewTime(startOfPlay), corev1.PodRunning
		s.pods[pod.Name] = pod
		out = pod
	case r.Method == http.MethodPatch:
		pod := s.pods[name]
		pod.Finalizers = nil
		if pod.DeletionTimestamp != nil {
			s.delete(pod)
		}
		out = pod
	case r.Method == http.MethodPut:
		s.job.Status, _ = io.ReadAll(r.Body)
		if s.written != nil {
			close(s.written)
			s.begun, s.written = nil, nil
		}
		out = s.job
	default:
		out = s.job
	}
	_ = json.NewEncoder(rw).Encode(out)
}

// delete deletes a pod as an API server does: it goes when it has no finalizer.
func (s *store) delete(pod *corev1.Pod) *corev1.Pod {
	at := metav1.NewTime(startOfPlay)
	pod.DeletionTimestamp = &at
	if len(pod.Finalizers) == 0 {
		delete(s.pods, pod.Name)
	}
	return pod
}

// end ends one of the pods that run.
func (s *store) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.created {
		if pod := s.pods[fmt.Sprint("job-", i)]; pod != nil && pod.Status.Phase == corev1.PodRunning {
			pod.Status.Phase = corev1.PodSucceeded
			if i == 0 {
				pod.Status.Phase = corev1.PodFailed
			}
			return
		}
	}
}
