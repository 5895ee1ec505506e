package parity

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// shapes are the Job and the different pods that the controller created, as JSON
// without the fields that always differ, such as times.
func (s *side) shapes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	sc, set := &s.scene, map[string]bool{}
	for _, p := range sc.pods {
		// Added pods join the Job in a second write; a watch that breaks off may show
		// only that one.
		if p.first.GenerateName == added {
			continue
		}
		set[sc.shape(p.first)] = true
	}
	list := slices.Sorted(maps.Keys(set))
	if sc.job != nil {
		list = append(list, sc.jobShape())
	}
	return list
}

func (sc *scene) jobShape() string {
	job := sc.job.DeepCopy()
	job.Status = batchv1.JobStatus{}
	job.ManagedFields, job.ResourceVersion = nil, ""
	job.CreationTimestamp.Reset()
	job.DeletionTimestamp, job.DeletionGracePeriodSeconds = nil, nil
	if job.Spec.ManagedBy != nil && *job.Spec.ManagedBy == ownManager {
		job.Spec.ManagedBy = nil
	}
	return sc.indented(job)
}

func (sc *scene) shape(first *corev1.Pod) string {
	pod := first.DeepCopy()
	if pod.GenerateName != "" {
		pod.Name = fmt.Sprintf("<generated name of %d>", len(strings.TrimPrefix(pod.Name, pod.GenerateName)))
	}
	pod.UID, pod.ManagedFields, pod.ResourceVersion, pod.Generation = "", nil, "", 0
	pod.CreationTimestamp.Reset()
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = nil, nil
	pod.Spec.NodeName, pod.Status = "", corev1.PodStatus{}
	return sc.indented(pod)
}

var uid = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// indented is an object as JSON, with placeholders in place of UIDs.
func (sc *scene) indented(object any) string {
	out, err := json.MarshalIndent(object, "", " ")
	if err != nil {
		return err.Error()
	}
	return uid.ReplaceAllStringFunc(string(out), func(uid string) string {
		return fmt.Sprintf("<uid of Job %d>", slices.Index(sc.jobs, types.UID(uid))+1)
	})
}
