package api

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"jobpolicy.dev/executor/wire"
)

// GroupAnnotation names the group that a pod was created for, if no Job controls the pod.
const GroupAnnotation = "jobpolicy.dev/group"

// countedBy are the annotations that say how a pod counts: those of podcache.Indexing, and the group.
var countedBy = []string{
	batchv1.JobCompletionIndexAnnotation, batchv1.JobIndexFailureCountAnnotation, batchv1.JobIndexIgnoredFailureCountAnnotation, GroupAnnotation,
}

// AlteredError says that a new object was stored in another form than it was sent: admission (a
// webhook or a policy) has changed a field that decides whose the object is and how it counts. Such
// a creation counts as refused, and the object has to be deleted: it would never count, and another
// one would be created in its place.
type AlteredError struct {
	// Kind is the kind of the object, and Field the first field that was changed: ownerReferences,
	// labels, annotations or finalizers.
	Kind, Field string
	changes     []string
}

// Error implements error. It does not name the object, so that the text is the same for each try.
func (e *AlteredError) Error() string {
	return fmt.Sprintf("admission changed the new %s: %s", e.Kind, strings.Join(e.changes, "; "))
}

// add adds a change to e, which may be nil, and returns the result.
func (e *AlteredError) add(kind, field, format string, args ...any) *AlteredError {
	if e == nil {
		e = &AlteredError{Kind: kind, Field: field}
	}
	e.changes = append(e.changes, "metadata."+field+fmt.Sprintf(format, args...))
	return e
}

// orNil returns e as an error; nil if there was no change.
func (e *AlteredError) orNil() error {
	if e == nil {
		return nil
	}
	return e
}

// alteredPod compares a pod that was created with what was sent. It returns an AlteredError if the
// stored pod would not count for its Job as the pod that was sent: if its controller, its group, its
// completion index, its counts of failures or its tracking finalizer is another one, or if the Job's
// selector does not match it any more.
func alteredPod(sent, stored *corev1.Pod, selector *metav1.LabelSelector) error {
	const kind = "pod"
	e := alteredOwner(kind, sent, stored)
	if s, err := metav1.LabelSelectorAsSelector(selector); err == nil && s.Matches(labels.Set(sent.Labels)) {
		requirements, _ := s.Requirements()
		for _, r := range requirements {
			if !r.Matches(labels.Set(stored.Labels)) {
				e = e.add(kind, "labels", "[%s] %s", r.Key(), became(sent.Labels, stored.Labels, r.Key()))
			}
		}
	}
	for _, name := range countedBy {
		if was, found := sent.Annotations[name]; found && was != stored.Annotations[name] {
			e = e.add(kind, "annotations", "[%s] %s", name, became(sent.Annotations, stored.Annotations, name))
		}
	}
	if slices.Contains(sent.Finalizers, batchv1.JobTrackingFinalizer) && !slices.Contains(stored.Finalizers, batchv1.JobTrackingFinalizer) {
		e = e.add(kind, "finalizers", " lacks %s", batchv1.JobTrackingFinalizer)
	}
	return e.orNil()
}

// alteredOwner compares the controllers. Their API version does not matter.
func alteredOwner(kind string, sent, stored metav1.Object) *AlteredError {
	was, is := metav1.GetControllerOfNoCopy(sent), metav1.GetControllerOfNoCopy(stored)
	var none *AlteredError
	switch {
	case was == nil:
		return nil
	case is == nil:
		return none.add(kind, "ownerReferences", " has no controller, want %s %s", was.Kind, was.Name)
	case is.UID != was.UID || is.Name != was.Name || wire.KindOf(is) != wire.KindOf(was):
		return none.add(kind, "ownerReferences", " names the controller %.60s %.60s (UID %.40s), want %s %s (UID %s)", is.Kind, is.Name, is.UID, was.Kind, was.Name, was.UID)
	}
	return nil
}

// became says what has become of a label or an annotation, in few words.
func became(sent, stored map[string]string, key string) string {
	is, found := stored[key]
	if !found {
		return fmt.Sprintf("is missing, want %q", sent[key])
	}
	return fmt.Sprintf("is %.60q, want %q", is, sent[key])
}
